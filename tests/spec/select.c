/*
 * Waiting for one of many: exactly one case happens, whatever the others could have done. The tests run on one thread,
 * where no lock is needed, and on several, and expect the same on both. Channels that are closed are in
 * select_closed.c.
 */
/* */
#define SUITE select
#include "channels.h"

#include "strand/port.h"
#include "strand/sync.h"

#include <errno.h>

/* ---- one of many ------------------------------------------------------------------------------- */

/* */
TEST_INSIDE(the_case_that_can_happen_does_and_the_others_have_no_effect)
{
    FOR_BOTH_WAYS(flags)
    {
        STRAND_SCOPE(s);
        longs chans[3];
        long values[3] = {-1, -1, -1}, out = 9;
        for (int i = 0; i < 3; i++)
            chans[i] = STRAND_CHAN_OPEN(longs, s, 1);
        for (int n = 0; n < 3; n++) {
            send_to(chans[n], n + 40);
            strand_case cases[] = {STRAND_ON_RECEIVE(chans[0], &values[0]), STRAND_ON_RECEIVE(chans[1], &values[1]),
                                   STRAND_ON_RECEIVE(chans[2], &values[2]), STRAND_ON_SEND(chans[n], &out)};
            CHECK_EQ(strand_select(cases, 4, flags), n);
            CHECK_EQ(cases[n].result, 0);
            for (int i = 0; i < 3; i++) {
                CHECK_EQ(values[i], i <= n ? i + 40 : -1);
                CHECK_EQ(strand_chan_length(chans[i].untyped), 0);
            }
        }
    }
}

/* */
TEST_INSIDE(a_send_can_be_the_case_that_happens)
{
    FOR_BOTH_WAYS(flags)
    {
        STRAND_SCOPE(s);
        longs empty = STRAND_CHAN_OPEN(longs, s, 1), room = STRAND_CHAN_OPEN(longs, s, 1);
        long in = -1, out = 5;
        strand_case cases[] = {STRAND_ON_RECEIVE(empty, &in), STRAND_ON_SEND(room, &out)};
        CHECK_EQ(strand_select(cases, 2, flags), 1);
        CHECK_EQ(in, -1);
        CHECK_EQ(received_from(room), 5);
    }
}

/* */
TEST_INSIDE(a_select_that_waits_gets_what_is_sent)
{
    FOR_BOTH_WAYS(flags)
    {
        STRAND_SCOPE(s);
        longs a = STRAND_CHAN_OPEN(longs, s, 0), b = STRAND_CHAN_OPEN(longs, s, 2);
        for (int n = 0; n < 2; n++) {
            long values[2] = {-1, -1};
            strand_case cases[] = {STRAND_ON_RECEIVE(a, &values[0]), STRAND_ON_RECEIVE(b, &values[1])};
            struct selector selector;
            spawn_selector(s, &selector, cases, 2, flags);
            send_to(n ? b : a, 7);
            strand_join(selector.strand);
            CHECK_EQ(selector.chosen, n);
            CHECK_EQ(selector.cases[n].result, 0);
            CHECK_EQ(values[n], 7);
            CHECK_EQ(values[1 - n], -1);
            CHECK_EQ(strand_chan_length(b.untyped), 0);
        }
    }
}

/* */
TEST_INSIDE(a_select_that_waits_to_send_is_received_from)
{
    FOR_BOTH_WAYS(flags)
    {
        STRAND_SCOPE(s);
        longs a = STRAND_CHAN_OPEN(longs, s, 0), b = STRAND_CHAN_OPEN(longs, s, 0);
        long one = 1, two = 2;
        strand_case cases[] = {STRAND_ON_SEND(a, &one), STRAND_ON_SEND(b, &two)};
        struct selector selector;
        spawn_selector(s, &selector, cases, 2, flags);
        CHECK_EQ(received_from(b), 2);
        strand_join(selector.strand);
        CHECK_EQ(selector.chosen, 1);
        long value;
        CHECK_EQ(STRAND_TRY_RECEIVE(a, &value), -EAGAIN);
    }
}

/* H-06 */
TEST_INSIDE(room_that_a_receive_makes_is_taken_by_a_select_that_waits_to_send)
{
    STRAND_SCOPE(s);
    longs full = STRAND_CHAN_OPEN(longs, s, 1), other = STRAND_CHAN_OPEN(longs, s, 0);
    send_to(full, 1);
    long two = 2, in;
    strand_case cases[] = {STRAND_ON_RECEIVE(other, &in), STRAND_ON_SEND(full, &two)};
    struct selector selector;
    spawn_selector(s, &selector, cases, 2, 0);
    CHECK_EQ(received_from(full), 1);
    CHECK_EQ(strand_chan_length(full.untyped), 1);
    strand_join(selector.strand);
    CHECK_EQ(selector.chosen, 1);
    CHECK_EQ(received_from(full), 2);
}

