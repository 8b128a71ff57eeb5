/*
 * The end of a strand, and waiting for it. Page: docs/protocols/end.md.
 *
 * PARTIES   the strand that ends; its owner (join, leave, hand-off); strands that wait for the end.
 * STATE     ends: 0, or a list of wait nodes (the newest first), with bits: LOCK (a party changes the list or the
 *           anchor), NOTIFY (the scope is notified of the end in any case), OVER (the strand has ended; the list stays
 *           empty), PARTED (see JOINER).
 *             nodes --(swap)--> node, nodes                 a waiter links its node
 *             nodes --(swap)--> nodes+LOCK --> fewer nodes  a waiter takes its node out
 *             nodes --(swap)--> nodes+LOCK --> nodes+NOTIFY a hand-off, after which the scope is another
 *             nodes --(swap)--> nodes+NOTIFY                the owner joins its plain scope; a spawn into a scope with
 *                                                           flags sets it before others see the strand
 *             nodes --(swap)--> nodes+LOCK --> nodes+PARTED an interrupter ends the wait of the joiner
 *             nodes --(swap)--> OVER                        the end, if the scope is not notified
 *             nodes --(swap)--> nodes+LOCK --> OVER         the end of a strand that failed, or has NOTIFY
 * JOINER    an owner that joins a child which waits, not started, in the queue of the owner's thread takes the child
 *           out of the queue and runs it next. No other strand runs the child meanwhile, so the owner links no node: it
 *           sets has_joiner in the child, and its own wait to WAIT_CHILD (wait.h). The child's end reads has_joiner
 *           before OVER, and wakes the owner of the scope without a claim. An interrupter finds the child by
 *           child_awaited. It ends the owner's wait under the child's LOCK and leaves PARTED, which stays. From then on
 *           the child has no joiner, and an owner that joins it again links a node. So a join that is not interrupted
 *           needs three locked instructions: for the arming, for OVER and for the retirement. A node would need two
 *           more, for its link and for the claim.
 * OWNERSHIP outcome, result and exception belong to the strand before OVER, and to the owner after it.
 * INVARIANTS [E1] after OVER the ending strand does not touch its control block: the owner may have freed it. [E2]
 *           every linked node is released (linked = 0) exactly once. [E3] a failure is raised in the scope before
 *           OVER. [E4] under LOCK the nodes that are marked LINKED_BACK form the last part of the list. link.prev of
 *           each points to the node before it; that of the first of them is NULL, also after unmarked nodes were
 *           linked before it. Each node is marked once, so removing n nodes costs O(n). [E6] a wait in WAIT_CHILD ends
 *           once: by the child's end, after its swap to OVER from a value without LOCK and PARTED, or under LOCK; by
 *           an interrupter, under LOCK and before OVER; or by the owner itself, before the child runs. So the end
 *           changes the joiner's wait by a plain store. [E7] an end under LOCK ends the joiner's wait before it waits
 *           for the scope's lock. An interrupter may hold that lock while it waits for LOCK, or for a reference to the
 *           child, and gives up when the wait has ended. [E8] an interrupter locks the child only while it has a
 *           reference to the child: the joiner may have consumed the child since the interrupter has read
 *           child_awaited.
 * ORDERING  [E5] loads of `ends` acquire, unless a swap follows; stores release, swaps do both. So what the strand did
 *           happens before its end is seen, a node in the list is complete, and each critical section under LOCK
 *           happens before the next. [E8] the joiner stores child_awaited by release, and an interrupter acquires it:
 *           if the interrupter finds a later child, it finds that the earlier wait has ended.
 * NOT DONE  a counted reference for as long as a strand waits: a reference until its node is linked is enough, because
 *           the end releases every linked node [E2], and an interrupted waiter reaches the strand by its handle. A
 *           joiner that calls its child like a function, a wait that no interrupter sees until the child suspends, an
 *           arming without a locked instruction: docs/decisions.md.
 * TESTED BY tests/models/end.pml, tests/models/joined.pml (JOINER), tests/models/wait.pml (the release of a node).
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
/* Wakes the waiters of an end, of which there are some. A single one runs next, in the place of the strand that ended;
 * several are queued. */
void end_wake(struct thread *thread, uintptr_t ends);
/* Wakes the joiner, unless it is NULL, and the waiters. All are queued. */
void end_waited_for_(struct thread *thread, struct cb *joiner, uintptr_t ends);
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

/* Returns the owner if it waits in WAIT_CHILD for the end of c. Certain once a swap from `ends` has succeeded [E6]. */
static inline struct cb *end_joiner(const struct cb *c, uintptr_t ends)
{
    if (!c->has_joiner || UNLIKELY(ends & ENDS_PARTED))
        return NULL;
    const struct scope *anchor = plain_load(&c->anchor, memory_order_relaxed);
    return block_owner(&anchor->block);
}

/* Ends the wait of the joiner. The caller has to make it runnable. */
static inline void end_joiner_wins(struct cb *joiner)
{
    uint64_t state = atomic_load_explicit(&joiner->wait.state, memory_order_relaxed);
    ASSERT_SLOW(wait_tag(state) == WAIT_CHILD);
    state = (state & ~UINT64_C(0xff)) | WAIT_WON;
    atomic_store_explicit(&joiner->wait.state, state, memory_order_release); /* [W1] [E6] */
}

/* Wakes the joiner, which runs next, in the place of the strand that ended. If there are waiters too, all are
 * queued. Both are on the pool of this thread, which had the child in its queue when the joiner ran here. */
static inline __attribute__((always_inline)) void end_wake_joiner(struct thread *thread, struct cb *joiner,
                                                                  uintptr_t ends)
{
    const uint32_t slow = thread->slow_pick.own & (PICK_FAIR | PICK_SIM);
    ASSERT_SLOW(joiner->member.fibre->pool == thread->pool);
    if (UNLIKELY(ends || slow)) {
        end_waited_for_(thread, joiner, ends);
        return;
    }
    end_joiner_wins(joiner);
    thread_go_on_with(thread, &joiner->member);
}

static inline __attribute__((always_inline)) void end_strand(struct thread *thread, struct cb *c)
{
    uintptr_t ends = atomic_load_explicit(&c->ends, memory_order_acquire); /* [E5] */
    if (UNLIKELY(c->slow_end || (ends & (ENDS_LOCK | ENDS_NOTIFY | ENDS_PARTED)))) {
        end_slowly(thread, c);
        return;
    }
    c->outcome = OUTCOME_VALUE;
    count_ended(thread);
    thread_detach(thread);
    arch_san_release(c);
    struct cb *joiner = end_joiner(c, ends);
    while (UNLIKELY(!swap_ends(&c->ends, &ends, ENDS_OVER, thread->concurrent))) { /* [E5] */
        if (ends & (ENDS_LOCK | ENDS_NOTIFY | ENDS_PARTED)) {                      /* [E6] */
            end_publish_slowly(thread, c);
            return;
        }
    }
    if (joiner)
        end_wake_joiner(thread, joiner, ends); /* [E1] */
    else if (ends)
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
