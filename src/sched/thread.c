/*
 * A thread's life: the loop that runs fibres, and the thread's passes. The protocol block is in thread.h.
 */
#include "balance.h"
#include "hold.h"
#include "pinned.h"
#include "polled.h"
#include "pool.h"
#include "resize.h"
#include "seek.h"
#include "switch.h"
#include "timers.h"

enum { PERIOD_MOST = 8, STIR_EVERY = 4, PASS_EVERY = 61 }; /* contract §2: every 61 switches or every millisecond */

NOINLINE struct fibre *thread_pick_after_end_(struct thread *thread)
{
    thread->current = NULL; /* other threads may inspect this one now */
    thread_tick(thread);
    platform_point(thread);
    return thread_is_to_go(thread) ? NULL : thread_pick(thread);
}

/* ---- the thread's life ----------------------------------------------------------------------------------- */

/* Waits until the switch away from the fibre is complete. Called from the loop, for which no other thread waits. */
static void await_context(struct thread *thread, struct fibre *fibre)
{
    while (fibre->stack && !atomic_load_explicit(&fibre->context, memory_order_acquire)) /* [S1] */
        platform_await(thread);
}

/* Prepares a visit of a shared fibre. Returns false if its strand could not start. */
static bool enter_shared(struct thread *thread, struct shared_fibre *shared)
{
    int error = shared_fibre_enter(thread, shared);
    if (LIKELY(!error))
        return true;
    struct member *refused = shared->fibre.current;
    shared->fibre.current = NULL;
    thread->sub->ops->refuse(refused, error);
    shared_fibre_give_up(thread, shared);
    shared_fibre_release(thread, shared, SHARED_STRAND);
    return false;
}

/* Switches from the loop to a fibre, and ends a strand that could not start. */
static void go_to(struct thread *thread, struct fibre *fibre)
{
    thread->after = AFTER_LOOP;
    switch_jump(thread, &thread->loop_san, fibre, false);
    if (UNLIKELY(thread->refused.fibre != NULL)) {
        struct fibre *refused = thread->refused.fibre;
        thread->refused.fibre = NULL;
        thread->sub->ops->refuse(refused->current, thread->refused.error);
    }
}

/* Runs the fibre, and then the one that has to go on after that (thread->late). */
static void run(struct thread *thread, struct fibre *fibre)
{
    while (fibre) {
        thread->late = NULL;
        if (UNLIKELY(fibre_is_shared(fibre))) {
            if (enter_shared(thread, shared_of(fibre)))
                go_to(thread, fibre);
        } else {
            await_context(thread, fibre);
            go_to(thread, fibre);
        }
        fibre = thread->late;
    }
}

/* Prepares the thread for its loop. */
static void begin(struct thread *thread)
{
    thread->cxx = arch_cxx_globals();
    thread->locals = arch_locals_generation();
    if (thread->cxx) {
        thread->loop_cxx = *thread->cxx;
        switch_all_save_cxx(thread->sub); /* another run may have found the runtime since the others began */
    }
    bool fences = thread->concurrent && !arch_membarrier_works;
    if (thread->cxx || thread->platform || thread->census || thread->sub->memory.most || fences || arch_tool)
        atomic_fetch_or_explicit(&thread->slow_switch.any, SWITCH_CHECK, memory_order_relaxed);
    thread->here = &thread->loop_san;
    if (!thread->platform)
        arch_san_thread(&thread->loop_san);
    thread->pass.at = thread->ticked = thread->pass.young_served = platform_ticks(thread);
    thread->now = platform_now(thread->sub);
    balance_begin(thread, thread->pass.at);
}

void thread_loop(struct thread *thread)
{
    begin(thread);
    for (;;) {
        thread_must_not_be_left(thread);
        platform_point(thread);
        if (thread_is_to_go(thread) && thread_goes_(thread))
            return;
        struct fibre *fibre = thread_pick(thread);
        if (!fibre && !(fibre = pool_find_work(thread)) && pool_stops(thread->pool))
            return;
        run(thread, fibre);
    }
}

/* Returns whether the time of a driven thread is over. */
static bool is_late(struct thread *thread)
{
    return UNLIKELY(thread->limit != ARCH_FOREVER) && platform_now(thread->sub) >= thread->limit;
}

void thread_drive(struct thread *thread)
{
    begin(thread);
    pool_wait_polled(thread, thread->pool, 0); /* after this the poller's descriptor is not readable */
    bool late = false; /* false before the first strand: a call with little time makes progress, too */
    while (!pool_stops(thread->pool) && !late && !thread_is_to_go(thread)) {
        pool_pass(thread);
        struct fibre *fibre = thread_pick(thread);
        if (!fibre && !thread->waits)
            break;
        run(thread, fibre ? fibre : pool_find_work(thread));
        late = is_late(thread);
    }
    atomic_fetch_and_explicit(&thread->slow_switch.any, ~(uint32_t)SWITCH_LEAVE, memory_order_relaxed);
}

/* Returns whether the seed asks for a pass. With BALANCE_STIR, strands then move far more often than by the clock. */
static bool stirs_by_seed(struct thread *thread)
{
    return UNLIKELY(thread->platform != NULL) && thread->pool->balance == BALANCE_STIR &&
           !platform_choose(thread, STIR_EVERY);
}

/* Makes a thread's tick. It comes every `period` operations, which take less than a millisecond together if the last
 * ones did. */
COLD void thread_tick_(struct thread *thread)
{
    uint64_t now = platform_ticks(thread), elapsed = now - thread->ticked, ms = platform_ticks_per_ms(thread);
    thread->ticked = now;
    if (thread->platform)
        thread->period = thread->platform->operation(thread, __builtin_return_address(0)) ? 1 : PERIOD_MOST;
    else if (elapsed < ms / 4)
        thread->period = PERIOD_MOST;
    else if (elapsed > ms / 2)
        thread->period = 1;
    thread->ticks = thread->period;
    if (UNLIKELY(atomic_load_explicit(&thread->hold.asked, memory_order_relaxed)))
        pool_stand_still(thread);
    if (is_late(thread)) /* back to the caller of pool_drive, at the next switch */
        atomic_fetch_or_explicit(&thread->slow_switch.any, SWITCH_LEAVE, memory_order_relaxed);
    bool early = thread->switches - thread->pass.switches < PASS_EVERY && now - thread->pass.at < ms;
    if (early && !stirs_by_seed(thread))
        return;
    thread->pass.switches = thread->switches;
    thread->pass.at = now;
    thread->slow_pick.own |= PICK_FAIR;
    if (now - thread->balance.recorded >= ms) {
        thread->now = platform_now(thread->sub);
        balance_record(thread, now, ms);
    }
    pool_pass(thread);
}
