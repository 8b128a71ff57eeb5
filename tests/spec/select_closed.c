/*
 * Selects on channels that are closed: it is an outcome of the case that found it, or the case drops out.
 */
#define SUITE select_closed
#include "channels.h"

#include "strand/limit.h"

#include <errno.h>

/* */
TEST_INSIDE(closed_is_an_outcome_of_the_operation_that_found_it)
{
    FOR_BOTH_WAYS(flags)
    {
        STRAND_SCOPE(s);
        longs chan = STRAND_CHAN_OPEN(longs, s, 1), open = STRAND_CHAN_OPEN(longs, s, 0);
        long in = -1, out = 1;
        send_to(chan, 5);
        strand_chan_close(chan.untyped);
        strand_case receive[] = {STRAND_ON_RECEIVE(open, &in), STRAND_ON_RECEIVE(chan, &in)};
        strand_case send[] = {STRAND_ON_RECEIVE(open, &in), STRAND_ON_SEND(chan, &out)};
        CHECK_EQ(strand_select(send, 2, flags), 1);
        CHECK_EQ(send[1].result, -EPIPE);
        CHECK_EQ(strand_select(receive, 2, flags), 1);
        CHECK_EQ(receive[1].result, 0);
        CHECK_EQ(in, 5);
        CHECK_EQ(strand_select(receive, 2, flags), 1);
        CHECK_EQ(receive[1].result, -EPIPE);
        CHECK_EQ(in, 5);
    }
}

/* */
TEST_INSIDE(of_a_send_and_a_receive_on_a_closed_channel_either_may_find_it)
{
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN(longs, s, 1);
    strand_chan_close(chan.untyped);
    long in = -1, out = 1;
    int seen = 0;
    strand_case cases[] = {STRAND_ON_RECEIVE(chan, &in), STRAND_ON_SEND(chan, &out)};
    CHECK_EQ(strand_select(cases, 2, STRAND_SELECT_ORDERED), 0);
    for (int i = 0; i < 200; i++) {
        int chosen = strand_select(cases, 2, 0);
        CHECK_EQ(cases[chosen].result, -EPIPE);
        seen |= 1 << chosen;
    }
    CHECK_EQ(seen, 3);
}

/* */
TEST_INSIDE(the_close_ends_the_wait_of_a_select_to_receive)
{
    FOR_BOTH_WAYS(flags)
    {
        STRAND_SCOPE(s);
        longs a = STRAND_CHAN_OPEN(longs, s, 0), b = STRAND_CHAN_OPEN(longs, s, 0);
        long in = -1;
        strand_case cases[] = {STRAND_ON_RECEIVE(a, &in), STRAND_ON_RECEIVE(b, &in)};
        struct selector selector;
        spawn_selector(s, &selector, cases, 2, flags);
        strand_chan_close(b.untyped);
        strand_join(selector.strand);
        CHECK_EQ(selector.chosen, 1);
        CHECK_EQ(selector.cases[1].result, -EPIPE);
    }
}

/* H-04 */
TEST_INSIDE(a_select_that_had_queued_to_send_before_the_close_is_a_sender_still)
{
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN(longs, s, 0), other = STRAND_CHAN_OPEN(longs, s, 0);
    long out = 4, in;
    strand_case cases[] = {STRAND_ON_RECEIVE(other, &in), STRAND_ON_SEND(chan, &out)};
    struct selector selector;
    spawn_selector(s, &selector, cases, 2, 0);
    strand_chan_close(chan.untyped);
    CHECK_EQ(selector.done, 0);
    CHECK_EQ(received_from(chan), 4);
    strand_join(selector.strand);
    CHECK_EQ(selector.chosen, 1);
    CHECK_EQ(selector.cases[1].result, 0);
    CHECK_EQ(STRAND_RECEIVE(chan, &in), -EPIPE);
}

