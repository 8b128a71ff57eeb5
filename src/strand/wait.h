/*
 * The one way to block. A strand arms its wait, registers with its sources (a child's end, a timer, ...), and parks.
 * Exactly one source, or an interruption, claims the wait.
 *
 * PARTIES   the strand; sources, each with a wait_node or a timer; interrupters (cancel, deadline, failed child).
 * STATE     each source of interruption of a strand has an index: 0 is its cancel, and an inner block has a higher one
 *           than an outer block. cb.due: 1 + the highest index of a source that holds; 0: none. floor: sources with a
 *           lower index are deferred, for example by a shield.
 *           wait.state = epoch << 32 | floor << 8 | tag:
 *             IDLE --wait_arm--> ARMED --claim--> WON / INTERRUPTED --wait_over--> IDLE
 *                                ARMED --wait_retract (the strand itself)--> IDLE
 *                                ARMED --wait_try (itself)--> TRYING --wait_tried--> ARMED / IDLE
 *                                ARMED --wait_reserve (a claimer)--> TRYING --wait_reserved_*--> WON / ARMED
 *             IDLE --wait_arm_for_child--> CHILD --the end of that child--> WON --> IDLE
 *                                          CHILD --interrupter--> INTERRUPTED --> IDLE
 *                                          CHILD --wait_retract--> IDLE
 *           CHILD: armed, but for no node: only the child's end or an interrupter ends the wait [E6].
 *           A select is registered with several sources while it tries to claim a partner's wait. Meanwhile TRYING
 *           keeps its own wait from being claimed, so that either both waits are claimed or neither
 *           (docs/protocols/select.md).
 * OWNERSHIP the claimer of an armed wait makes the strand runnable, once. After wait_arm the strand can be claimed
 *           although it is still running, so it parks unless its retraction succeeds (switch.md).
 * INVARIANTS [W1] one claim for each arming. [W2] when an operation returns, no source holds a node or timer of its
 *           wait: each source that did not win has released it, or the strand has withdrawn it. [W3] an interrupter
 *           with an index below the floor leaves the wait alone, so a shielded waiter keeps its place. [W4] no
 *           interruption is lost between the check and the parking. [W5] if two trying strands want each other's wait,
 *           the one with the higher address returns to ARMED for a moment, and the other claims it.
 * ORDERING  [W4] seq_cst: the strand stores ARMED, then reads due; an interrupter raises due, then reads the state. One
 *           of them sees the other. [W1] claims release, and wait_over acquires: what the source did happens before the
 *           operation returns. A claim acquires the ARMED that it replaces, with what the strand did before it armed.
 *           Other loads of the state acquire what they find.
 * PROTOCOL  an operation that waits: may_block; wait_arm; link the nodes (if the event has happened already, retract
 *           and do not wait); read `due` once more, and retract if it is above the floor [W4]; park, also if a
 *           retraction failed; wait_over; withdraw from the sources that have not won [W2].
 * PROGRESS  a claim is one compare-and-swap. It waits while the strand is TRYING, for a few instructions. After an
 *           interrupted wait for an end that is under way the strand spins until its node is released.
 * NOT DONE  a state that is entered after the switch (one more atomic operation a block); nodes on the waiter's stack
 *           (they would be somebody else's memory in a shared fibre); a state machine for each kind of waiting.
 * TESTED BY tests/models/wait.pml, tests/models/joined.pml (CHILD), tests/models/select.pml (trying),
 *           tests/models/barrier.pml (reserving), tests/stress/wait.c.
 */
#ifndef STRAND_WAIT_H
#define STRAND_WAIT_H

#include "../sched/quiescent.h"
#include "core.h"

static inline uint32_t wait_epoch(uint64_t state)
{
    return (uint32_t)(state >> 32);
}

static inline uint32_t wait_tag(uint64_t state)
{
    return (uint32_t)(state & 0xff);
}

static inline uint32_t wait_floor(uint64_t state)
{
    return (uint32_t)(state >> 8) & WAIT_FLOOR_MOST;
}

/* Whether the strand has armed its wait, which no party has ended. */
static inline bool wait_is_armed(uint64_t state)
{
    return (state & WAIT_ARMED_MASK) == WAIT_ARMED;
}

