/*
 * Waiting for a time, and with a time limit. The protocol block is in wait.h.
 */
#include "wait.h"

#include "../sched/switch.h"
#include "../sched/timers.h"
#include "exception.h"
#include "interrupt.h"
#include "misuse.h"
#include "throw.h"

/* The epoch of the arming is in the node. */
struct member *wait_time_comes(struct timer *timer)
{
    struct cb *c = CONTAINER(timer, struct cb, wait.timer);
    bool shared = c->member.fibre->pool->sub->concurrent;
    return wait_claim_as(NULL, &c->wait.node, timer->index, shared) == CLAIM_WON ? &c->member : NULL;
}

/* The timer did not win: an error or an interruption. */
static COLD int until_otherwise(struct cb *me, struct pool *pool, int how)
{
    me->blocked = BLOCKED_NOT;
    if (how >= 0)
        timer_stop(thread_self(), pool, &me->wait.timer); /* [W2] */
    return how;
}

/* The switch is inlined into one frame: there may be many sleepers, and each has this frame in its saved stack. */
OWN_INLINE_ALWAYS int until(struct thread *thread, struct cb *me, int64_t when, uint32_t floor)
{
    struct pool *pool = thread->pool;
    timer_init(&me->wait.timer, TIMER_WAIT, 0);
    me->wait.node.epoch = wait_arm(thread, me, floor);
    int error = timer_start(thread, pool, &me->wait.timer, when);
    bool bad = error || atomic_load_explicit(&me->due, memory_order_seq_cst) > floor; /* [W4] */
    if (UNLIKELY(bad) && wait_retract(thread, me))
        return until_otherwise(me, pool, error ? error : WAIT_INTERRUPTED);
    switch_park(thread);
    int tag = (int)wait_over(me);
    return LIKELY(tag == WAIT_WON) ? tag : until_otherwise(me, pool, tag);
}

int wait_until(struct thread *thread, struct cb *me, int64_t when, uint32_t floor)
{
    return until(thread, me, when, floor);
}

/* There was no memory for the timer, or an interruption. Throws, or waits again if the interruption is deferred. */
static COLD void sleep_otherwise(struct cb *me, strand_time when, int how)
{
    while (how != WAIT_WON) {
        if (how < 0)
            throw_no_memory(me, "a timer");
        struct thread *thread = thread_self();
        if (interrupted_here(me))
            interrupt_throw(thread, me, 0);
        wait_because(thread, me, BLOCKED_SLEEP, (uint64_t)when.ns);
        how = wait_until(thread, me, when.ns, own_of(me)->floor);
    }
}

void wait_sleep(strand_time when, const char *function)
{
    struct thread *thread = must_be_strand(function);
    struct cb *me = current_of(thread);
    may_block(thread, me, function);
    if (when.ns <= platform_now(thread->sub)) {
        thread_yield(thread);
        return;
    }
    wait_because(thread, me, BLOCKED_SLEEP, (uint64_t)when.ns);
    int how = until(thread, me, when.ns, own_of(me)->floor);
    if (UNLIKELY(how != WAIT_WON))
        sleep_otherwise(me, when, how);
}
