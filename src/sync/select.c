/*
 * Select: waiting for one of many. Page: docs/protocols/select.md; the sources are behind source.h.
 *
 * PARTIES   the strand that selects; its sources, one for each case; interrupters.
 * PROTOCOL  first every case is tried once, each by itself, as a plain operation. An ordered select on several threads
 *           skips this round: an earlier case could become possible after its try. Then the strand arms its wait and
 *           calls `stand` of one case after the other: from the first linked node on, a source may claim the wait. A
 *           case that can happen by itself retracts the wait first; a case that needs another strand's wait makes its
 *           own WAIT_TRYING while it claims the other. So whichever case comes first, the others do not happen. At the
 *           end all nodes are unlinked.
 * STATE     the nodes lie in a record of a slab, one for each case, all of one epoch. `live` counts the cases that have
 *           not dropped out, plus one while the select is still standing with its cases.
 * INVARIANTS [X1] the wait is claimed, or retracted, once for each arming: exactly one case happens. [X2] at each
 *           moment between arming and the end, every case stood with either is linked or has found the wait claimed: no
 *           event is missed. [X3] ordered: when a case retracts the wait, no earlier case could happen, since it would
 *           have claimed the wait. [X4] if several cases stand in one queue one after the other, any may be first,
 *           unless ordered.
 * NOT DONE  locking all channels at once, in an order: events, ends, times and descriptors would need places in that
 *           order too, and a long select would hold up every other user. A node that stays in a queue after its select:
 *           its memory would have to outlive the select. A timer for each instant: only the earliest can win. The idea
 *           of a tentative claim is that of Reppy, Russo and Xiao, "Parallel Concurrent ML" (ICFP 2009).
 * PROGRESS  a trying strand may spin while it holds its source's lock. It waits only for a strand with a higher
 *           address, which needs no further lock to back off, so there is no deadlock. Two strands may miss each
 *           other's moment of backing off for a while; each try takes a few instructions.
 * TESTED BY tests/models/select.pml, tests/models/close.pml (dropping out), tests/spec/select.c, tests/stress/select.c.
 */
#include "source.h"
#include "sync_layer.h"

#include "../sched/quiescent.h"
#include "../sched/switch.h"
#include "../sched/timers.h"
#include "../strand/escape.h"
#include "../strand/exception.h"
#include "../strand/interrupt.h"
#include "../strand/misuse.h"
#include "../strand/throw.h"
#include "../strand/wait.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { OFFERS_USUAL = 8, READY_MOST = 32, SHUFFLED_MOST = 64, CASES_MOST = 1 << 20 };

struct offers { /* the slab overwrites its beginning while it is free */
    _Atomic uint32_t live;
    struct wait_node nodes[];
};
_Static_assert(sizeof(struct offers) + OFFERS_USUAL * sizeof(struct wait_node) <= OFFERS_SIZE, "most selects' cases");

struct select {
    struct cb *me;
    strand_case *cases;
    uint32_t count, stood; /* stood: how many cases it has stood with, while armed */
    unsigned flags;
    bool now;     /* do not wait */
    bool outside; /* an event from outside of the run may cause a case */
    bool tried;   /* each case has just been tried without success, and nothing has changed since */
    struct offers *offers;
    int64_t when;        /* the earliest instant of a case, or INT64_MAX */
    uint32_t when_index; /* the case with that instant */
    struct kept *kept;   /* one for each case; NULL: no value lies on a shared stack */
    size_t kept_size;    /* including the values, which follow */
};

/* A case's value that other strands may move: the caller's shared stack may then belong to another strand. */
struct kept {
    void *value; /* where it lies; NULL: case->value is unchanged */
    size_t size;
};

/* ---- records ----------------------------------------------------------------------------------------------- */

static inline struct offers *offers_get(struct thread *thread, uint32_t count)
{
    if (UNLIKELY(count > OFFERS_USUAL))
        return platform_malloc(thread, sizeof(struct offers) + count * sizeof(struct wait_node));
    struct offers *offers = platform_slab_get(thread, &sync_thread_of(thread)->offers);
    if (LIKELY(offers != NULL))
        arch_san_acquire(offers);
    return offers;
}

