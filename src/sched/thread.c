/*
 * A thread's life and the switch. The protocol block stands in thread.h.
 */
#include "../stack/budget.h"
#include "pinned.h"
#include "polled.h"
#include "service.h"
#include "switch.h"
#include "timers.h"

#include <errno.h>

enum { PERIOD_MOST = 8, STIR_EVERY = 4, LOOK_EVERY = 61 }; /* contract §2: every 61 switches or every millisecond */

void fibre_init(struct fibre *fibre, struct member *member)
{
    fibre->active = member;
    member->fibre = fibre;
}

/* ---- the switch: what is not inline ---------------------------------------------------------------------- */

static COLD void check_canary(struct thread *thread)
{
    if (thread->canaries && stack_overrun(thread->current->stack))
        thread->sub->ops->overflow(thread);
}

/* A stack of one strand shows at its end what that has used; one that is shared has to be looked at whenever its strand
 * leaves it. */
static COLD void note_stack(struct thread *thread, bool ends)
{
    struct fibre *fibre = thread->current;
    const struct stack *stack = fibre->stack;
    const struct sched_ops *ops = thread->sub->ops;
    char *low = stack_floor(stack);
    if (!ends)
        ops->census(thread, fibre->active, (size_t)(stack->top - (char *)__builtin_frame_address(0)), CENSUS_SUSPENDS);
    if (ends || fibre->opened)
        ops->census(thread, fibre->active, arch_stack_used(low, stack->top), ends ? CENSUS_ENDS : CENSUS_USED);
}

/* ---- a C++ runtime that comes in the middle of a run -------------------------------------------------------- */

/* Of a thread whose odd.always says that there may be one [S5]. */
static struct arch_cxx *thread_cxx(struct thread *thread)
{
    if (UNLIKELY(!thread->cxx))
        thread->cxx = arch_cxx_globals();
    return thread->cxx;
}

/* Strands move between the threads of a run, so all of them save and restore the state, or none. */
static void all_save_cxx(struct subprocess *sub)
{
    for (struct thread *other = thread_first(sub); other; other = thread_after(other))
        plain_store(&other->odd.always, true, memory_order_relaxed); /* [S5] */
}

/* Something new has thread-local variables, which this thread has used: maybe the runtime. */
COLD void thread_look_for_cxx_(struct thread *thread)
{
    thread->locals = arch_locals_generation();
    arch_cxx_look();
    if (thread_cxx(thread))
        all_save_cxx(thread->sub);
}

/* The rest of leaving a fibre, in runs that need it: its canary, the census, and the state of C++ exceptions. */
COLD void thread_leave_oddly_(struct thread *thread, struct fibre *from)
{
    thread_must_not_be_left(thread);
    check_canary(thread);
    if (thread->census)
        note_stack(thread, false);
    from->started = thread_cxx(thread) != NULL;
    if (from->started)
        from->cxx = *thread->cxx;
}

COLD void thread_arrive_oddly_(struct thread *thread, struct fibre *to, struct arch_note *here)
{
    static const struct arch_cxx none;
    if (thread_cxx(thread))
        *thread->cxx = !to ? thread->loop_cxx : to->started ? to->cxx : none;
    if (!to && thread->current)
        budget_ended(&thread->stacks); /* another one begins on the same stack */
    thread->here = here;
}

/* Before the jump, in runs that need it. */
COLD void thread_jump_oddly_(struct thread *thread, struct arch_note *from, struct fibre *to, bool ends)
{
    struct arch_note *note = to ? &to->note : &thread->loop_note;
    thread_arrive_oddly_(thread, to, note);
    if (to)
        arch_note_resumed(note);
    arch_note_release(thread->sub); /* to the end of the run, and to a dump */
    arch_note_leave(from, note, ends);
}

/* For a tool: `to` is about to begin on its stack. */
COLD void thread_make_noted_(struct fibre *to, size_t room)
{
    arch_note_make(&to->note, to->stack->low, room);
    if (arch_notes_separate())
        to->stack->idle = NULL; /* a context of its own, not that of the strand before */
}

/* For a tool, after the jump: `here` was switched to, and what was left is suspended or has ended. */
COLD void thread_arrive_noted_(struct thread *thread, struct arch_note *here, arch_context from)
{
    arch_note_arrive(here);
    arch_note_acquire(&thread->sub->pool); /* of a dump that is over */
    if (thread->after <= AFTER_YIELD)
        arch_note_suspended(&thread->from->note, from);
    else if (thread->after == AFTER_END)
        arch_note_end(&thread->dead_note);
}

