/*
 * Tickers: instants at equal distances, whenever they are waited for.
 */
#define SUITE ticker
#include "test.h"

#include "strand/select.h"

enum { PERIOD = 2000 * 1000 };

TEST_INSIDE(the_first_tick_comes_after_one_period)
{
    strand_time start = strand_now();
    strand_ticker ticker = strand_ticker_every(PERIOD);
    CHECK(ticker.next_ns >= start.ns + PERIOD && ticker.next_ns <= strand_now().ns + PERIOD);
    int64_t first = ticker.next_ns;
    strand_wait_tick(&ticker);
    CHECK(strand_now().ns >= first);
}

/* What a caller does between the ticks does not move them: they stay multiples of the period from the first. */
TEST_INSIDE(lateness_does_not_move_the_later_ticks)
{
    strand_ticker ticker = strand_ticker_every(PERIOD);
    int64_t first = ticker.next_ns, expected = first;
    for (int i = 0; i < 30; i++) {
        uint64_t missed = strand_wait_tick(&ticker);
        expected += (int64_t)missed * PERIOD;
        int64_t now = strand_now().ns;
        CHECK(now >= expected);
        CHECK_EQ((ticker.next_ns - first) % PERIOD, 0);
        expected += PERIOD;
        CHECK_EQ(ticker.next_ns, expected);
        CHECK_EQ(ticker.missed, missed);
        strand_sleep(PERIOD / 3);
    }
}

/* Real time may miss more, virtual time does not. */
TEST_INSIDE(ticks_that_nobody_waited_for_are_counted_as_missed)
{
    for (int64_t late = 1; late < 5; late++) {
        strand_ticker ticker = strand_ticker_every(PERIOD);
        int64_t first = ticker.next_ns;
        strand_sleep_until((strand_time){first + late * PERIOD + PERIOD / 2});
        uint64_t missed = strand_wait_tick(&ticker);
        CHECK(missed >= (uint64_t)late);
        if (test_seed())
            CHECK_EQ(missed, late);
        CHECK_EQ(ticker.next_ns, first + (int64_t)(missed + 1) * PERIOD);
        CHECK(ticker.next_ns > strand_now().ns || !test_seed());
    }
}

TEST_INSIDE(a_caller_that_keeps_up_misses_none)
{
    strand_ticker ticker = strand_ticker_every(10 * STRAND_MS);
    uint64_t missed = 0;
    for (int i = 0; i < 5; i++)
        missed += strand_wait_tick(&ticker);
    if (test_seed())
        CHECK_EQ(missed, 0);
}

/* */
TEST_INSIDE(a_tick_can_be_a_case_of_a_select)
{
    strand_ticker slow = strand_ticker_every(5 * PERIOD), fast = strand_ticker_every(PERIOD);
    int64_t first = fast.next_ns;
    int counts[2] = {0, 0};
    while (counts[0] < 3) {
        strand_case cases[] = {strand_on_tick(&slow), strand_on_tick(&fast)};
        int64_t before[2] = {slow.next_ns, fast.next_ns};
        int chosen = strand_select(cases, 2, STRAND_SELECT_ORDERED);
        strand_ticker *ticker = chosen ? &fast : &slow;
        counts[chosen] += 1 + (int)ticker->missed;
        CHECK_EQ(cases[chosen].result, 0);
        CHECK(strand_now().ns >= before[chosen]);
        CHECK_EQ(ticker->next_ns, before[chosen] + (int64_t)(ticker->missed + 1) * ticker->period_ns);
        CHECK_EQ(chosen ? slow.next_ns : fast.next_ns, before[1 - chosen]); /* the other has kept its tick */
    }
    CHECK_EQ((fast.next_ns - first) / PERIOD, counts[1]);
    CHECK(counts[1] >= 12 || !test_seed());
}

static void *tick_forever(void *arg)
{
    while (strand_wait_tick(arg) < UINT64_MAX)
        ;
    return arg;
}

TEST_INSIDE(an_interrupted_wait_for_a_tick_has_taken_none)
{
    strand_ticker ticker = strand_ticker_every(STRAND_S), before = ticker;
    test_run_cancelled(tick_forever, &ticker);
    CHECK_EQ(ticker.next_ns, before.next_ns);
    STRAND_SCOPE(s);
    strand child = strand_spawn(s, tick_forever, &ticker);
    strand_sleep(PERIOD);
    strand_cancel(child, NULL);
    strand_wait(child);
    CHECK_EQ(ticker.next_ns, before.next_ns);
    CHECK_EQ(ticker.missed, 0);
}

TEST(a_ticker_can_be_made_by_any_thread)
{
    strand_ticker ticker = strand_ticker_every(PERIOD);
    CHECK_EQ(ticker.period_ns, PERIOD);
    CHECK(ticker.next_ns >= strand_now().ns);
}