/* */
TEST_INSIDE(two_selects_do_one_case_of_each_together)
{
    FOR_BOTH_WAYS(flags)
    {
        STRAND_SCOPE(s);
        longs a = STRAND_CHAN_OPEN(longs, s, 0), b = STRAND_CHAN_OPEN(longs, s, 0);
        long in = -1, out = 3, mine = -1, also = 4;
        strand_case theirs[] = {STRAND_ON_RECEIVE(a, &in), STRAND_ON_SEND(b, &out)};
        struct selector selector;
        spawn_selector(s, &selector, theirs, 2, 0);
        strand_case cases[] = {STRAND_ON_SEND(a, &also), STRAND_ON_RECEIVE(b, &mine)};
        int chosen = strand_select(cases, 2, flags);
        strand_join(selector.strand);
        CHECK_EQ(chosen, selector.chosen); /* they have the two channels in the same order */
        if (flags)
            CHECK_EQ(chosen, 0);
        CHECK_EQ(in, chosen == 0 ? 4 : -1);
        CHECK_EQ(mine, chosen == 1 ? 3 : -1);
    }
}

/* */
TEST_INSIDE(the_same_channel_may_stand_in_a_select_twice)
{
    FOR_BOTH_WAYS(flags)
    {
        STRAND_SCOPE(s);
        longs chan = STRAND_CHAN_OPEN(longs, s, 0);
        long one = -1, two = -1;
        strand_case cases[] = {STRAND_ON_RECEIVE(chan, &one), STRAND_ON_RECEIVE(chan, &two)};
        struct selector selector;
        spawn_selector(s, &selector, cases, 2, flags);
        send_to(chan, 6);
        strand_join(selector.strand);
        CHECK_EQ(one + two, 5);
        CHECK(selector.chosen == (one == 6 ? 0 : 1));
        long value = 0;
        CHECK_EQ(STRAND_TRY_SEND(chan, &value), -EAGAIN);
    }
}

/* What the select of the next test waits for: one object three times. */
static struct {
    longs chan;
    strand_port port;
    strand_semaphore semaphore;
    long out[3], in[3];
} thrice;

static strand_case send_case(int i)
{
    return STRAND_ON_SEND(thrice.chan, &thrice.out[i]);
}

static strand_case receive_case(int i)
{
    return STRAND_ON_RECEIVE(thrice.chan, &thrice.in[i]);
}

static strand_case message_case(int i)
{
    return strand_on_message(thrice.port, &thrice.in[i], sizeof thrice.in[i]);
}

static strand_case permit_case(int i)
{
    (void)i;
    return strand_on_permit(&thrice.semaphore);
}

static void receive_its_value(void)
{
    (void)received_from(thrice.chan);
}

static void send_a_value(void)
{
    send_to(thrice.chan, 1);
}

static void send_a_message(void)
{
    long value = 1;
    CHECK_EQ(strand_port_send(thrice.port, &value, sizeof value), 0);
}

static void give_a_permit(void)
{
    strand_semaphore_release(&thrice.semaphore);
}

static const struct {
    strand_case (*make)(int i);
    void (*serve)(void);
} thrice_ways[] = {{send_case, receive_its_value},
                   {receive_case, send_a_value},
                   {message_case, send_a_message},
                   {permit_case, give_a_permit}};

/* By chance a case is missed in 50 rounds once in 200 million times. */
TEST_INSIDE(of_a_select_that_waits_for_one_object_several_times_any_case_may_happen_or_the_first_if_ordered)
{
    FOR_BOTH_WAYS(flags)
    {
        for (size_t way = 0; way < sizeof thrice_ways / sizeof *thrice_ways; way++) {
            STRAND_SCOPE(s);
            thrice.chan = STRAND_CHAN_OPEN(longs, s, 0);
            thrice.port = strand_port_open(s, sizeof(long), 4, NULL);
            static int seen[3];
            memset(seen, 0, sizeof seen);
            for (int round = 0; round < 50; round++) {
                static strand_case cases[3];
                for (int i = 0; i < 3; i++)
                    cases[i] = thrice_ways[way].make(i);
                static struct selector selector;
                spawn_selector(s, &selector, cases, 3, flags);
                thrice_ways[way].serve();
                strand_join(selector.strand);
                seen[selector.chosen]++;
            }
            if (flags & STRAND_SELECT_ORDERED)
                CHECK_EQ(seen[0], 50);
            else
                for (int i = 0; i < 3; i++)
                    CHECK(seen[i] > 0);
        }
    }
}

