/*
 * The switch between fibres: the parts that are not inline. The protocol block is in thread.h.
 */
#include "switch.h"

#include "../stack/budget.h"
#include "closing.h"
#include "pinned.h"
#include "records.h"

#include <errno.h>

void fibre_init(struct fibre *fibre, struct member *member)
{
    fibre->current = member;
    member->fibre = fibre;
}

static COLD void check_canary(struct thread *thread)
{
    if (slow_flags_has(&thread->slow_switch, SWITCH_CANARIES) && stack_overrun(thread->current->stack))
        thread->sub->ops->overflow(thread);
}

/* Records the stack use of the current strand. A private stack shows at the strand's end how much was used; a shared
 * one must be examined whenever a strand leaves it. */
static COLD void record_stack(struct thread *thread, bool ends)
{
    struct fibre *fibre = thread->current;
    const struct stack *stack = fibre->stack;
    const struct sched_ops *ops = thread->sub->ops;
    char *low = stack_floor(stack);
    if (!ends)
        ops->census(thread, fibre->current, (size_t)(stack->top - (char *)__builtin_frame_address(0)), CENSUS_SUSPENDS);
    if (ends || fibre_is_shared(fibre))
        ops->census(thread, fibre->current, arch_stack_used(low, stack->top), ends ? CENSUS_ENDS : CENSUS_USED);
}

/* ---- a C++ runtime that comes in the middle of a run -------------------------------------------------------- */

/* Returns the thread's state of C++ exceptions; NULL: there is no C++ runtime. Called if SWITCH_CHECK says that there
 * may be one [S5]. */
static struct arch_cxx *thread_cxx(struct thread *thread)
{
    if (UNLIKELY(!thread->cxx))
        thread->cxx = arch_cxx_globals();
    return thread->cxx;
}

/* Strands move between the threads of a run, so either all of them save and restore the state, or none. */
void switch_all_save_cxx(struct subprocess *sub)
{
    for (struct thread *other = thread_first(sub); other; other = thread_after(other))
        atomic_fetch_or_explicit(&other->slow_switch.any, SWITCH_CHECK, memory_order_relaxed); /* [S5] */
}

/* Looks for a C++ runtime, after the thread has used thread-local variables of a new library. */
COLD void thread_find_cxx_(struct thread *thread)
{
    thread->locals = arch_locals_generation();
    arch_cxx_refresh();
    if (thread_cxx(thread))
        switch_all_save_cxx(thread->sub);
}

/* ---- leaving and arriving in runs that need more ------------------------------------------------------------ */

/* Does the rest of leaving a fibre, in runs that need it: canary, census, state of C++ exceptions. */
COLD void thread_leave_slow_(struct thread *thread, struct fibre *from)
{
    thread_must_not_be_left(thread);
    check_canary(thread);
    if (thread->census)
        record_stack(thread, false);
    from->started = thread_cxx(thread) != NULL;
    if (from->started)
        from->cxx = *thread->cxx;
}

COLD void thread_arrive_slow_(struct thread *thread, struct fibre *to, struct arch_san *here)
{
    static const struct arch_cxx none;
    if (thread_cxx(thread))
        *thread->cxx = !to ? thread->loop_cxx : to->started ? to->cxx : none;
    if (!to && thread->current)
        budget_ended(&thread->stacks); /* another strand begins on the same stack */
    thread->here = here;
}

/* Prepares the jump, in runs that need it. */
COLD void thread_jump_slow_(struct thread *thread, struct arch_san *from, struct fibre *to, bool ends)
{
    struct arch_san *san = to ? &to->san : &thread->loop_san;
    thread_arrive_slow_(thread, to, san);
    if (to)
        arch_san_resumed(san);
    arch_san_release(thread->sub); /* for the end of the run, and for a dump */
    arch_san_leave(from, san, ends);
}

/* Prepares the beginning of `next` on the stack of the strand that has ended, in runs that need it. */
COLD void thread_reuse_slow_(struct thread *thread, struct fibre *next)
{
    next->san = thread->dead_san;
    thread_arrive_slow_(thread, NULL, &next->san);
}

/* Describes the stack on which `to` is about to begin to a tool. */
COLD void thread_make_san_(struct fibre *to, size_t room)
{
    arch_san_make(&to->san, to->stack->low, room);
    if (arch_san_separate())
        to->stack->idle = NULL; /* it begins in a context of its own, not that of the strand before */
}

/* Reports to a tool, after the jump, that `here` runs, and that the fibre before it is suspended or has ended. */
COLD void thread_arrive_san_(struct thread *thread, struct arch_san *here, arch_context from)
{
    arch_san_arrive(here);
    arch_san_acquire(&thread->sub->pool); /* with the end of a dump */
    if (thread->after <= AFTER_YIELD)
        arch_san_suspended(&thread->from->san, from);
    else if (thread->after == AFTER_END)
        arch_san_end(&thread->dead_san);
}