static inline void offers_put(struct thread *thread, struct offers *offers, uint32_t count)
{
    if (UNLIKELY(count > OFFERS_USUAL)) {
        free(offers);
        return;
    }
    arch_san_release(offers);
    slab_put(&sync_thread_of(thread)->offers, offers);
}

/* Count one case out. Returns how many are left. */
static inline uint32_t count_out(struct thread *thread, struct offers *offers)
{
    if (thread->concurrent)
        return atomic_fetch_sub_explicit(&offers->live, 1, memory_order_acq_rel) - 1; /* [RF1] */
    uint32_t left = atomic_load_explicit(&offers->live, memory_order_relaxed) - 1;
    atomic_store_explicit(&offers->live, left, memory_order_relaxed);
    return left;
}

struct member *select_drop_out(struct thread *thread, struct wait_node *node)
{
    struct offers *offers = CONTAINER(node - node->index, struct offers, nodes);
    if (count_out(thread, offers))
        return NULL;
    bool last = wait_claim_as(NULL, node, SELECT_NONE, thread->concurrent) == CLAIM_WON;
    return last ? &node->waiter->member : NULL;
}

/* ---- trying each case by itself ------------------------------------------------------------------------------ */

static inline enum answer attempt(struct thread *thread, struct select *s, uint32_t i)
{
    strand_case *c = &s->cases[i];
    return c->source ? c->source->stand(thread, s->me, c, NULL) : SOURCE_DROPPED;
}

/* In random order: each step draws one of the remaining cases, by the next digit of one random number. */
static inline int attempt_at_random(struct thread *thread, struct select *s, uint32_t *live)
{
    uint8_t order[OFFERS_USUAL] = {0, 1, 2, 3, 4, 5, 6, 7};
    uint64_t chance = platform_chance(thread, UINT32_MAX);
    for (uint32_t left = s->count; left; left--) {
        uint64_t digit = chance * left;
        uint32_t at = (uint32_t)(digit >> 32), i = order[at];
        chance = (uint32_t)digit;
        order[at] = order[left - 1];
        enum answer answer = attempt(thread, s, i);
        if (answer == SOURCE_DONE)
            return (int)i;
        *live += answer == SOURCE_NOT;
    }
    return -1;
}

/* Likewise, for any number of cases. */
static int attempt_shuffled(struct thread *thread, struct select *s, uint32_t *order, uint32_t *live)
{
    for (uint32_t i = 0; i < s->count; i++)
        order[i] = i;
    for (uint32_t left = s->count; left; left--) {
        uint32_t at = platform_chance(thread, left), i = order[at];
        order[at] = order[left - 1];
        enum answer answer = attempt(thread, s, i);
        if (answer == SOURCE_DONE)
            return (int)i;
        *live += answer == SOURCE_NOT;
    }
    return -1;
}

static NOINLINE int attempt_many(struct thread *thread, struct select *s, uint32_t *live)
{
    uint32_t few[SHUFFLED_MOST],
        *order = s->count <= SHUFFLED_MOST ? few : platform_malloc(thread, s->count * sizeof *order);
    if (!order)
        throw_no_memory(s->me, "a select");
    int result = attempt_shuffled(thread, s, order, live);
    if (order != few)
        free(order);
    return result;
}

static int attempt_in_order(struct thread *thread, struct select *s, uint32_t *live)
{
    for (uint32_t i = 0; i < s->count; i++) {
        enum answer answer = attempt(thread, s, i);
        if (answer == SOURCE_DONE)
            return (int)i;
        *live += answer == SOURCE_NOT;
    }
    return -1;
}

/* In a run of one thread: find the cases worth a try, then try them in random order. So chance mispredicts no branch.
 */
