/*
 * Waits on real threads: nobody who waits for the end of a strand is forgotten, and nobody is woken by another's end.
 */
#define SUITE stress_wait
#include "test.h"

static bool time_is_left(strand_time until)
{
    return strand_now().ns < until.ns;
}

/* ---- a chain: each waits for the one before it ---------------------------------------------- */

#define LINKS 50

static struct {
    strand strands[LINKS];
    _Atomic int known, done[LINKS];
} chain;

static void *wait_for_the_one_before(void *arg)
{
    uintptr_t i = (uintptr_t)arg;
    test_yield_until(&chain.known, 1);
    if (i > 0) {
        strand_wait(chain.strands[i - 1]);
        CHECK_EQ(chain.done[i - 1], 1);
        CHECK(strand_ended(chain.strands[i - 1]));
    }
    chain.done[i] = 1;
    return arg;
}

static void *chains_for_a_while(void *arg)
{
    strand_time until = strand_in(test_scale(150) * STRAND_MS);
    while (time_is_left(until)) {
        STRAND_SCOPE(scope);
        chain.known = 0;
        for (uintptr_t i = 0; i < LINKS; i++) {
            chain.done[i] = 0;
            chain.strands[i] = strand_spawn(scope, wait_for_the_one_before, (void *)i);
        }
        chain.known = 1;
        strand_scope_join(scope);
        CHECK_EQ(chain.done[LINKS - 1], 1);
    }
    return arg;
}

TEST_REAL(a_chain_of_waits_comes_to_its_end)
{
    test_run(chains_for_a_while, NULL);
}

/* ---- many waiters for one ------------------------------------------------------------------- */

static strand awaited;
static _Atomic int go, it_ended;

static void *end_when_released(void *arg)
{
    test_yield_until(&go, 1);
    it_ended = 1;
    return arg;
}

static void *wait_for_it(void *arg)
{
    strand_wait(awaited);
    CHECK_EQ(it_ended, 1);
    return arg;
}

/* The first half of the waiters comes before the end, the others race with it; every fifth one is cancelled. */
static void *crowds_of_waiters_for_a_while(void *arg)
{
    strand_time until = strand_in(test_scale(150) * STRAND_MS);
    while (time_is_left(until)) {
        STRAND_SCOPE_WITH(scope, STRAND_COLLECT);
        strand waiters[40];
        go = it_ended = 0;
        awaited = strand_spawn(scope, end_when_released, arg);
        for (int i = 0; i < 40; i++) {
            waiters[i] = strand_spawn(scope, wait_for_it, arg);
            if (i == 20)
                go = 1;
            if (i % 5 == 4)
                strand_cancel(waiters[i - 2], NULL);
        }
        strand_scope_join(scope);
    }
    return arg;
}

/* contract 4.10 */
TEST_REAL(the_end_of_a_strand_wakes_all_its_waiters)
{
    test_run(crowds_of_waiters_for_a_while, NULL);
}

/* ---- nested: each waits for the one it spawned, then joins it ------------------------------------ */

static void *ping(void *rounds)
{
    if (rounds == NULL)
        return NULL;
    STRAND_SCOPE(scope);
    strand pong = strand_spawn(scope, ping, (void *)((uintptr_t)rounds - 1));
    strand_wait(pong);
    CHECK(strand_ended(pong));
    return (void *)((uintptr_t)strand_join(pong) + 1);
}

static void *pings_for_a_while(void *arg)
{
    strand_time until = strand_in(test_scale(150) * STRAND_MS);
    while (time_is_left(until)) {
        STRAND_SCOPE(scope);
        strand players[8];
        for (int i = 0; i < 8; i++)
            players[i] = strand_spawn(scope, ping, (void *)20);
        for (int i = 0; i < 8; i++)
            CHECK_EQ((uintptr_t)strand_join(players[i]), 20);
    }
    return arg;
}

TEST_REAL(waits_that_nest_return_in_turn)
{
    test_run(pings_for_a_while, NULL);
}
