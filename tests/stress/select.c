/*
 * Selects on real threads: many strands with all kinds of cases over a few channels. Every value has a number of its
 * own: it was sent and received once, or neither.
 */
#define SUITE stress_select
#include "test.h"

#include "strand/chan.h"

#include <errno.h>

typedef STRAND_CHAN(long) longs;

enum { CHANS = 4, PARTIES = 24, VALUES = 1 << 22, SENT = 1, RECEIVED = 2 };

static _Atomic unsigned char fates[VALUES];
static _Atomic long next_value;

static bool time_is_left(strand_time until)
{
    return strand_now().ns < until.ns;
}

static void is(long value, int fate)
{
    CHECK(value >= 0 && value < VALUES);
    CHECK_EQ(atomic_fetch_or(&fates[value], (unsigned char)fate) & fate, 0);
}

struct party {
    longs *chans;
    int number;
};

/* Cases that depend on the round: two sends, two receives, and perhaps an instant. */
static void take_part_once(struct party *party, long round, long *mine)
{
    longs *chans = party->chans;
    long in[2] = {-1, -1};
    long turn = round + party->number;
    strand_case cases[] = {STRAND_ON_SEND(chans[turn % CHANS], mine),
                           STRAND_ON_RECEIVE(chans[(turn + party->number) % CHANS], &in[0]),
                           STRAND_ON_SEND(chans[(turn * 3 + 1) % CHANS], mine),
                           STRAND_ON_RECEIVE(chans[(turn * 5 + 2) % CHANS], &in[1]),
                           {0}};
    if (turn % 7 == 0)
        cases[4] = strand_on_time(strand_in(turn % 50 * STRAND_US));
    unsigned flags = (turn % 3 ? 0 : STRAND_SELECT_ORDERED) | (turn % 11 ? 0 : STRAND_SELECT_NOW);
    int chosen = strand_select(cases, 5, flags);
    CHECK(chosen >= 0 || chosen == -EAGAIN);
    for (int i = 0; i < 2; i++)
        if (chosen == 2 * i + 1)
            is(in[i], RECEIVED);
        else
            CHECK_EQ(in[i], -1);
    if (chosen == 0 || chosen == 2) {
        is(*mine, SENT);
        *mine = next_value++;
    }
}

static void *take_part(void *arg)
{
    struct party *party = arg;
    long mine = next_value++;
    for (long round = 0; next_value < VALUES - 2 * PARTIES; round++)
        take_part_once(party, round, &mine);
    return NULL;
}

static void meet(const size_t *capacities, int64_t ns)
{
    STRAND_SCOPE(scope);
    longs chans[CHANS];
    struct party parties[PARTIES];
    strand strands[PARTIES];
    next_value = 0;
    for (long i = 0; i < VALUES; i++)
        atomic_store_explicit(&fates[i], 0, memory_order_relaxed);
    for (int i = 0; i < CHANS; i++)
        chans[i] = STRAND_CHAN_OPEN(longs, scope, capacities[i]);
    for (int i = 0; i < PARTIES; i++) {
        parties[i] = (struct party){chans, i};
        strands[i] = strand_spawn(scope, take_part, &parties[i]);
    }
    strand_time until = strand_in(ns);
    for (int i = 0; time_is_left(until) || i < PARTIES; i++) { /* now and then one is cancelled, and another comes */
        int n = i % PARTIES;
        strand_sleep(ns / 200);
        strand_cancel(strands[n], NULL);
        strand_wait(strands[n]);
        if (time_is_left(until))
            strands[n] = strand_spawn(scope, take_part, &parties[n]);
    }
    for (int i = 0; i < PARTIES; i++)
        strand_cancel(strands[i], NULL);
    strand_scope_join(scope);
    long value, count = 0;
    for (int i = 0; i < CHANS; i++)
        while (STRAND_TRY_RECEIVE(chans[i], &value) == 0)
            is(value, RECEIVED);
    for (long i = 0; i < VALUES; i++) {
        if (fates[i] == SENT || fates[i] == RECEIVED)
            CHECK_FAIL("value %ld was %s", i, fates[i] == SENT ? "lost" : "made up");
        count += fates[i] != 0;
    }
    CHECK(count > 0);
}

static void *meet_at_rendezvous(void *arg)
{
    meet((size_t[]){0, 0, 0, 0}, test_scale(400) * STRAND_MS);
    return arg;
}

static void *meet_at_all_kinds(void *arg)
{
    meet((size_t[]){0, 1, 0, 5}, test_scale(400) * STRAND_MS);
    return arg;
}

TEST_REAL(values_that_many_selects_hand_over_arrive_once)
{
    test_run(meet_at_rendezvous, NULL);
}

TEST_REAL(values_that_many_selects_put_into_channels_arrive_once)
{
    test_run(meet_at_all_kinds, NULL);
}
