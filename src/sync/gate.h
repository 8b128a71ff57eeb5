/*
 * The gate: what all locks are made of. A word that says how things stand, and a queue of those who wait. Page:
 * docs/protocols/locks.md.
 *
 * PARTIES   strands that pass, wait, or let others pass; selects among them; interrupters of those who wait.
 * STATE     word = value | GATE_WAITERS | GATE_LOCK. The value is the object's: an owner, permits, a count.
 *           WAITERS: the queue is not empty. LOCK: somebody is at the queue, and only he changes the word.
 * PROTOCOL  who finds neither bit may change the value by one compare-and-swap. Else under the lock: who has to
 *           wait arms, links its node, gives the lock back and parks; who has something to give takes nodes out and
 *           claims their waits, gives the lock back with the new value, and makes the claimed ones runnable. A
 *           claim that fails was of somebody who is gone, and took nothing. An interrupted one takes the lock, and
 *           its node out if it is still linked; then those behind it pass who now can (gate_settle).
 * OWNERSHIP the word, by LOCK; the nodes in the queue, by LOCK; a claimed node is the claimer's until its strand is
 *           runnable.
 * INVARIANTS [G1] when the lock is given back nobody waits at the front of the queue who could pass. [G2] nobody
 *           passes while others wait, who have come before. [G3] who gives back touches the object last with the
 *           store, or swap, by which others see it: afterwards they may free it.
 * ORDERING  the word: LOCK is taken by acquire and given back by release, which pair; passing pairs with giving.
 *           TSan is told so at the gate's address. In a run of one thread nothing here is atomic, and LOCK is never
 *           set.
 * PROGRESS  the lock is held for a claim, or for those of all who wait: nothing suspends under it. A claim may wait
 *           for a select's attempt (WAIT_TRYING), which needs no gate.
 * RUNS      all strands at a gate are of one run. Who would wait behind, or claim, one of another is told (misuse); who
 *           passes without meeting anybody is not.
 * PLACE     a gate in the stack of the opened fibre that the caller runs on is somebody else's memory while the caller
 *           is inactive: each function refuses it on its slow way, before it takes LOCK (must_lie_elsewhere).
 * NOT DONE  a spin lock beside the word: its giving back would come after what [G3] is about. Unlocking by a
 *           subtraction, which is faster than compare-and-swap: the word would show nobody while who unlocks still
 *           has to hand over, against [G3].
 * TESTED BY tests/models/gate.pml, tests/models/barrier.pml (what a barrier adds), tests/spec/mutex.c, semaphore.c, and
 *           those of the other objects.
 */
#ifndef SYNC_GATE_H
#define SYNC_GATE_H

#include "../sched/driver.h"
#include "../strand/core.h"
#include "../strand/scope.h"
#include "../strand/wait.h"
#include "source.h"

struct gate {
    _Atomic uint64_t word;
    struct link waiters; /* wait nodes; next NULL: empty, and never used */
};

/* Of the objects with a gate that which is known outside of its file: src/debug tells how many have come. */
struct barrier {
    struct gate gate;
    uint64_t parties; /* so many open it */
};

enum { GATE_LOCK = 1, GATE_WAITERS = 2, GATE_BITS = 3, GATE_ONE = 4 };

/* What makes one kind of object, beside who waits until somebody claims it. NULL: nothing does. */
struct gate_rules {
    /* If one who wants this can pass: true, with the new value. NULL: only those who come may let others pass. */
    bool (*admit)(uint64_t *value, uintptr_t want);
    uint64_t each; /* what everybody in the queue adds to the value */
};

static inline uint64_t gate_value(uint64_t word)
{
    return word & ~(uint64_t)GATE_BITS;
}

/* How things stood a moment ago; what was done before they came to stand so is seen. */
static inline uint64_t gate_look(struct gate *gate)
{
    uint64_t word = atomic_load_explicit(&gate->word, memory_order_acquire);
    arch_note_acquire(gate);
    return word;
}

/* Whether one who comes now would pass by these rules; it may be too late when the caller tries. */
static inline bool gate_is_free(const struct gate *gate, uintptr_t want, const struct gate_rules *rules)
{
    uint64_t word = atomic_load_explicit(&gate->word, memory_order_relaxed), value = gate_value(word);
    return !(word & GATE_WAITERS) && rules->admit(&value, want);
}

/* Without the lock, from `old`, in which neither bit is set, to `new`: to get something; */
static inline bool gate_pass(struct thread *thread, struct gate *gate, uint64_t *old, uint64_t new)
{
    if (UNLIKELY(!swap_word(&gate->word, old, new, thread->shared)))
        return false;
    arch_note_acquire(gate);
    return true;
}

/* or to give it back. Afterwards the object may be gone [G3]. */
static inline bool gate_give(struct thread *thread, struct gate *gate, uint64_t *old, uint64_t new)
{
    arch_note_release(gate);
    return LIKELY(swap_word(&gate->word, old, new, thread->shared));
}

/* Take the lock. Returns the value. */
static inline uint64_t gate_lock(struct thread *thread, struct gate *gate)
{
    uint64_t word = atomic_load_explicit(&gate->word, memory_order_relaxed);
    while (thread->shared) {
        if (word & GATE_LOCK) {
            driver_await(thread);
            word = atomic_load_explicit(&gate->word, memory_order_relaxed);
        } else if (atomic_compare_exchange_weak_explicit(&gate->word, &word, word | GATE_LOCK, memory_order_acquire,
                                                         memory_order_relaxed)) {
            break;
        }
    }
    arch_note_acquire(gate);
    if (UNLIKELY(!gate->waiters.next))
        list_init(&gate->waiters);
    return gate_value(word);
}

