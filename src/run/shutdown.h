/*
 * Shutting a run down, openly, from any thread. Page: docs/protocols/shutdown.md.
 *
 * PARTIES   askers: any thread of the process, also in the handler of a signal; a thread of the first pool, which takes
 *           the post; strands that wait for the shut-down; the root strand.
 * STATE     asked: NO, BEING (an asker writes `why`), YES. by: the earliest instant that was asked for. posted: the
 *           post is on its way. begun: the strands can see the shut-down. The timer is the first pool's.
 *
 *             ask: `why`, once; lower `by`; post, unless that is posted                any thread
 *             the post: clear posted; begin, once; cancel the root, or start the timer a thread of the first pool
 *             the timer: cancel the root                                               another one of that pool, or it
 *
 * OWNERSHIP `why` belongs to the first asker until asked is YES; the timer belongs to the thread with the role of the
 *           seeker of the first pool.
 * INVARIANTS [SD1] `by` only falls, and each value that it falls to is read: the asker that lowers it posts after that,
 *           and the post clears `posted` before it reads `by`.
 *           [SD2] a strand that is registered when `begun` is set is woken: both are done under the lock.
 *           [SD3] an asker keeps the run from ending, by a reference of the first pool's handle.
 * ORDERING  asked = YES (release) pairs with the reader of `why` (acquire). The asker lowers `by`, then exchanges
 *           `posted`; the post stores to `posted`, then loads `by`: sequentially consistent, so one of the two sees the
 *           other [SD1]. [SD5] begun (release) pairs with a load without the lock (acquire); a strand that registers
 *           loads it under the lock [SD2]. [SD4] end_requested (release), before the root is cancelled, pairs with the
 *           end of the root (acquire).
 * NOT DONE  a message in the run queues (S-31, S-32): it would have to wait for its turn.
 * TESTED BY tests/spec/shutdown.c, tests/sim/stops.c, tests/models/shutdown.pml.
 */
#ifndef RUN_SHUTDOWN_H
#define RUN_SHUTDOWN_H

#include "run.h"

enum asked { ASKED_NO, ASKED_BEING, ASKED_YES };

void shutdown_open(struct run *run);
/* The sched_ops.fire function of TIMER_SHUTDOWN: cancels the root strand. */
struct member *shutdown_comes(struct timer *timer);
/* Returns the reason in words. Called after a shut-down was asked for. */
const char *shutdown_reason(struct run *run);

/* Returns whether a shut-down was asked for: it has begun, or is about to. */
static inline bool shutdown_is_asked_for(struct run *run)
{
    return atomic_load_explicit(&run->shutdown.asked, memory_order_acquire) != ASKED_NO; /* [PB1] */
}

/* Returns whether strands can see the shut-down. */
static inline bool shutdown_has_begun(struct run *run)
{
    return atomic_load_explicit(&run->shutdown.begun, memory_order_acquire); /* [SD5] */
}

#endif