static inline int attempt_ready(struct thread *thread, struct select *s, uint32_t *live)
{
    uint32_t ready = 0, outside = 0, possible = 0;
    const strand_case *c = s->cases, *end = c + s->count;
    for (uint32_t bit = 1; c < end; c++, bit <<= 1) {
        const struct strand_source_ *source = c->source;
        possible += source != NULL;
        if (source && (!source->ready || source->ready(thread, c)))
            ready |= bit;
        else if (source && source->outside)
            outside |= bit;
    }
    if (ready || s->now || s->flags & STRAND_SELECT_ORDERED)
        ready |= outside; /* another case may come before the poller reports what they would find [D7] */
    *live = possible;
    while (ready) {
        uint32_t rest = ready, skip = 0;
        if (UNLIKELY(ready & (ready - 1)) && !(s->flags & STRAND_SELECT_ORDERED))
            skip = platform_chance(thread, (uint32_t)__builtin_popcount(ready));
        while (skip--)
            rest &= rest - 1;
        uint32_t i = (uint32_t)__builtin_ctz(rest);
        enum answer answer = attempt(thread, s, i);
        if (LIKELY(answer == SOURCE_DONE))
            return (int)i;
        *live -= answer == SOURCE_DROPPED;
        ready &= ~(UINT32_C(1) << i);
    }
    return -1;
}

/* Returns the index of the case that has happened, or -1; *live: how many may happen later. */
static int attempt_all(struct thread *thread, struct select *s, uint32_t *live)
{
    if (LIKELY(!thread->concurrent && s->count <= READY_MOST))
        return attempt_ready(thread, s, live);
    if (s->flags & STRAND_SELECT_ORDERED)
        return attempt_in_order(thread, s, live);
    return LIKELY(s->count <= OFFERS_USUAL) ? attempt_at_random(thread, s, live) : attempt_many(thread, s, live);
}

/* ---- values on a shared stack ------------------------------------------------------------------------------- */

static size_t rounded(size_t size)
{
    return (size + 15) & ~(size_t)15;
}

static COLD size_t size_to_keep(struct thread *thread, struct select *s, uint32_t i)
{
    const strand_case *c = &s->cases[i];
    bool shared = c->source && c->source->size && lies_on_shared_stack(thread, c->value);
    return shared ? c->source->size(thread, s->me, c) : 0;
}

/* Copy the values to memory off the stack [SF4]; the cases point to the copies until give_values_back. */
static COLD void keep_values(struct thread *thread, struct select *s)
{
    size_t head = rounded(s->count * sizeof(struct kept)), size = head;
    for (uint32_t i = 0; i < s->count; i++)
        size += rounded(size_to_keep(thread, s, i));
    if (size == head)
        return;
    s->kept = platform_malloc(thread, size);
    s->kept_size = size;
    if (!s->kept)
        throw_no_memory(s->me, "the values of a select on the stack of a shared fibre");
    char *at = (char *)s->kept + head;
    for (uint32_t i = 0; i < s->count; i++) {
        strand_case *c = &s->cases[i];
        size = size_to_keep(thread, s, i); /* as before, or 0: the channel has ended */
        s->kept[i] = (struct kept){size ? c->value : NULL, size};
        if (!size)
            continue;
        memcpy(at, c->value, size);
        c->value = at;
        at += rounded(size);
    }
}

/* happened: the case that may have received a value; or SELECT_NONE. */
static COLD void give_values_back(struct select *s, uint32_t happened)
{
    for (uint32_t i = 0; i < s->count; i++) {
        const struct kept *kept = &s->kept[i];
        if (!kept->value)
            continue;
        if (i == happened)
            memcpy(kept->value, s->cases[i].value, kept->size);
        s->cases[i].value = kept->value;
    }
    if (cb_wipes(s->me))
        arch_wipe(s->kept, s->kept_size, 0);
    free(s->kept);
    s->kept = NULL;
}

/* ---- standing with all cases -------------------------------------------------------------------------------- */

static enum answer stand_with(struct thread *thread, struct select *s, uint32_t i)
{
    strand_case *c = &s->cases[i];
    struct wait_node *node = &s->offers->nodes[i];
    node->result = 0;
    atomic_store_explicit(&node->linked, 0, memory_order_relaxed);
    if (!c->source)
        return SOURCE_DROPPED;
    enum answer answer = s->tried && c->source->when ? SOURCE_NOT : c->source->stand(thread, s->me, c, node);
    if (answer == SOURCE_NOT) {
        s->outside |= c->source->outside;
        int64_t when = c->source->when                                 ? c->source->when(c)
                       : thread->sub->outside && c->source->next_probe ? c->source->next_probe(thread, c)
                                                                       : INT64_MAX;
        if (when < s->when) {
            s->when = when;
            s->when_index = i;
        }
    }
    return answer;
}

