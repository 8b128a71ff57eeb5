/*
 * Waiting for quiescence. The protocol block of the decision is in src/sched/quiescent.h; page:
 * docs/protocols/quiescence.md.
 */
#ifndef RUN_QUIESCENCE_H
#define RUN_QUIESCENCE_H

#include "run.h"

/* Initialises the list of waiters, before the run has strands. */
void quiescence_open(struct run *run);
/* The sched_ops.quiescent function: claims the waits that are over, and judges a run that is out of work. Returns
 * whether the caller must call again soon, even if nothing moves meanwhile. asked: how many times in a row that was so
 * before. */
bool quiescence_comes(struct thread *thread, struct batch *batch, uint32_t asked);
/* The run_ops.wait_quiescent_or function: publishes the strand in *waiter, and waits until the run is quiescent or
 * *over is set. */
void quiescence_wait_or(struct thread *thread, struct cb *me, struct cb *_Atomic *waiter, const _Atomic bool *over);
/* The run_ops.wake_quiescence_waiter function: wakes the strand if it waits for quiescence. */
void quiescence_wake(struct thread *thread, const struct cb *waiter);
/* Wakes the strands that wait for a pool that has ended and so has no seeker. */
void quiescence_pool_over(struct thread *thread, struct pool *pool);

#endif
