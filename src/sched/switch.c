/*
 * The switch between fibres: what is not inline. The protocol block stands in thread.h.
 */
#include "switch.h"

#include "../stack/budget.h"
#include "pinned.h"

#include <errno.h>

void fibre_init(struct fibre *fibre, struct member *member)
{
    fibre->active = member;
    member->fibre = fibre;
}

static COLD void check_canary(struct thread *thread)
{
    if (slow_flags_has(&thread->slow_switch, SWITCH_CANARIES) && stack_overrun(thread->current->stack))
        thread->sub->ops->overflow(thread);
}

/* A stack of one strand shows at its end what that has used; one that is shared has to be looked at whenever its strand
 * leaves it. */
static COLD void record_stack(struct thread *thread, bool ends)
{
    struct fibre *fibre = thread->current;
    const struct stack *stack = fibre->stack;
    const struct sched_ops *ops = thread->sub->ops;
    char *low = stack_floor(stack);
    if (!ends)
        ops->census(thread, fibre->active, (size_t)(stack->top - (char *)__builtin_frame_address(0)), CENSUS_SUSPENDS);
    if (ends || fibre_is_shared(fibre))
        ops->census(thread, fibre->active, arch_stack_used(low, stack->top), ends ? CENSUS_ENDS : CENSUS_USED);
}

/* ---- a C++ runtime that comes in the middle of a run -------------------------------------------------------- */

/* NULL: none. For a thread whose SWITCH_CHECK says that there may be one [S5]. */
static struct arch_cxx *thread_cxx(struct thread *thread)
{
    if (UNLIKELY(!thread->cxx))
        thread->cxx = arch_cxx_globals();
    return thread->cxx;
}

/* Strands move between the threads of a run, so all of them save and restore the state, or none. */
void switch_all_save_cxx(struct subprocess *sub)
{
    for (struct thread *other = thread_first(sub); other; other = thread_after(other))
        atomic_fetch_or_explicit(&other->slow_switch.any, SWITCH_CHECK, memory_order_relaxed); /* [S5] */
}

/* Something new has thread-local variables, which this thread has used: maybe the runtime. */
COLD void thread_find_cxx_(struct thread *thread)
{
    thread->locals = arch_locals_generation();
    arch_cxx_refresh();
    if (thread_cxx(thread))
        switch_all_save_cxx(thread->sub);
}

/* ---- leaving and arriving in runs that need more ------------------------------------------------------------ */

/* The rest of leaving a fibre, in runs that need it: its canary, the census, and the state of C++ exceptions. */
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
        budget_ended(&thread->stacks); /* another one begins on the same stack */
    thread->here = here;
}

/* Before the jump, in runs that need it. */
COLD void thread_jump_slow_(struct thread *thread, struct arch_san *from, struct fibre *to, bool ends)
{
    struct arch_san *san = to ? &to->san : &thread->loop_san;
    thread_arrive_slow_(thread, to, san);
    if (to)
        arch_san_resumed(san);
    arch_san_release(thread->sub); /* to the end of the run, and to a dump */
    arch_san_leave(from, san, ends);
}

/* `next` begins on the stack of the strand that has ended. */
COLD void thread_reuse_slow_(struct thread *thread, struct fibre *next)
{
    next->san = thread->dead_san;
    thread_arrive_slow_(thread, NULL, &next->san);
}

/* For a tool: `to` is about to begin on its stack. */
COLD void thread_make_san_(struct fibre *to, size_t room)
{
    arch_san_make(&to->san, to->stack->low, room);
    if (arch_san_separate())
        to->stack->idle = NULL; /* a context of its own, not that of the strand before */
}

/* For a tool, after the jump: `here` was switched to, and what was left is suspended or has ended. */
COLD void thread_arrive_san_(struct thread *thread, struct arch_san *here, arch_context from)
{
    arch_san_arrive(here);
    arch_san_acquire(&thread->sub->pool); /* of a dump that is over */
    if (thread->after <= AFTER_YIELD)
        arch_san_suspended(&thread->from->san, from);
    else if (thread->after == AFTER_END)
        arch_san_end(&thread->dead_san);
}

/* Strands are counted before they are detached, so the last one of a closing pool sees that it is. */
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

/* No stack was available at once. In the middle of a switch no thread waits for the limit: the loop tries again, when
 * the stack that this thread leaves is back. If the loop gets none either, the strand ends with this error. */
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

/* What is pinned, and what is not, in turns. */
static inline __attribute__((always_inline)) struct fibre *pick_slow(struct thread *thread)
{
    struct fibre *fibre = NULL;
    bool pinned = slow_flags_has(&thread->slow_pick, PICK_PINNED), first = false;
    if (UNLIKELY(pinned)) {
        first = thread->pinned.turn = thread->platform ? platform_choose(thread, 2) : !thread->pinned.turn;
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

/* The thread must leave: others run what it would have run next; or the thread itself does, as the first, if it only
 * returns to the thread that drives it. */
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
                check_canary(thread); /* as leaving does */
            return thread;
        }
    }
    return switch_leave(thread, to, AFTER_YIELD);
}