/* */
TEST_INSIDE(a_select_that_sends_and_receives_on_one_channel_never_meets_itself)
{
    FOR_BOTH_WAYS(flags)
    {
        STRAND_SCOPE(s);
        longs chan = STRAND_CHAN_OPEN(longs, s, 0);
        for (int n = 0; n < 2; n++) {
            long in = -1, out = 8, now;
            strand_case cases[] = {STRAND_ON_RECEIVE(chan, &in), STRAND_ON_SEND(chan, &out)};
            CHECK_EQ(strand_select(cases, 2, flags | STRAND_SELECT_NOW), -EAGAIN);
            struct selector selector;
            spawn_selector(s, &selector, cases, 2, flags);
            strand_sleep(100 * STRAND_US);
            CHECK_EQ(selector.done, 0);
            if (n)
                send_to(chan, 1);
            else
                CHECK_EQ(received_from(chan), 8);
            strand_join(selector.strand);
            CHECK_EQ(selector.chosen, n ? 0 : 1);
            CHECK_EQ(in, n ? 1 : -1);
            CHECK_EQ(STRAND_TRY_RECEIVE(chan, &now), -EAGAIN);
        }
    }
}

/* */
TEST_INSIDE(two_selects_that_send_and_receive_on_one_channel_meet_each_other)
{
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN(longs, s, 0);
    long in = -1, out = 8, in2 = -1, out2 = 9;
    strand_case theirs[] = {STRAND_ON_RECEIVE(chan, &in), STRAND_ON_SEND(chan, &out)};
    strand_case cases[] = {STRAND_ON_RECEIVE(chan, &in2), STRAND_ON_SEND(chan, &out2)};
    struct selector selector;
    spawn_selector(s, &selector, theirs, 2, 0);
    int chosen = strand_select(cases, 2, 0);
    strand_join(selector.strand);
    CHECK_EQ(chosen + selector.chosen, 1);
    CHECK_EQ(chosen == 0 ? in2 : in, chosen == 0 ? 8 : 9);
}

/* H-05, X-12 */
TEST_INSIDE(selects_and_plain_strands_are_served_in_the_order_of_their_coming)
{
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN(longs, s, 0), other = STRAND_CHAN_OPEN(longs, s, 0);
    struct selector selectors[4];
    long values[4], unused;
    for (int i = 0; i < 4; i++) {
        values[i] = -1;
        strand_case cases[] = {STRAND_ON_RECEIVE(other, &unused), STRAND_ON_RECEIVE(chan, &values[i])};
        selectors[i] = (struct selector){.count = 2};
        memcpy(selectors[i].cases, cases, sizeof cases);
        selectors[i].strand = strand_spawn(s, select_once, &selectors[i]);
        await_selects(i + 1);
    }
    for (int i = 0; i < 4; i++) {
        send_to(chan, 30 + i);
        strand_join(selectors[i].strand);
        CHECK_EQ(values[i], 30 + i);
    }
}

TEST_INSIDE(a_select_can_have_very_many_cases)
{
    enum { MANY = 300 };
    FOR_BOTH_WAYS(flags)
    {
        STRAND_SCOPE(s);
        static longs chans[MANY];
        static strand_case cases[MANY];
        static long values[MANY];
        for (int i = 0; i < MANY; i++) {
            chans[i] = STRAND_CHAN_OPEN(longs, s, 1);
            cases[i] = STRAND_ON_RECEIVE(chans[i], &values[i]);
        }
        for (int n = 0; n < MANY; n += 23) {
            send_to(chans[n], n);
            CHECK_EQ(strand_select(cases, MANY, flags), n);
            CHECK_EQ(values[n], n);
            CHECK_EQ(strand_select(cases, MANY, flags | STRAND_SELECT_NOW), -EAGAIN);
        }
    }
}

/* ---- choosing ----------------------------------------------------------------------------------- */

static void choose_until_all_have_happened(int count)
{
    STRAND_SCOPE(s);
    longs full = STRAND_CHAN_OPEN(longs, s, 1), room = STRAND_CHAN_OPEN(longs, s, 1),
          closed = STRAND_CHAN_OPEN(longs, s, 0);
    strand ended = strand_spawn(s, test_return, NULL);
    strand_wait(ended);
    strand_chan_close(closed.untyped);
    long in = 0, out = 1;
    int happened[16] = {0}, left = count;
    send_to(full, 1);
    for (int round = 0; left; round++) {
        CHECK(round < 4000);
        strand_case cases[16];
        for (int i = 0; i < count; i++)
            cases[i] = i % 5 == 0   ? STRAND_ON_RECEIVE(full, &in)
                       : i % 5 == 1 ? STRAND_ON_SEND(room, &out)
                       : i % 5 == 2 ? strand_on_end(ended)
                       : i % 5 == 3 ? STRAND_ON_RECEIVE(closed, &in)
                                    : strand_on_time(strand_now());
        int chosen = strand_select(cases, (size_t)count, 0);
        CHECK(chosen >= 0 && chosen < count);
        CHECK_EQ(cases[chosen].result, chosen % 5 == 3 ? -EPIPE : 0);
        if (strand_chan_length(full.untyped) == 0)
            send_to(full, 1);
        if (strand_chan_length(room.untyped) == 1)
            CHECK_EQ(received_from(room), 1);
        left -= happened[chosen]++ == 0;
    }
    strand_join(ended);
}

