/*
 * What the tests of channels and of selects share: strands that send, receive or select once.
 */
#ifndef SPEC_CHANNELS_H
#define SPEC_CHANNELS_H

#include "test.h"

#include "strand/chan.h"

typedef STRAND_CHAN(long) longs;

/* Let others run until so many strands wait in this way. Under a seed time is virtual, and a sleep that long is over
 * when all of them wait; a dump for each would be what the seeds take most of their time for. */
static inline void await_blocked(const char *how, int count)
{
    if (test_seed()) {
        strand_sleep(10 * STRAND_MS);
        return;
    }
    for (;;) {
        int found = 0;
        for (const char *at = test_dump(); (at = strstr(at, how)); at++)
            found++;
        if (found >= count)
            return;
        strand_sleep(20 * STRAND_US);
    }
}

static inline void await_senders(int count)
{
    await_blocked("blocked: sends to", count);
}

static inline void await_receivers(int count)
{
    await_blocked("blocked: receives from", count);
}

static inline void await_selects(int count)
{
    await_blocked("blocked: waits for one of", count);
}

/* ---- channels -------------------------------------------------------------------------------------- */

/* A strand that sends one value, or receives one. */
struct peer {
    longs chan;
    long value;
    int result;
    _Atomic int done;
    strand strand;
};

static inline void *send_one(void *arg)
{
    struct peer *peer = arg;
    peer->result = STRAND_SEND(peer->chan, &peer->value);
    peer->done = 1;
    return NULL;
}

static inline void *receive_one(void *arg)
{
    struct peer *peer = arg;
    peer->result = STRAND_RECEIVE(peer->chan, &peer->value);
    peer->done = 1;
    return NULL;
}

/* They come one after the other, and wait. */
static inline void spawn_senders(strand_scope scope, struct peer *peers, int count, longs chan, long first)
{
    for (int i = 0; i < count; i++) {
        peers[i] = (struct peer){.chan = chan, .value = first + i, .result = 1};
        peers[i].strand = strand_spawn(scope, send_one, &peers[i]);
        await_senders(i + 1);
    }
}

static inline void spawn_receivers(strand_scope scope, struct peer *peers, int count, longs chan)
{
    for (int i = 0; i < count; i++) {
        peers[i] = (struct peer){.chan = chan, .value = -1, .result = 1};
        peers[i].strand = strand_spawn(scope, receive_one, &peers[i]);
        await_receivers(i + 1);
    }
}

static inline void send_to(longs chan, long value)
{
    CHECK_EQ(STRAND_SEND(chan, &value), 0);
}

static inline long received_from(longs chan)
{
    long value = -1;
    CHECK_EQ(STRAND_RECEIVE(chan, &value), 0);
    return value;
}

static inline void *receive_until_closed(void *arg)
{
    longs *chan = arg;
    long value, received = 0;
    while (STRAND_RECEIVE(*chan, &value) == 0)
        received++;
    return TEST_PTR(received);
}

/* ---- selects ---------------------------------------------------------------------------------------- */

/* A strand that selects once. */
enum { CASES_MOST = 8 };
struct selector {
    strand_case cases[CASES_MOST];
    size_t count;
    unsigned flags;
    int chosen;
    _Atomic int done;
    strand strand;
};

static inline void *select_once(void *arg)
{
    struct selector *selector = arg;
    selector->chosen = strand_select(selector->cases, selector->count, selector->flags);
    selector->done = 1;
    return NULL;
}

/* Returns when it waits, or has done it already. */
static inline void spawn_selector(strand_scope scope, struct selector *selector, const strand_case *cases, size_t count,
                                  unsigned flags)
{
    *selector = (struct selector){.count = count, .flags = flags, .chosen = -1};
    memcpy(selector->cases, cases, count * sizeof *cases);
    selector->strand = strand_spawn(scope, select_once, selector);
    if (test_seed())
        strand_sleep(10 * STRAND_MS);
    while (!test_seed() && !selector->done && !strstr(test_dump(), "blocked: waits for one of"))
        strand_sleep(20 * STRAND_US);
}

static const unsigned ways[] = {0, STRAND_SELECT_ORDERED};
#define FOR_BOTH_WAYS(flags) for (unsigned w_ = 0, flags; w_ < 2 && (flags = ways[w_], true); w_++)

#endif