/* Strands are counted before they are detached, so the last one of a closing pool sees that it is. */
COLD void thread_detach_oddly_(struct thread *thread)
{
    thread_must_not_be_left(thread);
    pool_note_end_(thread);
    check_canary(thread);
    if (thread->census)
        note_stack(thread, true);
    budget_ends(&thread->stacks);
    thread->here = &thread->dead_note;
}

/* No stack could be had at once. In the middle of a switch nobody waits for the limit: the loop tries again, when what
 * this thread leaves is back. What it can't have either, it ends with this error. */
COLD int thread_give_stack_(struct thread *thread, struct fibre *to)
{
    bool in_loop = thread->after == AFTER_LOOP;
    int error = in_loop ? stack_get_patiently(&thread->stacks, to->stack_size, &to->stack)
                        : stack_get(&thread->stacks, to->stack_size, &to->stack);
    if (error == -EAGAIN && !in_loop) {
        thread->late = to;
    } else if (error) {
        thread->refused = to;
        thread->refusal = error;
    }
    return error;
}

void thread_entry_(struct arch_transfer transfer)
{
    ARCH_STACK_ENDS_HERE();
    struct thread *thread = transfer.data;
    if (UNLIKELY(arch_tool))
        thread_arrive_noted_(thread, &thread->current->note, transfer.from);
    switch_arrive(thread, transfer.from);
    thread->sub->ops->serve(thread);
    UNREACHABLE();
}

NOINLINE struct fibre *thread_pick_after_end_(struct thread *thread)
{
    thread->current = NULL; /* somebody may look at this thread now */
    thread_tick(thread);
    driver_point(thread);
    return thread_is_to_go(thread) ? NULL : thread_pick(thread);
}

/* What is pinned, and what is not, in turns. */
COLD struct fibre *thread_pick_oddly_(struct thread *thread)
{
    struct fibre *fibre = NULL;
    bool pinned = plain_load(&thread->picks.pinned, memory_order_relaxed), first = false;
    if (UNLIKELY(pinned)) {
        first = thread->pinned.turn = thread->driver ? driver_choose(thread, 2) : !thread->pinned.turn;
        fibre = first ? pinned_pick(thread) : NULL;
    }
    if (!fibre)
        fibre = thread->stealing ? stealing_pick_slow_(thread) : thread->pool->scheduler->pick(thread);
    thread->picks.fair = false;
    return fibre || !pinned || first ? fibre : pinned_pick(thread);
}

COLD void thread_ready_oddly_(struct thread *thread, struct member *member, bool here)
{
    struct fibre *fibre = member->fibre;
    if (fibre->pinned)
        pinned_ready(thread, fibre);
    else if (!opened_up(thread, member))
        ;
    else if (here)
        thread_push(thread, fibre, PUSH_WOKEN);
    else
        pool_send(thread, fibre);
}

/* It is to go: what it would have run next is left to others; or to itself, as the first, if it is only to go back to
 * who drives it. */