/* */
TEST_INSIDE(by_chance_every_case_that_can_happen_does_sooner_or_later)
{
    for (int count = 1; count <= 13; count += 3)
        choose_until_all_have_happened(count);
}

/* */
TEST_INSIDE(chance_is_fair_among_few_cases)
{
    STRAND_SCOPE(s);
    longs chans[4];
    long value, counts[4] = {0};
    strand_case cases[4];
    for (int i = 0; i < 4; i++) {
        chans[i] = STRAND_CHAN_OPEN(longs, s, 1);
        cases[i] = STRAND_ON_RECEIVE(chans[i], &value);
        send_to(chans[i], i);
    }
    for (int n = 0; n < 2000; n++) {
        int chosen = strand_select(cases, 4, 0);
        counts[chosen]++;
        send_to(chans[chosen], n);
    }
    for (int i = 0; i < 4; i++)
        CHECK(counts[i] > 350 && counts[i] < 650);
}

/* */
TEST_INSIDE(in_order_the_first_listed_that_can_happen_does)
{
    STRAND_SCOPE(s);
    longs chans[3];
    long value;
    for (int i = 0; i < 3; i++)
        chans[i] = STRAND_CHAN_OPEN(longs, s, 1);
    for (int set = 1; set < 8; set++) {
        for (int i = 0; i < 3; i++)
            if (set >> i & 1)
                send_to(chans[i], i);
        for (int i = 0; i < 3; i++)
            if (set >> i & 1) {
                strand_case cases[] = {STRAND_ON_RECEIVE(chans[0], &value), STRAND_ON_RECEIVE(chans[1], &value),
                                       STRAND_ON_RECEIVE(chans[2], &value), strand_on_time(strand_now())};
                CHECK_EQ(strand_select(cases, 4, STRAND_SELECT_ORDERED), i);
                CHECK_EQ(value, i);
            }
    }
}

/* The first case and the last one; those between can never happen. */
enum { ORDERED = 24 };

static void *send_to_both(void *arg)
{
    const longs *both = arg;
    send_to(both[0], 1);
    send_to(both[1], 2);
    return NULL;
}

/* */
TEST_RACE(in_order_the_first_of_two_values_is_taken_first_while_they_are_sent)
{
    STRAND_SCOPE(s);
    longs both[] = {STRAND_CHAN_OPEN(longs, s, 1), STRAND_CHAN_OPEN(longs, s, 1)};
    longs never = STRAND_CHAN_OPEN(longs, s, 0);
    for (long i = 0; i < test_scale(2000); i++) {
        long value = -1;
        strand_case cases[ORDERED];
        for (int k = 0; k < ORDERED; k++)
            cases[k] = STRAND_ON_RECEIVE(never, &value);
        cases[0] = STRAND_ON_RECEIVE(both[0], &value);
        cases[ORDERED - 1] = STRAND_ON_RECEIVE(both[1], &value);
        strand sender = strand_spawn(s, send_to_both, both);
        CHECK_EQ(strand_select(cases, ORDERED, STRAND_SELECT_ORDERED), 0);
        CHECK_EQ(value, 1);
        CHECK_EQ(received_from(both[1]), 2);
        strand_join(sender);
    }
}

/* */
TEST_INSIDE(in_order_those_who_wait_are_partners_too)
{
    STRAND_SCOPE(s);
    longs a = STRAND_CHAN_OPEN(longs, s, 0), b = STRAND_CHAN_OPEN(longs, s, 1);
    long one = 1, value = -1;
    struct selector selector;
    strand_case theirs[] = {STRAND_ON_SEND(a, &one)};
    spawn_selector(s, &selector, theirs, 1, STRAND_SELECT_ORDERED);
    send_to(b, 2);
    strand_case cases[] = {STRAND_ON_RECEIVE(a, &value), STRAND_ON_RECEIVE(b, &value)};
    CHECK_EQ(strand_select(cases, 2, STRAND_SELECT_ORDERED), 0);
    CHECK_EQ(value, 1);
    CHECK_EQ(strand_select(cases, 2, STRAND_SELECT_ORDERED), 1);
    CHECK_EQ(value, 2);
    strand_join(selector.strand);
}

TEST_INSIDE(now_does_what_can_be_done_and_does_not_wait)
{
    FOR_BOTH_WAYS(flags)
    {
        STRAND_SCOPE(s);
        longs a = STRAND_CHAN_OPEN(longs, s, 1), b = STRAND_CHAN_OPEN(longs, s, 0);
        long in = -1, out = 2;
        strand_case cases[] = {
            STRAND_ON_RECEIVE(a, &in), STRAND_ON_SEND(b, &out), strand_on_time(strand_in(STRAND_S)), {0}};
        CHECK_EQ(strand_select(cases, 4, flags | STRAND_SELECT_NOW), -EAGAIN);
        send_to(a, 1);
        CHECK_EQ(strand_select(cases, 4, flags | STRAND_SELECT_NOW), 0);
        CHECK_EQ(in, 1);
        CHECK_EQ(strand_select(cases, 4, flags | STRAND_SELECT_NOW), -EAGAIN);
        CHECK_EQ(strand_chan_length(a.untyped), 0);
    }
}