/* Arm and link [X2]. Returns DONE with the index in *happened (the wait is idle); LOST; NOT: all are linked; or
 * DROPPED: the wait is idle, and no case is left. */
static enum answer stand_with_all(struct thread *thread, struct select *s, uint32_t *happened)
{
    struct offers *offers = s->offers;
    uint32_t floor = s->now ? WAIT_FLOOR_MOST : own_of(s->me)->floor;
    uint32_t epoch = wait_arm(thread, s->me, floor), count = s->count;
    unsigned marks = (s->now ? NODE_TRY_ONLY : 0) | (s->flags & STRAND_SELECT_ORDERED ? NODE_ORDERED : 0);
    struct cb *me = s->me;
    struct wait_node *node = offers->nodes;
    const strand_case *c = s->cases;
    const bool tried = s->tried;
    atomic_store_explicit(&offers->live, count + 1, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++, c++, node++) {
        node->waiter = me;
        node->epoch = epoch;
        node->index = i;
        node->marks = (uint8_t)(marks | (c->flags & CASE_DROPS));
        if (LIKELY(tried && c->source->queue)) {
            node->value = c->value;
            select_link(thread, (struct link *)(uintptr_t)(c->object[0] + c->source->queue), node);
            continue;
        }
        enum answer answer = stand_with(thread, s, i);
        if (LIKELY(answer == SOURCE_NOT))
            continue;
        if (answer == SOURCE_DROPPED) {
            (void)count_out(thread, offers);
        } else {
            *happened = s->stood = i;
            return answer;
        }
    }
    s->stood = count;
    if (count_out(thread, offers))
        return SOURCE_NOT;
    return wait_retract(thread, s->me) ? SOURCE_DROPPED : SOURCE_LOST;
}

static inline void unlink_node(struct wait_node *node)
{
    if (!atomic_load_explicit(&node->linked, memory_order_relaxed))
        return;
    list_remove(&node->link);
    atomic_store_explicit(&node->linked, 0, memory_order_relaxed);
}

/* The strand is not armed any more: afterwards nothing refers to a node. Returns the winner's answer. */
static enum answer leave_all(struct thread *thread, struct select *s, uint32_t winner)
{
    enum answer answer = SOURCE_DONE;
    struct wait_node *node = s->offers->nodes;
    strand_case *c = s->cases;
    for (uint32_t i = 0, stood = s->stood; i < stood; i++, c++, node++) {
        if (!c->source)
            continue;
        if (i == winner)
            answer = c->source->over ? c->source->over(thread, s->me, c, node, true) : SOURCE_DONE;
        else if (LIKELY(c->source->queue && !thread->concurrent))
            unlink_node(node);
        else if (c->source->over && !c->source->when)
            (void)c->source->over(thread, s->me, c, node, false);
    }
    offers_put(thread, s->offers, s->count);
    return answer;
}

/* The wait's own node and timer stand for the earliest instant. Returns 0 or a negated errno code. */
static int start_timer(struct thread *thread, struct select *s)
{
    struct cb *me = s->me;
    if (s->when == INT64_MAX)
        return 0;
    timer_init(&me->wait.timer, TIMER_WAIT, s->when_index);
    me->wait.node.epoch = wait_epoch(atomic_load_explicit(&me->wait.state, memory_order_relaxed));
    return timer_start(thread, thread->pool, &me->wait.timer, s->when);
}

/* Armed and linked: park, unless there is a reason not to. Returns the tag that ended the wait; WAIT_IDLE: the strand
 * itself has retracted it. */
static uint32_t park(struct thread **thread, struct select *s, int error)
{
    struct cb *me = s->me;
    struct pool *pool = (*thread)->pool;
    uint32_t tag = WAIT_IDLE;
    bool stay = error || s->now || interrupted(me); /* [W4] */
    if (!stay || !wait_retract(*thread, me)) {
        if (UNLIKELY(s->outside))
            quiescent_outside_begin(*thread);
        *thread = switch_park(*thread);
        if (UNLIKELY(s->outside))
            quiescent_outside_end(*thread);
        tag = wait_over(me);
    }
    if (s->when != INT64_MAX && !s->now && error == 0 && !(tag == WAIT_WON && wait_winner(me) == s->when_index))
        timer_stop(*thread, pool, &me->wait.timer);
    me->blocked = BLOCKED_NOT;
    return tag;
}

