/*
 * The position of a case in the queue of its object, and the cases of the core: ends of strands, and time.
 * The protocol block is in source.h.
 */
#include "source.h"

#include "../strand/end.h"
#include "../strand/handle.h"
#include "../strand/misuse.h"
#include "../strand/wait.h"

/* ---- one object in several cases ---------------------------------------------------------------------------- */

enum { PLACES_MOST = 16 }; /* if there are more, only the last ones are shuffled */

struct link *select_place_(struct thread *thread, struct link *queue, const struct wait_node *node)
{
    struct link *place = queue;
    uint32_t own = 0;
    if (node->marks & NODE_ORDERED) /* [X4] */
        return queue;
    for (struct link *at = queue->prev; at != queue && own < PLACES_MOST; at = at->prev, own++)
        if (CONTAINER(at, struct wait_node, link)->waiter != node->waiter)
            break;
    for (uint32_t back = platform_chance(thread, own + 1); back; back--)
        place = place->prev;
    return place;
}

/* ---- the end of a strand ----------------------------------------------------------------------------------- */

static strand other_in(const strand_case *c)
{
    return (strand){{c->object[0], c->object[1]}};
}

static enum answer end_stand(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node)
{
    struct cb *other = handle_ref_cb(thread, other_in(c), "strand_select");
    if (!other) {
        end_seen(other_in(c));
        return source_settle(thread, me, c, node);
    }
    if (UNLIKELY(other == me))
        MISUSE_STRAND("strand_select", me, "a strand can't wait for its own end: let another strand wait");
    bool waits = node ? ends_link(thread, other, node) : !ended(other);
    handle_unref_cb(thread, other);
    if (waits)
        return SOURCE_NOT;
    end_seen(other_in(c));
    if (node)
        atomic_store_explicit(&node->linked, 0, memory_order_relaxed);
    return source_settle(thread, me, c, node);
}

static enum answer end_over(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node, bool won)
{
    (void)me;
    if (!won && atomic_load_explicit(&node->linked, memory_order_acquire)) /* [E2] */
        ends_unlink(thread, other_in(c), node);
    c->result = 0;
    return SOURCE_DONE;
}

static const struct strand_source_ source_end = {.stand = end_stand, .over = end_over, .blocked = BLOCKED_WAIT};

strand_case strand_on_end(strand other)
{
    if (!other.bits[1])
        MISUSE("strand_on_end", "",
               "there is no strand behind {0}: the handle was never set to what strand_spawn returns");
    return (strand_case){.source = &source_end, .object = {other.bits[0], other.bits[1]}};
}

/* ---- instants ------------------------------------------------------------------------------------------------ */

static enum answer time_stand(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node)
{
    if (c->detail > platform_now(thread->sub))
        return SOURCE_NOT;
    return source_settle(thread, me, c, node);
}

static int64_t time_when(const strand_case *c)
{
    return c->detail;
}

static bool time_is_due(struct thread *thread, const strand_case *c)
{
    return c->detail <= platform_now(thread->sub);
}

static enum answer time_over(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node, bool won)
{
    (void)thread, (void)me, (void)node, (void)won;
    c->result = 0;
    return SOURCE_DONE;
}

static const struct strand_source_ source_time = {
    .stand = time_stand, .ready = time_is_due, .over = time_over, .when = time_when, .blocked = BLOCKED_SLEEP};

strand_case strand_on_time(strand_time when)
{
    return (strand_case){.source = &source_time, .detail = when.ns ? when.ns : INT64_MAX};
}

/* ---- tickers ------------------------------------------------------------------------------------------------- */

strand_ticker strand_ticker_every(int64_t period_ns)
{
    if (period_ns < 1)
        MISUSE("strand_ticker_every", "", "the period is %lld ns, not 1 or more", (long long)period_ns);
    return (strand_ticker){.next_ns = strand_in(period_ns).ns, .period_ns = period_ns};
}

/* Misuse unless strand_ticker_every has made it. */
static void must_be_ticker(const strand_ticker *ticker, const char *function)
{
    if (UNLIKELY(!ticker || ticker->period_ns < 1))
        misuse(function, "", "there is no ticker: strand_ticker_every makes one");
}

/* A tick has come: the next one is the first that has not passed. */
static void take_tick(struct thread *thread, strand_ticker *ticker)
{
    int64_t late = platform_now(thread->sub) - ticker->next_ns;
    uint64_t missed = late > 0 ? (uint64_t)(late / ticker->period_ns) : 0;
    ticker->missed = missed;
    ticker->next_ns += (int64_t)(missed + 1) * ticker->period_ns;
}

static strand_ticker *ticker_in(const strand_case *c)
{
    return c->value;
}

static enum answer tick_stand(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node)
{
    if (ticker_in(c)->next_ns > platform_now(thread->sub))
        return SOURCE_NOT;
    enum answer answer = source_settle(thread, me, c, node);
    if (answer == SOURCE_DONE)
        take_tick(thread, ticker_in(c));
    return answer;
}

static int64_t tick_when(const strand_case *c)
{
    return ticker_in(c)->next_ns;
}

static enum answer tick_over(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node, bool won)
{
    (void)me, (void)node;
    if (won)
        take_tick(thread, ticker_in(c));
    c->result = 0;
    return SOURCE_DONE;
}

static const struct strand_source_ source_tick = {
    .stand = tick_stand, .over = tick_over, .when = tick_when, .blocked = BLOCKED_SLEEP};

strand_case strand_on_tick(strand_ticker *ticker)
{
    must_be_ticker(ticker, "strand_on_tick");
    return (strand_case){.source = &source_tick, .value = ticker};
}

uint64_t strand_wait_tick(strand_ticker *ticker)
{
    must_be_ticker(ticker, "strand_wait_tick");
    wait_sleep((strand_time){ticker->next_ns}, "strand_wait_tick");
    take_tick(thread_self(), ticker);
    return ticker->missed;
}
