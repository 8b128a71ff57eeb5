/*
 * Waiting for quiescence. The protocol block of the decision is in src/sched/quiescent.h; page:
 * docs/protocols/quiet.md.
 */
#ifndef RUN_QUIESCENCE_H
#define RUN_QUIESCENCE_H

#include "run.h"

/* Before the run has strands. */
void quiescence_open(struct run *run);
/* sched_ops.quiescent: claims the waits that are over, and judges a run that is out of work. Returns whether the caller
 * has to ask once more soon, without any movement meanwhile. asked: how many times in a row that was so before. */
bool quiescence_comes(struct thread *thread, struct batch *batch, uint32_t asked);
/* run_ops.wait_dry_or */
void quiescence_wait_or(struct thread *thread, struct cb *me, struct cb *_Atomic *waiter, const _Atomic bool *over);
/* run_ops.wake_dry */
void quiescence_wake(struct thread *thread, const struct cb *waiter);
/* The pool has ended, and has no seeker any more: wakes the strands that wait for it. */
void quiescence_pool_over(struct thread *thread, struct pool *pool);

#endif
