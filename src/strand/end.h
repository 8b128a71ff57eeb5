/*
 * The end of a strand, and waiting for it. Page: docs/protocols/end.md.
 *
 * PARTIES   the strand that ends; its owner (join, leave); anybody that waits; whoever hands it off.
 * STATE     ends: 0, or a list of wait nodes (the newest first), with bits: LOCK (somebody changes the list or the
 *           anchor), NOTIFY (the scope wants to know of every end), OVER (it has ended; the list is empty for good).
 *             nodes --(swap)--> nodes', LOCK --> nodes''    waiters, hand-off
 *             nodes --(swap)--> nodes+NOTIFY                the owner joins its plain scope
 *             nodes --(swap)--> OVER                        the end, if nobody else has to be told
 *             nodes --(swap)--> nodes+LOCK --> OVER         the end of one that failed, or whose scope is notified
 * OWNERSHIP what the strand wrote (outcome, result, exception) is its own before OVER and the owner's after it.
 * INVARIANTS [E1] from OVER on the ending strand touches nothing of its control block: the owner may have given it
 *           away. [E2] every node that was linked is claimed, or told that it is let go of (linked = 0), exactly once.
 *           [E3] a failure is raised in the scope before OVER. [E4] under LOCK, where a node says LINKED_BACK, so do
 *           all behind it, and each of them knows the one before it (link.prev; NULL: it is the first), unless others
 *           were linked before it since. So each node learns that once, and n that are taken out cost O(n).
 * ORDERING  [E5] loads of `ends` acquire, stores release, swaps do both: what the strand did happens before its end is
 *           seen; a node that is found in the list is complete; and one critical section under LOCK happens before the
 *           next.
 * NOT DONE  a counted reference for as long as a strand waits: a reference until its node is linked is enough, because
 *           the end releases every linked node [E2], and an interrupted waiter reaches the strand by its handle.
 * TESTED BY tests/models/end.pml, tests/models/wait.pml (what becomes of a node).
 */
#ifndef STRAND_END_H
#define STRAND_END_H

#include "handle.h"
#include "wait.h"

static inline bool ended(struct cb *c)
{
    return atomic_load_explicit(&c->ends, memory_order_acquire) & ENDS_OVER; /* [E5] */
}

/* A strand that has ended, or is gone: the caller sees what it did. */
static inline void end_seen(strand handle)
{
    void *c = (void *)(uintptr_t)handle.bits[0];
    if (arch_in_handles(c))
        arch_san_acquire(c);
}

/* The current strand's function has returned or thrown; ends it. On its own stack, which is in use until the next
 * switch. */
void end_slowly(struct thread *thread, struct cb *c);
void end_waited_for_(struct thread *thread, uintptr_t ends);
void end_publish_slowly(struct thread *thread, struct cb *c);
static inline void end_strand(struct thread *thread, struct cb *c);
/* sched_ops.refuse. */
void end_refused(struct member *member, int error);

/* After an interrupted wait: make sure that nobody holds the node. The handle may be stale by now. */
void ends_unlink(struct thread *thread, strand handle, struct wait_node *node);
void ends_lock(struct thread *thread, struct cb *c, uintptr_t *before);

/* Wait for the end of a strand that the caller keeps, at least until its node is linked. has_ref: the caller has a
 * reference, which is given back then. `handle` is the strand's. floor: interruptions below are put off. Returns false
 * if it was interrupted. `first`: a fibre to run next, taken out of its queue by the caller, or NULL. */
bool end_wait(struct thread **thread, struct cb *me, struct cb *c, strand handle, uint32_t floor, struct fibre *first,
              bool has_ref);
/* The end of this child is under way on another thread: wait for OVER. NULL is allowed. */
void end_await(struct thread *thread, struct cb *child);
/* The owner has taken what it wants of an ended child: forget it, drop the rest, give the control block back. */
void end_consume_slowly(struct thread *thread, struct scope *scope, struct cb *child);
/* The rest of that, for a child that has been taken out of its scope. */
void end_retire(struct thread *thread, struct cb *child);
static inline void end_consume(struct thread *thread, struct scope *scope, struct cb *child);

/* The strand is armed, and (if linked) linked to the end of the strand behind handle, but that has ended, or an
 * interruption holds. */
bool end_wait_undo(struct thread **thread, struct cb *me, strand handle, struct fibre *first, bool linked);

/* ---- inline: what every strand pays for ------------------------------------------------------------------ */

/* Somebody waited for an end: make the one that is alone run next, in the place of what ended here; several are queued.
 */
static inline void end_wake(struct thread *thread, uintptr_t ends)
{
    struct wait_node *node = (struct wait_node *)ends;
    const uint32_t slow = thread->slow_pick.own & (PICK_FAIR | PICK_SIM);
    if (UNLIKELY(node->next != NULL || node->waiter->member.fibre->pool != thread->pool || slow)) {
        end_waited_for_(thread, ends);
        return;
    }
    struct cb *waiter = node->waiter;
    bool claimed = wait_claim(node, thread->concurrent);
    atomic_store_explicit(&node->linked, 0, memory_order_release); /* [E2] */
    if (LIKELY(claimed))
        thread_go_on_with(thread, &waiter->member);
}

static inline void end_strand(struct thread *thread, struct cb *c)
{
    uintptr_t ends = atomic_load_explicit(&c->ends, memory_order_acquire); /* [E5] */
    if (UNLIKELY(c->slow_end || (ends & (ENDS_LOCK | ENDS_NOTIFY)))) {
        end_slowly(thread, c);
        return;
    }
    c->outcome = OUTCOME_VALUE;
    count_ended(thread);
    thread_detach(thread);
    arch_san_release(c);
    while (UNLIKELY(!swap_ends(&c->ends, &ends, ENDS_OVER, thread->concurrent))) { /* [E5] */
        if (ends & (ENDS_LOCK | ENDS_NOTIFY)) {
            end_publish_slowly(thread, c);
            return;
        }
    }
    if (ends)
        end_wake(thread, ends); /* [E1] */
}

/* Link the strand's wait node; false if c has ended. The caller keeps c (as its owner, or by a reference). */
static inline bool ends_link(struct thread *thread, struct cb *c, struct wait_node *node)
{
    atomic_store_explicit(&node->linked, 1, memory_order_relaxed);
    uintptr_t ends = atomic_load_explicit(&c->ends, memory_order_acquire); /* [E5] */
    for (;;) {
        if (UNLIKELY(ends & (ENDS_OVER | ENDS_LOCK))) {
            if (ends & ENDS_OVER)
                return false;
            platform_await(thread);
            ends = atomic_load_explicit(&c->ends, memory_order_acquire); /* [E5] */
            continue;
        }
        node->next = (struct wait_node *)(ends & ~(uintptr_t)ENDS_BITS);
        if (LIKELY(swap_ends(&c->ends, &ends, (uintptr_t)node | (ends & ENDS_BITS), thread->concurrent))) /* [E5] */
            return true;
    }
}

static inline void end_consume(struct thread *thread, struct scope *scope, struct cb *child)
{
    if (UNLIKELY(child->slow_end || scope->flags)) {
        end_consume_slowly(thread, scope, child);
        return;
    }
    list_remove(&child->sibling);
    scope->count--;
    cb_free(thread, child);
}

#endif
