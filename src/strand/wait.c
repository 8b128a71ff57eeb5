/*
 * Waiting for a time, and with a time limit. The protocol block is in wait.h.
 */
#include "wait.h"

#include "../sched/timers.h"
#include "interrupt.h"

/* Under the timers' lock. The epoch of the arming is in the node. */
static struct fibre *fire(struct timer *timer)
{
    struct cb *c = CONTAINER(timer, struct cb, wait.timer);
    return wait_claim(&c->wait.node, c->own.pool->sub->shared) ? c->member.fibre : NULL;
}

int wait_until(struct thread **thread, struct cb *me, int64_t when, uint32_t floor)
{
    struct pool *pool = (*thread)->pool;
    timer_init(&me->wait.timer, fire);
    me->wait.node.epoch = wait_arm(*thread, me, floor);
    int error = timer_start(*thread, pool, &me->wait.timer, when);
    bool bad = error || atomic_load_explicit(&me->due, memory_order_seq_cst) > floor; /* [W4] */
    if (!bad || !wait_retract(*thread, me)) {
        *thread = thread_park(*thread);
        uint32_t tag = wait_over(me);
        if (tag != WAIT_WON)
            timer_stop(*thread, pool, &me->wait.timer); /* [W2] */
        return (int)tag;
    }
    me->blocked = BLOCKED_NOT;
    if (error)
        return error;
    timer_stop(*thread, pool, &me->wait.timer);
    return WAIT_INTERRUPTED;
}