/* tag: WAIT_ARMED or WAIT_CHILD. */
static inline uint32_t wait_arm_as(struct thread *thread, struct cb *me, uint32_t floor, uint32_t tag)
{
    uint64_t old = atomic_load_explicit(&me->wait.state, memory_order_relaxed);
    uint32_t epoch = wait_epoch(old) + 1;
    uint64_t new = (uint64_t)epoch << 32 | (uint64_t)floor << 8 | tag;
    if (thread->concurrent)
        atomic_store_explicit(&me->wait.state, new, memory_order_seq_cst); /* [W4] */
    else
        atomic_store_explicit(&me->wait.state, new, memory_order_relaxed);
    return epoch;
}

/* Arms the wait. Sources below floor do not interrupt it. Returns the epoch for its nodes. */
static inline uint32_t wait_arm(struct thread *thread, struct cb *me, uint32_t floor)
{
    return wait_arm_as(thread, me, floor, WAIT_ARMED);
}

/* Whether the strand may wait in WAIT_CHILD for the end of its child, whose fibre it has taken out of a queue: the
 * child has not begun and has no waiters. Neither of the two is a guest, since a guest has no room for child_awaited,
 * and the fibre of a guest has other strands. */
static inline bool wait_child_only(const struct cb *me, struct cb *child)
{
    const struct fibre *fibre = child->member.fibre;
    return !me->guest && !fibre_is_shared(fibre) && !plain_load(&fibre->home, memory_order_relaxed) &&
           !atomic_load_explicit(&child->ends, memory_order_relaxed);
}

/* Arms the wait if wait_child_only. The caller runs the child next. */
static inline void wait_arm_for_child(struct thread *thread, struct cb *me, struct cb *child, uint32_t floor)
{
    plain_store(child_awaited(me), child, memory_order_release); /* [E8] */
    child->has_joiner = true;
    arch_san_release(child);
    (void)wait_arm_as(thread, me, floor, WAIT_CHILD);
}

/* The result of a claim: won; over, because another party claimed the wait or it was retracted; or yield, because the
 * claimer is itself in WAIT_TRYING and must let its own wait be claimed for a moment [W5]. */
enum claim { CLAIM_WON, CLAIM_OVER, CLAIM_YIELD };

/* Claims the node's wait for `index`. `trying`: the claimer, if it is itself in WAIT_TRYING; else NULL. */
static inline enum claim wait_claim_as(struct cb *trying, struct wait_node *node, uint32_t index, bool shared)
{
    struct cb *waiter = node->waiter;
    uint64_t won = (uint64_t)node->epoch << 32 | (uint64_t)index << 8 | WAIT_WON;
    uint64_t state = atomic_load_explicit(&waiter->wait.state, memory_order_acquire); /* [W1] */
    while (wait_epoch(state) == node->epoch) {
        if (LIKELY(wait_tag(state) == WAIT_ARMED)) {
            if (LIKELY(swap_word(&waiter->wait.state, &state, won, shared))) /* [W1] */
                return CLAIM_WON;
            continue;
        }
        if (wait_tag(state) != WAIT_TRYING)
            break;
        if (trying > waiter)
            return CLAIM_YIELD; /* [W5] */
        platform_await(thread_self());
        state = atomic_load_explicit(&waiter->wait.state, memory_order_acquire); /* [W1] */
    }
    return CLAIM_OVER;
}

/* Claims the wait for a source. Returns true if the caller has to make the waiter runnable. */
static inline bool wait_claim(struct wait_node *node, bool shared)
{
    return wait_claim_as(NULL, node, node->index, shared) == CLAIM_WON;
}

/* The armed strand is about to claim another wait. Until wait_tried, claimers of its own wait spin. Returns false if
 * its wait was claimed already, so the strand has to park. */
static inline bool wait_try(struct thread *thread, struct cb *me)
{
    uint64_t state = atomic_load_explicit(&me->wait.state, memory_order_relaxed);
    while (wait_tag(state) == WAIT_ARMED)
        if (swap_word(&me->wait.state, &state, (state & ~UINT64_C(0xff)) | WAIT_TRYING,
                      thread->concurrent)) { /* [W1] */
            platform_point(thread);
            return true;
        }
    return false;
}

