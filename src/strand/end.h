/*
 * The end of a strand, and waiting for it. Page: docs/protocols/end.md.
 *
 * PARTIES   the strand that ends; its owner (join, leave, hand-off); strands that wait for the end.
 * STATE     ends: 0, or a list of wait nodes (the newest first), with bits: LOCK (a party changes the list or the
 *           anchor), NOTIFY (the scope is notified of the end in any case), OVER (the strand has ended; the list stays
 *           empty).
 *             nodes --(swap)--> node, nodes                 a waiter links its node
 *             nodes --(swap)--> nodes+LOCK --> fewer nodes  a waiter takes its node out
 *             nodes --(swap)--> nodes+LOCK --> nodes+NOTIFY a hand-off, after which the scope is another
 *             nodes --(swap)--> nodes+NOTIFY                the owner joins its plain scope; a spawn into a scope with
 *                                                           flags sets it before others see the strand
 *             nodes --(swap)--> OVER                        the end, if the scope is not notified
 *             nodes --(swap)--> nodes+LOCK --> OVER         the end of a strand that failed, or has NOTIFY
 * OWNERSHIP outcome, result and exception belong to the strand before OVER, and to the owner after it.
 * INVARIANTS [E1] after OVER the ending strand does not touch its control block: the owner may have freed it. [E2]
 *           every linked node is released (linked = 0) exactly once. [E3] a failure is raised in the scope before OVER.
 *           [E4] under LOCK, if a node is marked LINKED_BACK, so are all nodes behind it, and link.prev of each points
 *           to the node before it (NULL for the first), except that nodes may have been linked before the first marked
 *           one since. So each node is marked once, and removing n nodes costs O(n).
 * ORDERING  [E5] loads of `ends` acquire, unless a swap follows; stores release, swaps do both. So what the strand did
 *           happens before its end is seen, a node in the list is complete, and each critical section under LOCK
 *           happens before the next.
 * NOT DONE  a counted reference for as long as a strand waits: a reference until its node is linked is enough, because
 *           the end releases every linked node [E2], and an interrupted waiter reaches the strand by its handle.
 * TESTED BY tests/models/end.pml, tests/models/wait.pml (the release of a node).
 */
#ifndef STRAND_END_H
#define STRAND_END_H

#include "handle.h"
#include "wait.h"

static inline bool ended(struct cb *c)
{
    return atomic_load_explicit(&c->ends, memory_order_acquire) & ENDS_OVER; /* [E5] */
}

/* Tells the sanitizer that the caller sees what the strand did, which has ended or is gone. */
static inline void end_seen(strand handle)
{
    void *c = (void *)(uintptr_t)handle.bits[0];
    if (arch_in_handles(c))
        arch_san_acquire(c);
}

/* Ends the current strand, whose function has returned or thrown. Runs on the strand's stack, which stays in use until
 * the next switch. */
void end_slowly(struct thread *thread, struct cb *c);
void end_waited_for_(struct thread *thread, uintptr_t ends);
void end_publish_slowly(struct thread *thread, struct cb *c);
static inline __attribute__((always_inline)) void end_strand(struct thread *thread, struct cb *c);
/* sched_ops.refuse. */
void end_refused(struct member *member, int error);

/* After an interrupted wait: takes the node out, or waits until the ending strand has released it. The handle may be
 * stale. */
void ends_unlink(struct thread *thread, strand handle, struct wait_node *node);
void ends_lock(struct thread *thread, struct cb *c, uintptr_t *before);

/* Waits for the end of a strand, which the caller keeps from being freed until the node is linked. has_ref: the call
 * releases the caller's reference after the node is linked. `handle` is the strand's. floor: sources below it are put
 * off. `first`: a fibre to run next, which the caller has taken out of its queue, or NULL. Returns false if the caller
 * has to check again: the wait was interrupted, or did not begin. */
bool end_wait(struct thread **thread, struct cb *me, struct cb *c, strand handle, uint32_t floor, struct fibre *first,
              bool has_ref);
/* Spins until OVER: the end of the child is under way on another thread. NULL is allowed. */
void end_await(struct thread *thread, struct cb *child);
/* Consumes an ended child: takes it out of its scope, drops what the owner has not taken, and frees the control
 * block. */
void scope_ends_consume_slow_(struct thread *thread, struct scope *scope, struct cb *child);
/* As scope_ends_consume_slow_, for a child that is no longer in its scope. */
void end_retire(struct thread *thread, struct cb *child);
static inline __attribute__((always_inline)) void end_consume(struct thread *thread, struct scope *scope,
                                                              struct cb *child);

/* Returns what a strand ended by (e, taken from c, or NULL) as others see it. The caller has to pass it on or show it;
 * one that releases an exception without suppressed ones need not call this. Before c is freed. */
strand_exception *end_taken(struct cb *c, strand_exception *e);

/* Undoes the arming of end_wait: the strand behind handle has ended, or an interruption holds. linked: the node is
 * linked to that strand's end. Returns as end_wait does. */
bool end_wait_undo(struct thread **thread, struct cb *me, strand handle, struct fibre *first, bool linked);

/* ---- inline: the fast path of every strand ------------------------------------------------------------------ */

/* Wakes the waiters of an end. A single one runs next, in the place of the strand that ended; several are queued.
 */
static inline __attribute__((always_inline)) void end_wake(struct thread *thread, uintptr_t ends)
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

static inline __attribute__((always_inline)) void end_strand(struct thread *thread, struct cb *c)
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

/* Links the strand's wait node. Returns false if c has ended. The caller keeps c (as its owner, or by a reference). */
bool ends_link_slow_(struct thread *thread, struct cb *c, struct wait_node *node);
static inline bool ends_link(struct thread *thread, struct cb *c, struct wait_node *node)
{
    uintptr_t ends = 0;
    node->next = NULL;
    atomic_store_explicit(&node->linked, 1, memory_order_relaxed);
    bool first = LIKELY(!atomic_load_explicit(&c->ends, memory_order_relaxed)) &&
                 LIKELY(swap_ends(&c->ends, &ends, (uintptr_t)node, thread->concurrent)); /* [E5] */
    return first || ends_link_slow_(thread, c, node);
}

static inline __attribute__((always_inline)) void end_consume(struct thread *thread, struct scope *scope,
                                                              struct cb *child)
{
    if (UNLIKELY(child->slow_end || scope->flags)) {
        scope_ends_consume_slow_(thread, scope, child);
        return;
    }
    list_remove(&child->sibling);
    scope->count--;
    cb_free(thread, child);
}

#endif
