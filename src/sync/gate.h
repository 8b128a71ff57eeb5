/*
 * The gate: the base of all locks. A word with the state, and a FIFO queue of waiters. Page: docs/protocols/locks.md.
 *
 * PARTIES   strands that pass, wait, or let others pass; selects with a case for the gate; interrupters of waiters.
 * STATE     word = GATE_LOCK | GATE_WAITERS | value. The value belongs to the object: an owner, permits, a count.
 *           WAITERS: the queue is not empty. LOCK: a strand holds the queue lock, and only that strand changes the
 *           word.
 * PROTOCOL  a strand that finds neither bit may change the value by one compare-and-swap. Otherwise it takes LOCK. A
 *           strand that has to wait then arms, links its node, unlocks and parks. A strand that releases takes nodes
 *           out, claims their waits, unlocks with the new value, and makes the claimed strands runnable. A claim fails
 *           if its waiter has gone, and takes nothing. An interrupted waiter takes LOCK, unlinks its node if it is
 *           still linked, and lets those behind it pass that now can (gate_settle).
 * OWNERSHIP LOCK protects the word and the nodes in the queue; a claimed node belongs to the claimer until its strand
 *           is runnable.
 * INVARIANTS [G1] when LOCK is released, the first waiter cannot pass. [G2] no strand passes while earlier ones wait.
 *           [G3] a releasing strand last touches the object with the store, or swap, that publishes the release:
 *           another strand may free the object afterwards.
 * ORDERING  [G4] the word: LOCK is taken by acquire and released by release; passing acquires, and giving releases. So
 *           what was done before a release happens before the return of the operation that it lets through. TSan
 *           sees the pairs at the gate's address. In a run of one thread nothing here is atomic, and LOCK is never set.
 * PROGRESS  the lock is held for one claim, or for those of all waiters: nothing suspends under it. A claim may wait
 *           for a select's attempt (WAIT_TRYING), which needs no gate.
 * RUNS      all strands at a gate are of one run. Waiting behind a strand of another run, or claiming it, is misuse;
 *           passing uncontended is not detected.
 * PLACE     a gate in the stack of the caller's shared fibre is another strand's memory while the caller is inactive:
 *           each function refuses it on its slow path, before it takes LOCK (must_not_escape_object).
 * NOT DONE  a spin lock beside the word: its unlock would touch the object after the release, against [G3]. Unlocking
 *           by a subtraction, which is faster than compare-and-swap: the word would show the object as free while the
 *           releasing strand still has to hand over, against [G3]. Waking the first waiter and letting it compete,
 *           which is faster under contention (6 ns in Go, 11 to 12 here, for two strands on two threads): a waiter may
 *           starve. Records of held locks in the locks themselves: a lock that dies while it is held leaves a dead
 *           link.
 * TESTED BY tests/models/gate.pml, tests/models/barrier.pml (what a barrier adds), tests/spec/mutex.c, semaphore.c, and
 *           those of the other objects.
 */
#ifndef SYNC_GATE_H
#define SYNC_GATE_H

#include "../sched/platform.h"
#include "../strand/core.h"
#include "../strand/escape.h"
#include "../strand/scope.h"
#include "../strand/wait.h"
#include "source.h"

struct gate {
    _Atomic uint64_t word;
    struct link waiters; /* wait nodes; next NULL: empty, and never used */
};

/* A barrier. It is declared here because src/debug reports how many strands have come. */
struct barrier {
    struct gate gate;
    uint64_t parties; /* the number of strands that open it */
};

/* The bits are the highest ones, so that a value is a plain number and the public initialisers need not know them. */
#define GATE_LOCK (UINT64_C(1) << 63)
#define GATE_WAITERS (UINT64_C(1) << 62)
#define GATE_BITS (GATE_LOCK | GATE_WAITERS)

/* Admission policy of a gate; NULL means that waiters are only released explicitly. */
struct gate_rules {
    /* Whether a strand that wants `want` can pass; if so, updates the value. NULL: only later arrivals release
     * waiters. */
    bool (*admit)(uint64_t *value, uintptr_t want);
    uint64_t each; /* what each waiter in the queue adds to the value */
};

static inline uint64_t gate_value(uint64_t word)
{
    return word & ~GATE_BITS;
}

/* Returns a recent word. What happened before the gate reached that state is visible to the caller. */
static inline uint64_t gate_read(struct gate *gate)
{
    uint64_t word = atomic_load_explicit(&gate->word, memory_order_acquire); /* [G4] */
    arch_san_acquire(gate);
    return word;
}

/* Whether a newcomer would pass by these rules; the answer may be stale when the caller tries. */
static inline bool gate_is_free(const struct gate *gate, uintptr_t want, const struct gate_rules *rules)
{
    uint64_t word = atomic_load_explicit(&gate->word, memory_order_relaxed), value = gate_value(word);
    return !(word & GATE_WAITERS) && rules->admit(&value, want);
}

/* Without the lock: change the word from `old`, in which neither bit is set, to `new`, in order to acquire. */
static inline bool gate_pass(struct thread *thread, struct gate *gate, uint64_t *old, uint64_t new)
{
    if (UNLIKELY(!swap_guessed_word(&gate->word, old, new, thread->concurrent))) /* [G4] */
        return false;
    arch_san_acquire(gate);
    return true;
}