/* Ends wait_try. tag: WAIT_ARMED if the claim failed, WAIT_IDLE if it succeeded. */
static inline void wait_tried(struct thread *thread, struct cb *me, uint32_t tag)
{
    uint64_t state = atomic_load_explicit(&me->wait.state, memory_order_relaxed);
    ASSERT_SLOW(wait_tag(state) == WAIT_TRYING);
    state = (state & ~UINT64_C(0xff)) | tag;
    if (thread->concurrent)
        atomic_store_explicit(&me->wait.state, state, memory_order_seq_cst); /* [W4] */
    else
        atomic_store_explicit(&me->wait.state, state, memory_order_relaxed);
}

/* Reserves a wait for a barrier, which needs the waits of all its members or none. No other party claims the wait until
 * one of the next two functions. The caller holds the lock of the node's queue. Returns false if the wait is over. Not
 * for the wait of a select, which itself tries other waits. */
static inline bool wait_reserve(struct wait_node *node, bool shared)
{
    _Atomic uint64_t *word = &node->waiter->wait.state;
    uint64_t state = atomic_load_explicit(word, memory_order_acquire); /* [W1] */
    while (wait_epoch(state) == node->epoch && wait_tag(state) == WAIT_ARMED)
        if (swap_word(word, &state, (state & ~UINT64_C(0xff)) | WAIT_TRYING, shared)) /* [W1] */
            return true;
    return false;
}

/* Claims a reserved wait. The caller has to make the waiter runnable. */
static inline void wait_reserved_claim(struct wait_node *node)
{
    uint64_t won = (uint64_t)node->epoch << 32 | (uint64_t)node->index << 8 | WAIT_WON;
    atomic_store_explicit(&node->waiter->wait.state, won, memory_order_release); /* [W1] */
}

/* Arms a reserved wait again. If a source was raised meanwhile, interrupts it, and returns the member that the caller
 * has to make runnable; otherwise returns NULL. */
static inline struct member *wait_reserved_release(struct wait_node *node, bool shared)
{
    struct wait *wait = &node->waiter->wait;
    uint64_t state = atomic_load_explicit(&wait->state, memory_order_relaxed);
    ASSERT_SLOW(wait_tag(state) == WAIT_TRYING);
    state = (state & ~UINT64_C(0xff)) | WAIT_ARMED;
    atomic_store_explicit(&wait->state, state, memory_order_seq_cst);                        /* [W4] */
    if (atomic_load_explicit(&node->waiter->due, memory_order_seq_cst) <= wait_floor(state)) /* [W4] */
        return NULL;
    bool mine = swap_word(&wait->state, &state, (state & ~UINT64_C(0xff)) | WAIT_INTERRUPTED, shared); /* [W1] */
    return mine ? &node->waiter->member : NULL;
}

/* Disarms the wait. Returns false if it was claimed already, so the strand has to park. */
static inline bool wait_retract(struct thread *thread, struct cb *me)
{
    uint64_t state = atomic_load_explicit(&me->wait.state, memory_order_relaxed);
    while (wait_is_armed(state))
        if (swap_word(&me->wait.state, &state, state & ~UINT64_C(0xff), thread->concurrent)) /* [W1] */
            return true;
    return false;
}

/* After the resumption: makes the wait idle, and returns the tag of its claim. */
static inline uint32_t wait_over(struct cb *me)
{
    uint64_t state = atomic_load_explicit(&me->wait.state, memory_order_acquire); /* [W1] */
    ASSERT_SLOW(wait_tag(state) == WAIT_INTERRUPTED || wait_tag(state) == WAIT_WON);
    atomic_store_explicit(&me->wait.state, state & ~UINT64_C(0xff), memory_order_relaxed);
    arch_san_acquire(&me->member);
    me->blocked = BLOCKED_NOT;
    return wait_tag(state);
}

/* After wait_over of a wait that was won: returns the index that won. */
static inline uint32_t wait_winner(struct cb *me)
{
    return wait_floor(atomic_load_explicit(&me->wait.state, memory_order_relaxed));
}

static inline void wait_because(struct thread *thread, struct cb *me, unsigned why, uint64_t on)
{
    me->blocked = (uint8_t)why;
    me->blocked_on = on;
    me->since = thread->now;
}

/* strand_sleep_until, for `function`. */
void wait_sleep(strand_time when, const char *function);
/* sched_ops.fire: the timer's index wins. */
struct member *wait_time_comes(struct timer *timer);
/* Sleeps until an instant or an interruption. Returns WAIT_WON, WAIT_INTERRUPTED or a negated errno code, possibly on
 * another thread. */
int wait_until(struct thread *thread, struct cb *me, int64_t when, uint32_t floor);

#endif