/* */
TEST_INSIDE(a_select_can_be_kept_and_changed)
{
    STRAND_SCOPE(s);
    longs in = STRAND_CHAN_OPEN(longs, s, 8), out = STRAND_CHAN_OPEN(longs, s, 8);
    long value = 0;
    for (long i = 0; i < 8; i++)
        send_to(in, i);
    strand_chan_close(in.untyped);
    strand_case cases[2] = {STRAND_ON_RECEIVE(in, &value)}; /* the second is {0} */
    long passed = 0;
    for (;;) { /* what comes is passed on */
        int chosen = strand_select(cases, 2, 0);
        if (chosen == 0 && cases[0].result == -EPIPE)
            break;
        if (chosen == 1)
            passed++;
        bool has = chosen == 0;
        cases[0] = has ? (strand_case){0} : STRAND_ON_RECEIVE(in, &value);
        cases[1] = has ? STRAND_ON_SEND(out, &value) : (strand_case){0};
    }
    CHECK_EQ(passed, 8);
    for (long i = 0; i < 8; i++)
        CHECK_EQ(received_from(out), i);
}

/* ---- nothing ------------------------------------------------------------------------------------- */

/* */
TEST_INSIDE(a_case_of_zeros_never_happens)
{
    FOR_BOTH_WAYS(flags)
    {
        STRAND_SCOPE(s);
        longs chan = STRAND_CHAN_OPEN(longs, s, 1);
        long out = 1;
        strand_case cases[] = {{0}, {0}, STRAND_ON_SEND(chan, &out), {0}};
        CHECK_EQ(strand_select(cases, 4, flags), 2);
    }
}

TEST_INSIDE(a_select_without_any_case_that_can_happen_says_so)
{
    FOR_BOTH_WAYS(flags)
    {
        strand_case cases[20] = {{0}};
        for (size_t count = 0; count <= 20; count++) {
            CHECK_EQ(strand_select(cases, count, flags), -EPIPE);
            CHECK_EQ(strand_select(cases, count, flags | STRAND_SELECT_NOW), -EPIPE);
        }
        CHECK_EQ(strand_select(NULL, 0, flags), -EPIPE);
    }
}

/* ---- ends and instants ---------------------------------------------------------------------------- */

/* X-19, contract 4.10 */
TEST_INSIDE(a_select_can_wait_for_the_end_of_a_strand)
{
    FOR_BOTH_WAYS(flags)
    {
        STRAND_SCOPE(s);
        longs chan = STRAND_CHAN_OPEN(longs, s, 0);
        struct test_child children[2] = {{0}, {0}};
        strand one = test_spawn_started(s, test_child_waits, &children[0]);
        strand two = test_spawn_started(s, test_child_waits, &children[1]);
        long in;
        strand_case cases[] = {STRAND_ON_RECEIVE(chan, &in), strand_on_end(one), strand_on_end(two)};
        struct selector selector;
        spawn_selector(s, &selector, cases, 3, flags);
        children[1].release = 1;
        strand_join(selector.strand);
        CHECK_EQ(selector.chosen, 2);
        CHECK_PTR(strand_join(two), &children[1]);   /* it was not consumed */
        CHECK_EQ(strand_select(cases, 3, flags), 2); /* nor does it matter that it is gone */
        children[0].release = 1;
        strand_join(one);
    }
}

TEST_INSIDE(a_strand_may_stand_in_a_select_twice_and_end_before_all_others)
{
    STRAND_SCOPE(s);
    struct test_child child = {0}, other = {0};
    strand one = test_spawn_started(s, test_child_waits, &child);
    strand two = test_spawn_started(s, test_child_waits, &other);
    strand_case cases[] = {strand_on_end(one), strand_on_end(two), strand_on_end(one)};
    struct selector selectors[2];
    spawn_selector(s, &selectors[0], cases, 3, 0);
    spawn_selector(s, &selectors[1], cases, 3, 0);
    await_selects(2);
    child.release = 1;
    strand_join(one);
    for (int i = 0; i < 2; i++) {
        strand_join(selectors[i].strand);
        CHECK(selectors[i].chosen == 0 || selectors[i].chosen == 2);
    }
    other.release = 1;
    strand_join(two);
}

/* */
TEST_INSIDE(the_earliest_of_several_instants_happens_and_not_too_early)
{
    FOR_BOTH_WAYS(flags)
    {
        strand_time start = strand_now();
        strand_case cases[] = {strand_on_time((strand_time){0}), strand_on_time(strand_in(7200 * STRAND_S)),
                               strand_on_time(strand_in(2 * STRAND_MS)), strand_on_time(strand_in(FOREVER))};
        CHECK_EQ(strand_select(cases, 4, flags), 2);
        CHECK(strand_now().ns >= start.ns + 2 * STRAND_MS);
    }
}