/* Likewise, in order to release. The object may be gone afterwards [G3]. */
static inline bool gate_give(struct thread *thread, struct gate *gate, uint64_t *old, uint64_t new)
{
    arch_san_release(gate);
    return LIKELY(swap_guessed_word(&gate->word, old, new, thread->concurrent)); /* [G3] [G4] */
}

/* Take the lock. Returns the value. */
static inline uint64_t gate_lock(struct thread *thread, struct gate *gate)
{
    uint64_t word = atomic_load_explicit(&gate->word, memory_order_relaxed);
    while (thread->concurrent) {
        if (word & GATE_LOCK) {
            platform_await(thread);
            word = atomic_load_explicit(&gate->word, memory_order_relaxed);
        } else if (atomic_compare_exchange_weak_explicit(&gate->word, &word, word | GATE_LOCK, memory_order_acquire,
                                                         memory_order_relaxed)) { /* [G4] */
            break;
        }
    }
    arch_san_acquire(gate);
    if (UNLIKELY(!gate->waiters.next))
        list_init(&gate->waiters);
    return gate_value(word);
}

/* Release the lock, with a new value. The object may be gone afterwards [G3]. */
static inline void gate_unlock(struct gate *gate, uint64_t value)
{
    uint64_t word = value | (list_empty(&gate->waiters) ? 0 : GATE_WAITERS);
    arch_san_release(gate);
    atomic_store_explicit(&gate->word, word, memory_order_release); /* [G3] [G4] */
}

/* Slow path: releases the lock and reports misuse. */
__attribute__((noreturn)) void gate_of_two_runs_(struct gate *gate, struct cb *other, const char *function);
/* Under the lock: misuse if `other` is of another run than the caller, from which it could not be made runnable.
 * `other` waits at the gate (`function` is NULL), or has what the caller of `function` would wait for. */
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

/* Whether the node's wait is over, although its strand has not unlinked the node yet. */
static inline bool gate_is_gone(const struct wait_node *node)
{
    uint64_t state = atomic_load_explicit(&node->waiter->wait.state, memory_order_acquire); /* [W1] */
    return wait_epoch(state) != node->epoch || (wait_tag(state) != WAIT_ARMED && wait_tag(state) != WAIT_TRYING);
}

/* Unlink the first node and claim its wait. Returns the node, for the caller to put into a batch; or NULL if its waiter
 * has gone, in which case nothing was taken. */
static inline struct wait_node *gate_claim_first(struct thread *thread, struct gate *gate)
{
    struct wait_node *node = gate_first(gate);
    gate_check_run(thread, gate, node->waiter, NULL);
    gate_unlink(node);
    return wait_claim(node, thread->concurrent) ? node : NULL;
}

/* Claim the first waiter that has not gone; NULL: there is none. */
static inline struct wait_node *gate_claim_next(struct thread *thread, struct gate *gate)
{
    struct wait_node *node = NULL;
    while (!node && gate_is_waited_for(gate))
        node = gate_claim_first(thread, gate);
    return node;
}

/* Claim all waiters. */
static inline void gate_claim_all(struct thread *thread, struct gate *gate, struct batch *batch)
{
    struct wait_node *node;
    while ((node = gate_claim_next(thread, gate)))
        batch_add(batch, &node->waiter->member);
}

/* ---- waiting (gate.c) ------------------------------------------------------------------------------------ */

/* Under the lock: let waiters at the front pass as long as they can [G1]. Takes and returns the value. */
uint64_t gate_settle(struct thread *thread, struct gate *gate, uint64_t value, const struct gate_rules *rules,
                     struct batch *batch);

/* Under the lock, which it releases: arm the strand's wait and enqueue it. Sources below `floor` do not interrupt the
 * wait. The claimer may read `want`. */
void gate_stand(struct thread *thread, struct cb *me, struct gate *gate, uint64_t value, unsigned why, uintptr_t want,
                uint32_t floor);
/* After gate_stand: park until the wait is claimed. Returns false if the strand was interrupted; it has then left the
 * queue, and the interruption may already be over. */
bool gate_park(struct thread **thread, struct cb *me, struct gate *gate, uint32_t floor,
               const struct gate_rules *rules);
/* Both, interruptibly: throws if interrupted; returns false if the interruption is already over, and the caller
 * retries. */
bool gate_wait(struct thread **thread, struct cb *me, struct gate *gate, uint64_t value, unsigned why, uintptr_t want,
               const struct gate_rules *rules);
/* Unlink the node, if it is still linked, and let others pass. */
void gate_leave(struct thread *thread, struct gate *gate, struct wait_node *node, const struct gate_rules *rules);

/* By the rules, under the lock: pass if there is no waiter, otherwise wait for admission. */
void gate_enter(struct thread *thread, struct cb *me, struct gate *gate, unsigned why, uintptr_t want,
                const struct gate_rules *rules);
/* Likewise, without waiting. */
bool gate_try(struct thread *thread, struct gate *gate, uintptr_t want, const struct gate_rules *rules);
/* Add to the value under the lock, and let waiters pass that now can. The object may be gone afterwards [G3]. */
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