COLD struct fibre *thread_give_up_(struct thread *thread, struct fibre *next)
{
    if (next && next->pinned) {
        list_push_front(&thread->pinned.ready, &next->queued);
        plain_store(&thread->picks.pinned, true, memory_order_relaxed);
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
    driver_point(thread);
    struct fibre *to = thread_pick(thread);
    if (UNLIKELY(!to)) {
        if (UNLIKELY(thread->odd.always))
            check_canary(thread);
        bool wanted = thread->odd.opened && opened_is_wanted(opened_of(thread->current));
        if (!wanted && !thread_is_to_go(thread))
            return thread;
    }
    return switch_leave(thread, to, AFTER_YIELD);
}

/* ---- the thread's life ----------------------------------------------------------------------------------- */

/* From the loop, where nobody waits for this thread. */
static void await_context(struct thread *thread, struct fibre *fibre)
{
    while (fibre->stack && !atomic_load_explicit(&fibre->context, memory_order_acquire))
        driver_await(thread);
}

/* False: the strand that was to be run could not start. */
static bool enter_opened(struct thread *thread, struct opened *opened)
{
    int error = opened_enter(thread, opened);
    if (LIKELY(!error))
        return true;
    struct member *refused = opened->fibre.active;
    opened->fibre.active = NULL;
    thread->sub->ops->refuse(refused, error);
    opened_give_up(thread, opened);
    opened_release(thread, opened, OPENED_STRAND);
    return false;
}

static void go_to(struct thread *thread, struct fibre *fibre)
{
    thread->from = NULL;
    thread->after = AFTER_LOOP;
    switch_jump(thread, &thread->loop_note, fibre, false);
    if (UNLIKELY(thread->refused != NULL)) {
        struct fibre *refused = thread->refused;
        thread->refused = NULL;
        thread->sub->ops->refuse(refused->active, thread->refusal);
    }
}

/* And who has to be gone on with after that, unless the thread is to go. */
static void run(struct thread *thread, struct fibre *fibre)
{
    while (fibre) {
        thread->late = NULL;
        if (UNLIKELY(fibre->opened)) {
            if (enter_opened(thread, opened_of(fibre)))
                go_to(thread, fibre);
        } else {
            await_context(thread, fibre);
            go_to(thread, fibre);
        }
        fibre = thread->late;
        if (UNLIKELY(fibre != NULL) && thread_is_to_go(thread))
            fibre = thread_give_up_(thread, fibre); /* else one whose strands take turns would keep it */
    }
}

static void begin(struct thread *thread)
{
    thread->cxx = arch_cxx_globals();
    thread->locals = arch_locals_generation();
    if (thread->cxx) {
        thread->loop_cxx = *thread->cxx;
        all_save_cxx(thread->sub); /* another run may have found it since the others began */
    }
    bool fences = thread->shared && !arch_membarrier_works;
    if (thread->cxx || thread->driver || thread->census || thread->sub->memory.most || fences || arch_tool)
        plain_store(&thread->odd.always, true, memory_order_relaxed);
    thread->here = &thread->loop_note;
    if (!thread->driver)
        arch_note_thread(&thread->loop_note);
    thread->looked = thread->ticked = thread->young_served = driver_ticks(thread);
    thread->now = driver_now(thread->sub);
    service_begin(thread, thread->looked);
}

void thread_loop(struct thread *thread)
{
    begin(thread);
    for (;;) {
        thread_must_not_be_left(thread);
        driver_point(thread);
        if (thread_is_to_go(thread) && thread_goes_(thread))
            return;
        struct fibre *fibre = thread_pick(thread);
        if (!fibre && !(fibre = pool_find_work(thread)) && pool_stops(thread->pool))
            return;
        run(thread, fibre);
    }
}

static bool is_late(struct thread *thread)
{
    return UNLIKELY(thread->limit != ARCH_FOREVER) && driver_now(thread->sub) >= thread->limit;
}

void thread_drive(struct thread *thread)
{
    begin(thread);
    pool_wait_polled(thread, thread->pool, 0); /* its descriptor is readable no more */
    bool late = false;                         /* not before something was run: who gives little time gets on, too */
    while (!pool_stops(thread->pool) && !late && !thread_is_to_go(thread)) {
        pool_look(thread);
        struct fibre *fibre = thread_pick(thread);
        if (!fibre && !thread->waits)
            break;
        run(thread, fibre ? fibre : pool_find_work(thread));
        late = is_late(thread);
    }
    plain_store(&thread->odd.leave, false, memory_order_relaxed);
}

/* Under a seed strands are taken over far more often than by the clock, if that is asked for. */
static bool stirs_by_seed(struct thread *thread)
{
    return UNLIKELY(thread->driver != NULL) && thread->pool->balance == BALANCE_STIR &&
           !driver_choose(thread, STIR_EVERY);
}

/* Called every `period` operations, which is so few that they take less than a millisecond together if the last ones
 * did. */
COLD void thread_tick_(struct thread *thread)
{
    uint64_t now = driver_ticks(thread), elapsed = now - thread->ticked, ms = driver_ticks_per_ms(thread);
    thread->ticked = now;
    if (thread->driver)
        thread->period = thread->driver->operation(thread, __builtin_return_address(0)) ? 1 : PERIOD_MOST;
    else if (elapsed < ms / 4)
        thread->period = PERIOD_MOST;
    else if (elapsed > ms / 2)
        thread->period = 1;
    thread->ticks = thread->period;
    if (UNLIKELY(atomic_load_explicit(&thread->hold, memory_order_relaxed)))
        pool_stand_still(thread);
    if (is_late(thread)) /* back to the driver, at the next switch */
        plain_store(&thread->odd.leave, true, memory_order_relaxed);
    bool early = thread->switches - thread->looked_switches < LOOK_EVERY && now - thread->looked < ms;
    if (early && !stirs_by_seed(thread))
        return;
    thread->looked_switches = thread->switches;
    thread->looked = now;
    thread->picks.fair = true;
    if (now - thread->service.noted >= ms) {
        thread->now = driver_now(thread->sub);
        service_note(thread, now, ms);
    }
    pool_look(thread);
}