/* Returns the index of the case that has happened, a negated errno code, or AGAIN. */
enum { AGAIN = -4096 };

static int wait_for_one(struct thread **thread, struct select *s)
{
    struct cb *me = s->me;
    uint32_t happened = SELECT_NONE;
    if (UNLIKELY(thread_on_shared(*thread)))
        keep_values(*thread, s);
    s->offers = offers_get(*thread, s->count);
    if (!s->offers) {
        if (s->kept)
            give_values_back(s, SELECT_NONE);
        throw_no_memory(me, "a select");
    }
    s->when = INT64_MAX;
    s->outside = false;
    wait_because(*thread, me, BLOCKED_SELECT, s->count);
    me->wait.node.value = s->cases; /* diagnostics only: the wait's own node is unused otherwise */
    enum answer answer = stand_with_all(*thread, s, &happened);
    uint32_t tag = WAIT_IDLE;
    int error = 0;
    if (answer == SOURCE_NOT)
        error = s->now ? 0 : start_timer(*thread, s);
    else
        me->blocked = BLOCKED_NOT;
    if (answer == SOURCE_NOT || answer == SOURCE_LOST)
        tag = park(thread, s, error);
    bool won = tag == WAIT_WON;
    if (won)
        happened = wait_winner(me);
    answer = leave_all(*thread, s, won ? happened : SELECT_NONE) == SOURCE_AGAIN ? SOURCE_AGAIN : answer;
    if (UNLIKELY(s->kept != NULL))
        give_values_back(s, happened);
    if (won || answer == SOURCE_DONE || answer == SOURCE_DROPPED) {
        if (!won && !s->now)
            yield_if_asked(*thread);
        return answer == SOURCE_AGAIN ? AGAIN : happened == SELECT_NONE ? -EPIPE : (int)happened;
    }
    if (error)
        throw_no_memory(me, "a timer");
    if (s->now)
        return -EAGAIN;
    if (interrupted_here(me))
        interrupt_throw(*thread, me, 0);
    if (answer == SOURCE_LATER) {
        thread_tick(*thread);
        *thread = thread_yield(*thread);
    }
    return AGAIN;
}

static COLD void bad_select(const strand_case *cases, size_t count, strand_select_flags flags)
{
    if (count > CASES_MOST)
        misuse("strand_select", "", "%zu cases are more than %d", count, CASES_MOST);
    if (count && !cases)
        misuse("strand_select", "", "the %zu cases are NULL", count);
    misuse("strand_select", "", "the flags %#x are invalid", flags);
}

int strand_select(strand_case *cases, size_t count, strand_select_flags flags)
{
    struct thread *thread = must_be_strand("strand_select");
    struct select s = {.me = current_of(thread), .cases = cases, .count = (uint32_t)count, .flags = flags};
    if (UNLIKELY(count > CASES_MOST || (count && !cases) ||
                 (flags & ~(unsigned)(STRAND_SELECT_ORDERED | STRAND_SELECT_NOW))))
        bad_select(cases, count, flags);
    s.now = flags & STRAND_SELECT_NOW;
    if (LIKELY(!s.now))
        may_block(thread, s.me, "strand_select");
    if (s.me->tried)
        s.me->tried = false;                                                           /* set by an earlier select */
    bool by_wait = (flags & STRAND_SELECT_ORDERED) && count > 1 && thread->concurrent; /* [X3] */
    for (;;) {
        uint32_t live = by_wait;
        int result = by_wait ? -1 : attempt_all(thread, &s, &live);
        if (LIKELY(result >= 0 || !live)) {
            if (!s.now)
                yield_if_asked(thread);
            return result >= 0 ? result : -EPIPE;
        }
        if (s.now && !by_wait)
            return -EAGAIN;
        s.tried = !thread->concurrent && live == s.count;
        if (!by_wait)
            s.me->tried = true; /* all objects existed when they were tried */
        result = wait_for_one(&thread, &s);
        if (LIKELY(result != AGAIN))
            return result;
        s.me->tried = true;
    }
}

strand_case strand_case_drop(strand_case c)
{
    c.flags |= CASE_DROPS;
    return c;
}