/* The strand was counted before, so the last strand of a closing pool finds the pool empty. */
COLD void thread_detach_slow_(struct thread *thread)
{
    thread_must_not_be_left(thread);
    pool_record_end_(thread);
    check_canary(thread);
    if (thread->census)
        record_stack(thread, true);
    budget_ends(&thread->stacks);
    thread->dead_san = thread->current->san;
    thread->here = &thread->dead_san;
}

/* Gets a stack for `to`, when none was available at once. In the middle of a switch no thread waits for the limit: the
 * loop tries again, when the stack that this thread leaves is back. If the loop gets none either, the strand ends with
 * this error. Returns 0 or a negated errno code. */
COLD int thread_give_stack_(struct thread *thread, struct fibre *to)
{
    bool in_loop = thread->after == AFTER_LOOP;
    int error = in_loop ? stack_get_patiently(&thread->stacks, to->stack_size, &to->stack)
                        : stack_get(&thread->stacks, to->stack_size, &to->stack);
    if (error == -EAGAIN && !in_loop) {
        thread->late = to;
    } else if (error) {
        thread->refused.fibre = to;
        thread->refused.error = error;
    }
    return error;
}

void thread_entry_(struct arch_transfer transfer)
{
    ARCH_STACK_ENDS_HERE();
    struct thread *thread = transfer.data;
    if (UNLIKELY(arch_tool))
        thread_arrive_san_(thread, &thread->current->san, transfer.from);
    switch_arrive(thread, transfer.from);
    thread->sub->ops->serve(thread);
    UNREACHABLE();
}

/* ---- the choice of what runs next ---------------------------------------------------------------------------- */

/* Picks a pinned fibre and another one alternately. */
static inline __attribute__((always_inline)) struct fibre *pick_slow(struct thread *thread)
{
    struct fibre *fibre = NULL;
    bool pinned = slow_flags_has(&thread->slow_pick, PICK_PINNED), first = false;
    if (UNLIKELY(pinned)) {
        first = thread->pinned.went_first = thread->platform ? platform_choose(thread, 2) : !thread->pinned.went_first;
        fibre = first ? pinned_pick(thread) : NULL;
    }
    if (!fibre)
        fibre = thread->stealing ? stealing_pick_slow_(thread) : thread->pool->scheduler->pick(thread);
    thread->slow_pick.own &= ~(uint32_t)PICK_FAIR;
    return fibre || !pinned || first ? fibre : pinned_pick(thread);
}

COLD struct fibre *thread_pick_slow_(struct thread *thread)
{
    return pick_slow(thread);
}

COLD struct fibre *thread_point_and_pick_slow_(struct thread *thread)
{
    platform_point(thread);
    return pick_slow(thread);
}

COLD void thread_ready_slow_(struct thread *thread, struct member *member, bool here)
{
    struct fibre *fibre = member->fibre;
    if (fibre_is_pinned(fibre))
        pool_send_pinned(thread, fibre);
    else if (!shared_mail_up(thread, member))
        ;
    else if (here)
        thread_push(thread, fibre, PUSH_WOKEN);
    else
        pool_send(thread, fibre);
}

/* Puts back the fibre that would run next, because the thread must leave. Other threads run it, or the thread itself
 * does, first of all, if it only returns to its driver. Returns NULL. */
COLD struct fibre *thread_give_up_(struct thread *thread, struct fibre *next)
{
    if (next && fibre_is_pinned(next)) {
        list_push_front(&thread->pinned.ready, &next->queued);
        atomic_store_explicit(&thread->slow_pick.any, PICK_PINNED, memory_order_relaxed);
    } else if (next && thread->pool->scheduler->alone) {
        runq_prepend(&thread->runq, &thread->runq.ready, next);
    } else if (next) {
        thread_push(thread, next, PUSH_OUTSIDE);
    }
    return NULL;
}

struct thread *thread_park(struct thread *thread)
{
    return switch_park(thread);
}

struct thread *thread_yield(struct thread *thread)
{
    struct fibre *to = thread_point_and_pick(thread);
    if (UNLIKELY(!to)) {
        bool wanted = thread_on_shared(thread) && shared_fibre_is_wanted(shared_of(thread->current));
        if (!wanted && !thread_is_to_go(thread)) {
            if (UNLIKELY(slow_flags_has(&thread->slow_switch, SWITCH_CANARIES)))
                check_canary(thread); /* as a switch does */
            return thread;
        }
    }
    return switch_leave(thread, to, AFTER_YIELD);
}