/* */
TEST_INSIDE(a_case_can_drop_out_where_its_channel_is_closed)
{
    FOR_BOTH_WAYS(flags)
    {
        STRAND_SCOPE(s);
        longs closed = STRAND_CHAN_OPEN(longs, s, 1), open = STRAND_CHAN_OPEN(longs, s, 1);
        long in = -1, out = 1;
        send_to(closed, 3);
        send_to(open, 4);
        strand_chan_close(closed.untyped);
        strand_case cases[] = {
            strand_case_drop(STRAND_ON_SEND(closed, &out)), strand_case_drop(STRAND_ON_RECEIVE(closed, &in)), {0}};
        CHECK_EQ(strand_select(cases, 3, flags), 1); /* closed, but not empty */
        CHECK_EQ(in, 3);
        cases[2] = STRAND_ON_RECEIVE(open, &in);
        CHECK_EQ(strand_select(cases, 3, flags), 2);
        CHECK_EQ(in, 4);
        cases[2] = (strand_case){0};
        CHECK_EQ(strand_select(cases, 3, flags), -EPIPE);
        CHECK_EQ(strand_select(cases, 3, flags | STRAND_SELECT_NOW), -EPIPE);
    }
}

/* */
TEST_INSIDE(cases_drop_out_also_while_the_select_waits)
{
    FOR_BOTH_WAYS(flags)
    {
        STRAND_SCOPE(s);
        longs a = STRAND_CHAN_OPEN(longs, s, 0), b = STRAND_CHAN_OPEN(longs, s, 0);
        long in = -1, out = 1;
        strand_case cases[] = {strand_case_drop(STRAND_ON_RECEIVE(a, &in)), strand_case_drop(STRAND_ON_SEND(a, &out)),
                               STRAND_ON_RECEIVE(b, &in)};
        struct selector selector;
        spawn_selector(s, &selector, cases, 3, flags);
        strand_chan_close(a.untyped);
        strand_sleep(100 * STRAND_US);
        CHECK_EQ(selector.done, 0);
        send_to(b, 2);
        strand_join(selector.strand);
        CHECK_EQ(selector.chosen, 2);
        CHECK_EQ(in, 2);
    }
}

/* */
TEST_INSIDE(a_select_whose_cases_have_all_dropped_out_while_it_waited_says_that_none_can_happen)
{
    FOR_BOTH_WAYS(flags)
    for (int dead = 0; dead < 3; dead++) { /* some are out from the beginning */
        STRAND_SCOPE(s);
        longs chans[3];
        long in = -1, out = 1;
        strand_case cases[7] = {{0}};
        for (int i = 0; i < 3; i++) {
            chans[i] = STRAND_CHAN_OPEN(longs, s, 0);
            cases[2 * i + 1] = strand_case_drop(STRAND_ON_RECEIVE(chans[i], &in));
            cases[2 * i + 2] = strand_case_drop(STRAND_ON_SEND(chans[i], &out));
        }
        for (int i = 0; i < dead; i++)
            strand_chan_close(chans[i].untyped);
        struct selector selector;
        spawn_selector(s, &selector, cases, 7, flags);
        for (int i = dead; i < 3; i++) {
            strand_sleep(50 * STRAND_US);
            CHECK_EQ(selector.done, 0);
            strand_chan_close(chans[i].untyped);
        }
        strand_join(selector.strand);
        CHECK_EQ(selector.chosen, -EPIPE);
        CHECK_EQ(in, -1);
    }
}

TEST_INSIDE(a_case_that_drops_out_does_not_take_an_instant_with_it)
{
    STRAND_SCOPE(s);
    longs a = STRAND_CHAN_OPEN(longs, s, 0);
    long in;
    strand_case cases[] = {strand_case_drop(STRAND_ON_RECEIVE(a, &in)), strand_on_time(strand_in(STRAND_MS))};
    struct selector selector;
    spawn_selector(s, &selector, cases, 2, 0);
    strand_chan_close(a.untyped);
    strand_join(selector.strand);
    CHECK_EQ(selector.chosen, 1);
}

struct closing {
    longs chans[4];
    int count;
};

static void *close_all(void *arg)
{
    struct closing *closing = arg;
    for (int i = 0; i < closing->count; i++)
        strand_chan_close(closing->chans[i].untyped);
    return NULL;
}

