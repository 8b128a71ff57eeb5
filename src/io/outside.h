/*
 * The last step of a wait for what another thread, or the kernel, does for a strand.
 */
#ifndef IO_OUTSIDE_H
#define IO_OUTSIDE_H

#include "../sched/thread.h"
#include "../strand/wait.h"

/* Parks until the armed wait ends, unless it has ended: over. The caller has looked whether it is over under the lock
 * under which its end comes, after it had stored the epoch there. Returns false if the wait was interrupted. */
static inline bool outside_await(struct thread **thread, struct cb *me, bool over, uint32_t floor)
{
    bool stays = !over && atomic_load_explicit(&me->due, memory_order_seq_cst) <= floor; /* [W4] */
    if (!stays && wait_retract(*thread, me)) {
        me->blocked = BLOCKED_NOT;
        return over;
    }
    quiescent_outside_begin(*thread);
    *thread = thread_park(*thread);
    quiescent_outside_end(*thread);
    return wait_over(me) == WAIT_WON || over;
}

#endif