TEST_INSIDE(an_instant_that_has_passed_happens_at_once)
{
    strand_case cases[] = {strand_on_time((strand_time){0}), strand_on_time(strand_now())};
    CHECK_EQ(strand_select(cases, 2, STRAND_SELECT_NOW), 1);
    CHECK_EQ(strand_select(cases, 1, STRAND_SELECT_NOW), -EAGAIN);
}

TEST_INSIDE(an_instant_that_did_not_happen_is_forgotten)
{
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN(longs, s, 1);
    long in;
    for (int i = 0; i < 20; i++) {
        strand_case cases[] = {STRAND_ON_RECEIVE(chan, &in), strand_on_time(strand_in(200 * STRAND_US))};
        struct selector selector = {.cases = {cases[0], cases[1]}, .count = 2};
        selector.strand = strand_spawn(s, select_once, &selector);
        strand_yield();
        send_to(chan, i);
        strand_join(selector.strand);
        if (selector.chosen == 1)
            CHECK_EQ(received_from(chan), i);
        strand_sleep(300 * STRAND_US); /* nothing comes of it */
    }
}

static void *sleep_then_send(void *arg)
{
    strand_sleep(100 * STRAND_US);
    send_to(*(longs *)arg, 1);
    return NULL;
}

/* */
TEST_RACE(an_instant_and_a_value_race_and_the_value_is_never_lost)
{
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN(longs, s, 0);
    for (long i = 0; i < test_scale(500); i++) {
        long in = -1;
        strand sender = strand_spawn(s, sleep_then_send, &chan);
        strand_case cases[] = {STRAND_ON_RECEIVE(chan, &in), strand_on_time(strand_in((60 + i % 80) * STRAND_US))};
        if (strand_select(cases, 2, ways[i % 2]) == 1) {
            CHECK_EQ(in, -1);
            in = received_from(chan);
        }
        CHECK_EQ(in, 1);
        strand_join(sender);
    }
}

/* ---- interruption --------------------------------------------------------------------------------- */

/* */
TEST_INSIDE(a_select_that_was_interrupted_has_had_no_effect)
{
    FOR_BOTH_WAYS(flags)
    {
        STRAND_SCOPE(s);
        longs a = STRAND_CHAN_OPEN(longs, s, 0), b = STRAND_CHAN_OPEN(longs, s, 0);
        struct test_child child = {0};
        strand other = test_spawn_started(s, test_child_waits, &child);
        long in = -1, out = 1;
        strand_case cases[] = {STRAND_ON_RECEIVE(a, &in), STRAND_ON_SEND(b, &out), strand_on_end(other),
                               strand_on_time(strand_in(FOREVER))};
        struct selector selector;
        spawn_selector(s, &selector, cases, 4, flags);
        strand_cancel(selector.strand, NULL);
        strand_wait(selector.strand);
        CHECK_EQ(selector.done, 0);
        long value = 5;
        CHECK_EQ(STRAND_TRY_SEND(a, &value), -EAGAIN);
        CHECK_EQ(STRAND_TRY_RECEIVE(b, &value), -EAGAIN);
        CHECK_EQ(in, -1);
        child.release = 1;
        strand_join(other);
    }
}

static void *select_ready(void *arg)
{
    strand_case *c = arg;
    strand_select(c, 1, 0);
    test_log("selected");
    return NULL;
}

TEST_INSIDE(a_cancelled_strand_selects_nothing_even_if_it_would_not_wait)
{
    STRAND_SCOPE(s);
    longs chan = STRAND_CHAN_OPEN(longs, s, 1);
    send_to(chan, 1);
    long in = -1;
    strand_case c = STRAND_ON_RECEIVE(chan, &in);
    test_run_cancelled(select_ready, &c);
    CHECK_LOG("");
    CHECK_EQ(in, -1);
    CHECK_EQ(strand_chan_length(chan.untyped), 1);
}

static void *select_in_time(void *arg)
{
    longs *chans = arg;
    long in, out = 1;
    strand_case cases[] = {STRAND_ON_RECEIVE(chans[0], &in), STRAND_ON_SEND(chans[1], &out)};
    STRAND_DEADLINE(strand_in(STRAND_MS));
    return TEST_PTR(strand_select(cases, 2, 0));
}

TEST_INSIDE(a_select_can_have_a_deadline)
{
    STRAND_SCOPE(s);
    longs chans[2] = {STRAND_CHAN_OPEN(longs, s, 0), STRAND_CHAN_OPEN(longs, s, 0)};
    CHECK_THROWS(select_in_time, chans, &STRAND_TIMED_OUT);
    long value;
    CHECK_EQ(STRAND_TRY_RECEIVE(chans[1], &value), -EAGAIN);
}

/* ---- each value is one of its own, and has one fate ------------------------------------------------- */

