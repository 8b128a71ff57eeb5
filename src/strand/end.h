/*
 * The end of a strand, and waiting for it. Page: docs/protocols/end.md.
 *
 * PARTIES   the strand that ends; its owner (join, leave); anybody that waits; whoever hands it off.
 * STATE     ends: 0, or a list of wait nodes (the newest first), with bits: LOCK (somebody changes the list or the anchor), NOTIFY
 *           (the scope wants to know of every end), OVER (it has ended; the list is empty for good).
 *             nodes --(swap)--> nodes', LOCK --> nodes''        waiters, hand-off
 *             nodes --(swap)--> OVER                             the end, if nobody else has to be told
 *             nodes --(swap)--> nodes+LOCK --> OVER               the end of a failed child, or of one whose scope is notified
 * OWNERSHIP what the strand wrote (outcome, result, exception) is its own before OVER and the owner's after it. From OVER on the
 *           ending strand touches nothing of its control block: the owner may have given it away [E1].
 * INVARIANTS [E2] every node that was linked is claimed, or told that it is let go of (linked = 0), exactly once. [E3] a failure is
 *           raised in the scope before OVER.
 * ORDERING  OVER is stored with release, read with acquire.
 * NOT DONE  a reference count for waiters: the pin is enough for the moment of linking, and nodes know when they are let go of.
 */
#ifndef STRAND_END_H
#define STRAND_END_H

#include "wait.h"

static inline bool ended(struct cb *c)
{
    return atomic_load_explicit(&c->ends, memory_order_acquire) & ENDS_OVER;
}

/* The current strand's function has returned or thrown; ends it. On its own stack, which is in use until the next switch. */
void end_strand(struct thread *thread, struct cb *c);
/* sched_ops.refuse. */
void end_refused(struct member *member, int error);

/* Link the strand's wait node; false if c has ended. The caller keeps c (owner or pin). */
bool ends_link(struct thread *thread, struct cb *c, struct wait_node *node);
/* After an interrupted wait: make sure that nobody holds the node. The handle may be stale by now. */
void ends_unlink(struct thread *thread, strand handle, struct wait_node *node);
void ends_lock(struct thread *thread, struct cb *c, uintptr_t *before);

/* Wait for the end of a strand that the caller keeps, at least until its node is linked: a pin is given back then. `handle` is
 * its. floor: interruptions below are put off. Returns false if it was interrupted. `first`: a fibre to run next, taken out of its
 * queue by the caller, or NULL. */
bool end_wait(struct thread **thread, struct cb *me, struct cb *c, strand handle, uint32_t floor, struct fibre *first, bool pinned);
/* The end of this child is under way on another thread: wait for OVER. NULL is allowed. */
void end_await(struct thread *thread, struct cb *child);
/* The owner has taken what it wants of an ended child: forget it, drop the rest, give the control block back. */
void end_consume(struct thread *thread, struct scope *scope, struct cb *child);

#endif
