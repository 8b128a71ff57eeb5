/*
 * Waiting for quiet, and what is done when a run is out of work. The protocol block of the decision is in
 * src/sched/quiet.h; page: docs/protocols/quiet.md.
 */
#ifndef STRAND_QUIET_H
#define STRAND_QUIET_H

#include "core.h"

/* At the beginning of a run: from now on sched_ops.quiet is asked for what its options want. */
void quiet_open(struct runtime *runtime);
/* sched_ops.quiet. Returns whether it is to be asked once more soon, without anybody having moved. asked: how often
 * that was so in a row. */
bool quiet_comes(struct thread *thread, struct batch *batch, uint32_t asked);
/* Wait until the run is dry, or `over` is set by somebody who calls quiet_wake then for *waiter, which is the caller
 * meanwhile. Throws if it is interrupted. */
void quiet_wait_or(struct thread *thread, struct cb *me, struct cb *_Atomic *waiter, const _Atomic bool *over);
void quiet_wake(struct thread *thread, const struct cb *waiter);
/* The pool has ended: nobody of it says so any more. */
void quiet_pool_over(struct thread *thread, struct pool *pool);
/* Somebody outside of the run has acted on it, and may do so again. Any thread; in the handler of a signal, too. */
void quiet_reached(struct subprocess *sub);

/* Threads of the process that are none of the run's, and might act on it. */
bool quiet_has_strangers(struct runtime *runtime);

/* The run is being shut down: once it is out of work, it need not be waited for. */
void quiet_while_stopping(struct runtime *runtime);

/* What the root strand throws, to learn that nothing can go on: new, without a trace. */
strand_exception *quiet_deadlock(struct thread *thread, struct cb *root);

/* The root, which lives, is cancelled by the run itself. Returns it if the caller has to make it runnable. */
struct member *quiet_cancel_root(struct runtime *runtime, const char *why);

#endif