enum { VALUES = 1 << 15, SENT = 1, RECEIVED = 2 };
static _Atomic int fates[VALUES];
static _Atomic int next_value;
static long values_most;

static void forget_values(long most)
{
    values_most = most < VALUES ? most : VALUES - 64;
    next_value = 0;
    for (int i = 0; i < VALUES; i++)
        fates[i] = 0;
}

static void was_sent(long value)
{
    CHECK_EQ(atomic_fetch_or(&fates[value], SENT) & SENT, 0);
}

static void was_received(long value)
{
    CHECK(value >= 0 && value < VALUES);
    CHECK_EQ(atomic_fetch_or(&fates[value], RECEIVED) & RECEIVED, 0);
}

/* Each was sent and received, or neither. Returns how many. */
static int check_fates(void)
{
    int count = 0;
    for (int i = 0; i < VALUES; i++) {
        if (fates[i] != 0 && fates[i] != (SENT | RECEIVED))
            CHECK_FAIL("value %d was %s", i, fates[i] == SENT ? "lost" : "made up");
        count += fates[i] != 0;
    }
    return count;
}

static void drain(longs chan)
{
    long value;
    while (STRAND_TRY_RECEIVE(chan, &value) == 0)
        was_received(value);
}

enum { CHANS = 3 };
struct party {
    longs chans[CHANS];
    int number;
    unsigned sends, receives; /* sets of channels */
    unsigned flags;
    bool alternates; /* now and then it does a plain operation instead */
    long count;
};

/* One select with these cases. Returns false: a channel was closed. */
static bool take_part_once(struct party *party, long *mine, bool backwards)
{
    strand_case cases[2 * CHANS];
    long in[CHANS];
    int kinds[2 * CHANS], count = 0;
    for (int n = 0; n < 2 * CHANS; n++) {
        int i = backwards ? 2 * CHANS - 1 - n : n, chan = i / 2;
        if (i % 2 == 0 && party->sends >> chan & 1) {
            cases[count] = STRAND_ON_SEND(party->chans[chan], mine);
            kinds[count++] = i;
        } else if (i % 2 && party->receives >> chan & 1) {
            in[chan] = -1;
            cases[count] = STRAND_ON_RECEIVE(party->chans[chan], &in[chan]);
            kinds[count++] = i;
        }
    }
    int chosen = strand_select(cases, (size_t)count, party->flags);
    CHECK(chosen >= 0);
    for (int n = 0; n < count; n++)
        if (n != chosen && kinds[n] % 2)
            CHECK_EQ(in[kinds[n] / 2], -1); /* no other has had an effect */
    if (cases[chosen].result)
        return false;
    if (kinds[chosen] % 2) {
        was_received(in[kinds[chosen] / 2]);
    } else {
        was_sent(*mine);
        *mine = next_value++;
    }
    return true;
}

static void *take_part(void *arg)
{
    struct party *party = arg;
    long mine = next_value++;
    for (long i = 0; party->count ? i < party->count : next_value < values_most; i++) {
        int chan = (int)(i % CHANS);
        long value;
        if (party->alternates && i % 3 == 0 && party->receives >> chan & 1) {
            if (STRAND_TRY_RECEIVE(party->chans[chan], &value) == 0)
                was_received(value);
        } else if (party->alternates && i % 3 == 1 && party->sends >> chan & 1) {
            if (STRAND_TRY_SEND(party->chans[chan], &mine) == 0) {
                was_sent(mine);
                mine = next_value++;
            }
        } else if (!take_part_once(party, &mine, (i + party->number) % 2)) {
            break;
        }
        if (i % 16 == 15)
            strand_yield();
    }
    return NULL;
}

/* Until enough was sent; then all are cancelled, wherever they are. */
static void meet(const struct party *parties, int count, const size_t *capacities, long values)
{
    forget_values(values);
    STRAND_SCOPE(s);
    longs chans[CHANS];
    struct party own[16];
    for (int i = 0; i < CHANS; i++)
        chans[i] = STRAND_CHAN_OPEN(longs, s, capacities[i]);
    strand strands[16];
    for (int i = 0; i < count; i++) {
        own[i] = parties[i];
        own[i].number = i;
        memcpy(own[i].chans, chans, sizeof chans);
        strands[i] = strand_spawn(s, take_part, &own[i]);
    }
    while (next_value < values_most)
        strand_sleep(20 * STRAND_US);
    for (int i = 0; i < count; i++)
        strand_cancel(strands[i], NULL);
    strand_scope_join(s);
    for (int i = 0; i < CHANS; i++)
        drain(chans[i]);
    CHECK(check_fates() > 0);
}

static const size_t rendezvous[CHANS] = {0, 0, 0}, mixed[CHANS] = {0, 1, 3};

/* */
TEST_RACE(selects_that_send_and_receive_on_the_same_channels_pair_up_exactly)
{
    const struct party all = {.sends = 7, .receives = 7};
    struct party parties[6];
    for (int i = 0; i < 6; i++) {
        parties[i] = all;
        parties[i].flags = ways[i % 2];
    }
    meet(parties, 6, rendezvous, test_scale(20000));
    meet(parties, 6, mixed, test_scale(20000));
}