/* */
TEST_RACE(closing_races_with_selects_that_drop_out)
{
    for (long round = 0; round < test_scale(1500); round++) {
        STRAND_SCOPE(s);
        struct closing closing = {.count = 4};
        struct selector selectors[3];
        long in, out = 1;
        for (int i = 0; i < 4; i++)
            closing.chans[i] = STRAND_CHAN_OPEN(longs, s, 0);
        for (int n = 0; n < 3; n++) {
            selectors[n] = (struct selector){.count = 4, .flags = ways[n % 2]};
            for (int i = 0; i < 4; i++)
                selectors[n].cases[i] = strand_case_drop(n == 2 ? STRAND_ON_SEND(closing.chans[i], &out)
                                                                : STRAND_ON_RECEIVE(closing.chans[i], &in));
            selectors[n].strand = strand_spawn(s, select_once, &selectors[n]);
        }
        if (round % 2)
            strand_yield();
        strand_spawn(s, close_all, &closing);
        strand_scope_join(s);
        int received = 0;
        for (int n = 0; n < 2; n++)
            received += selectors[n].chosen != -EPIPE;
        CHECK_EQ(received, selectors[2].chosen != -EPIPE);
    }
}

TEST_INSIDE(a_select_of_an_unrelated_strand_that_waits_when_the_scope_ends_gets_that_it_is_closed)
{
    FOR_BOTH_WAYS(flags)
    for (int sending = 0; sending < 2; sending++) {
        STRAND_SCOPE(outer);
        longs lasting = STRAND_CHAN_OPEN(longs, outer, 0);
        long value = 3, unused;
        struct selector selector, dropping;
        {
            STRAND_SCOPE(inner);
            longs chan = STRAND_CHAN_OPEN(longs, inner, 0);
            strand_case cases[] = {STRAND_ON_RECEIVE(lasting, &unused),
                                   sending ? STRAND_ON_SEND(chan, &value) : STRAND_ON_RECEIVE(chan, &value)};
            spawn_selector(outer, &selector, cases, 2, flags);
            cases[0] = strand_case_drop(cases[1]);
            spawn_selector(outer, &dropping, cases, 1, flags);
            await_selects(2);
        }
        strand_scope_join(outer);
        CHECK_EQ(selector.chosen, 1);
        CHECK_EQ(selector.cases[1].result, -EPIPE);
        CHECK_EQ(dropping.chosen, -EPIPE);
        CHECK_EQ(value, 3);
    }
}

/* ---- the end of a channel in the middle -------------------------------------------------------------- */

static _Atomic int asked, gone;
static strand_chan ending;

/* The function of a permit, the first case: it is called when the select tries all cases, and again when the select is
 * queued. Then the channel of the second case ends, on the other thread. */
static int64_t ask(const void *key, void *arg)
{
    (void)key, (void)arg;
    if (++asked == 2)
        while (!gone)
            ;
    return STRAND_NOT_NOW;
}

static void *open_until_asked(void *arg)
{
    {
        STRAND_SCOPE(s);
        ending = strand_chan_open(s, sizeof(int), 0, NULL);
        *(_Atomic int *)arg = 1;
        while (asked < 2)
            ;
    }
    gone = true;
    return NULL;
}

static void *select_from_what_ends(void *arg)
{
    strand_prio_semaphore sem;
    strand_prio_options options = {.size = sizeof options, .permits = 1, .priority = ask};
    _Atomic int is_open = 0;
    int value;
    STRAND_SCOPE(s);
    strand_prio_init(&sem, &options);
    strand opener = strand_spawn(s, open_until_asked, (void *)&is_open);
    test_yield_until(&is_open, 1);
    strand_case cases[] = {strand_on_prio_permit(&sem, NULL), strand_on_receive(ending, &value)};
    CHECK_EQ(strand_select(cases, 2, 0), 1);
    CHECK_EQ(cases[1].result, -EPIPE);
    strand_join(opener);
    return arg;
}

/* */
TEST_REAL(a_channel_that_ends_between_the_first_look_and_the_waiting_is_closed)
{
    strand_options options = test_options();
    test_set_threads(&options, 2);
    strand_run(&options, select_from_what_ends, NULL);
}