/* Give the lock back, with the value. Afterwards it may be gone [G3]. */
static inline void gate_unlock(struct gate *gate, uint64_t value)
{
    uint64_t word = value | (list_empty(&gate->waiters) ? 0 : GATE_WAITERS);
    arch_note_release(gate);
    atomic_store_explicit(&gate->word, word, memory_order_release);
}

/* Slow: misuse, and the lock is given back first. */
__attribute__((noreturn)) void gate_of_two_runs_(struct gate *gate, struct cb *other, const char *function);
/* Under the lock: a strand that waits at the gate (`function` is NULL), or that has what the caller of `function` would
 * wait for, is of the caller's run: it could not be made runnable from another one. */
static inline void gate_check_run(struct thread *thread, struct gate *gate, struct cb *other, const char *function)
{
    if (UNLIKELY(other->member.fibre->pool != thread->pool) && other->member.fibre->pool->sub != thread->sub)
        gate_of_two_runs_(gate, other, function);
}

/* ---- under the lock -------------------------------------------------------------------------------------- */

static inline bool gate_is_waited_for(const struct gate *gate)
{
    return !list_empty(&gate->waiters);
}

static inline struct wait_node *gate_first(struct gate *gate)
{
    return CONTAINER(gate->waiters.next, struct wait_node, link);
}

static inline void gate_link(struct thread *thread, struct gate *gate, struct wait_node *node)
{
    if (gate_is_waited_for(gate))
        gate_check_run(thread, gate, gate_first(gate)->waiter, NULL);
    select_link(thread, &gate->waiters, node);
}

static inline void gate_unlink(struct wait_node *node)
{
    list_remove(&node->link);
    atomic_store_explicit(&node->linked, 0, memory_order_relaxed);
}

/* Its wait is over, but it has not taken its node out yet. */
static inline bool gate_is_gone(const struct wait_node *node)
{
    uint64_t state = atomic_load_explicit(&node->waiter->wait.state, memory_order_acquire);
    return wait_epoch(state) != node->epoch || (wait_tag(state) != WAIT_ARMED && wait_tag(state) != WAIT_TRYING);
}

/* Take the first out. Claimed: it is the caller's, who puts it into a batch; NULL: it is gone, and took nothing. */
static inline struct wait_node *gate_claim_first(struct thread *thread, struct gate *gate)
{
    struct wait_node *node = gate_first(gate);
    gate_check_run(thread, gate, node->waiter, NULL);
    gate_unlink(node);
    return wait_claim(node, thread->shared) ? node : NULL;
}

/* The first that is not gone, claimed; NULL: there is none. */
static inline struct wait_node *gate_claim_next(struct thread *thread, struct gate *gate)
{
    struct wait_node *node = NULL;
    while (!node && gate_is_waited_for(gate))
        node = gate_claim_first(thread, gate);
    return node;
}

/* All who wait. */
static inline void gate_claim_all(struct thread *thread, struct gate *gate, struct batch *batch)
{
    struct wait_node *node;
    while ((node = gate_claim_next(thread, gate)))
        batch_add(batch, &node->waiter->member);
}

/* ---- waiting (gate.c) ------------------------------------------------------------------------------------ */

/* Under the lock: let those at the front pass who can [G1]. Takes and returns the value. */
uint64_t gate_settle(struct thread *thread, struct gate *gate, uint64_t value, const struct gate_rules *rules,
                     struct batch *batch);

/* Under the lock, which it gives back: the strand arms its wait and stands in the queue. It is not interrupted by
 * sources below `floor`. `want` is for who claims it. */
void gate_stand(struct thread *thread, struct cb *me, struct gate *gate, uint64_t value, enum blocked why,
                uintptr_t want, uint32_t floor);
/* After that: park until somebody claims it. False: it was interrupted, and has left the queue; perhaps it is not
 * interrupted any more. */
bool gate_park(struct thread **thread, struct cb *me, struct gate *gate, uint32_t floor,
               const struct gate_rules *rules);
/* Both, for who can be interrupted: returns false if it was, but is not any more: to be begun anew. */
bool gate_wait(struct thread **thread, struct cb *me, struct gate *gate, uint64_t value, enum blocked why,
               uintptr_t want, const struct gate_rules *rules);
/* Take the node out, if it is still linked, and let others pass. */
void gate_leave(struct thread *thread, struct gate *gate, struct wait_node *node, const struct gate_rules *rules);

/* By the rules, taking the lock: pass, if nobody waits, or wait until somebody lets the caller pass. */
void gate_enter(struct thread *thread, struct cb *me, struct gate *gate, enum blocked why, uintptr_t want,
                const struct gate_rules *rules);
/* The same without waiting. */
bool gate_try(struct thread *thread, struct gate *gate, uintptr_t want, const struct gate_rules *rules);
/* Change the value by the lock, and let those pass who now can. Afterwards it may be gone [G3]. */
void gate_change(struct thread *thread, struct gate *gate, uint64_t by, const struct gate_rules *rules);

/* As a case of a select (source.h), whose first object is the gate. */
enum answer gate_stand_case(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node,
                            uintptr_t want, const struct gate_rules *rules);
enum answer gate_over_case(struct thread *thread, strand_case *c, struct wait_node *node, bool won,
                           const struct gate_rules *rules);

static inline struct gate *gate_in(const strand_case *c)
{
    return (struct gate *)(uintptr_t)c->object[0];
}

#endif