/* H-07, X-02, X-06, X-17 */
TEST_RACE(selects_in_a_circle_of_channels_pair_up_exactly)
{
    struct party parties[6];
    for (int i = 0; i < 6; i++)
        parties[i] = (struct party){.sends = 1u << i % 3, .receives = 1u << (i + 1) % 3, .flags = ways[i / 3]};
    meet(parties, 6, rendezvous, test_scale(20000));
    meet(parties, 6, mixed, test_scale(20000));
}

/* */
TEST_RACE(selects_and_plain_operations_pair_up_exactly)
{
    struct party parties[8];
    for (int i = 0; i < 8; i++)
        parties[i] = (struct party){.sends = i % 2 ? 7 : 5, .receives = i % 3 ? 7 : 6, .alternates = i % 4 < 2};
    meet(parties, 8, rendezvous, test_scale(20000));
    meet(parties, 8, mixed, test_scale(20000));
}

/* Each operation takes one round of each of the two, so both come to their ends, or somebody was not woken. */
/* */
TEST_RACE(two_selects_with_all_cases_against_each_other_never_miss_each_other)
{
    for (int way = 0; way < 4; way++) {
        forget_values(VALUES);
        STRAND_SCOPE(s);
        struct party parties[2];
        longs chans[CHANS];
        for (int i = 0; i < CHANS; i++)
            chans[i] = STRAND_CHAN_OPEN(longs, s, 0);
        for (int i = 0; i < 2; i++) {
            parties[i] = (struct party){
                .number = i * (way % 2), .sends = 7, .receives = 7, .flags = ways[way / 2], .count = test_scale(3000)};
            memcpy(parties[i].chans, chans, sizeof chans);
            strand_spawn(s, take_part, &parties[i]);
        }
        strand_scope_join(s);
        CHECK_EQ(check_fates(), test_scale(3000));
    }
}

static void *cancel_some(void *arg)
{
    strand *strands = arg;
    for (int i = 0; i < 8; i++) {
        strand_cancel(strands[i], NULL);
        if (i % 3 == 0)
            strand_yield();
    }
    return NULL;
}

/* contract 5.1 */
TEST_RACE(interrupted_selects_neither_lose_nor_double_a_value)
{
    for (long round = 0; round < test_scale(500); round++) {
        forget_values(1000);
        STRAND_SCOPE(s);
        longs chans[CHANS];
        strand strands[8];
        struct party parties[8];
        for (int i = 0; i < CHANS; i++)
            chans[i] = STRAND_CHAN_OPEN(longs, s, round % 2 ? rendezvous[i] : mixed[i]);
        for (int i = 0; i < 8; i++) {
            parties[i] = (struct party){
                .number = i, .sends = i % 3 ? 7 : 2, .receives = i % 3 == 1 ? 1 : 7, .flags = ways[i % 2]};
            memcpy(parties[i].chans, chans, sizeof chans);
            strands[i] = strand_spawn(s, take_part, &parties[i]);
        }
        for (long i = 0; i < round % 7; i++)
            strand_yield();
        strand_spawn(s, cancel_some, strands);
        for (int i = 0; i < 8; i++)
            strand_cancel(strands[i], NULL);
        strand_scope_join(s);
        for (int i = 0; i < CHANS; i++)
            drain(chans[i]);
        check_fates();
    }
}

struct note {
    long text;
};
typedef STRAND_CHAN(struct note *) notes;

static void *write_notes(void *arg)
{
    notes *chans = arg;
    for (long i = 1; i <= test_scale(2000); i++) {
        struct note *note = malloc(sizeof *note);
        note->text = i;
        strand_case cases[] = {STRAND_ON_SEND(chans[0], &note), STRAND_ON_SEND(chans[1], &note)};
        strand_select(cases, 2, 0);
    }
    return NULL;
}

/* For the thread sanitizer: the memory is not atomic. */
/* X-14, contract 8.2 */
TEST_RACE(a_partner_of_a_select_sees_what_was_done_before_it)
{
    STRAND_SCOPE(s);
    notes chans[2] = {STRAND_CHAN_OPEN(notes, s, 0), STRAND_CHAN_OPEN(notes, s, 1)};
    strand_spawn(s, write_notes, chans);
    long last[2] = {0, 0};
    for (long i = 1; i <= test_scale(2000); i++) {
        struct note *note[2];
        strand_case cases[] = {STRAND_ON_RECEIVE(chans[0], &note[0]), STRAND_ON_RECEIVE(chans[1], &note[1])};
        int chosen = strand_select(cases, 2, 0);
        CHECK(note[chosen]->text > last[chosen]);
        last[chosen] = note[chosen]->text;
        free(note[chosen]);
    }
    strand_scope_join(s);
}
