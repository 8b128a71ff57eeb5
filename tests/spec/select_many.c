/*
 * Selects of many cases: what has not happened is left behind nowhere, and chance is fair, however many there are.
 */
#define SUITE select_many
#include "channels.h"

#include <errno.h>

enum { MOST = 40, ROUNDS = 8 };

static void run_on_one_thread(strand_fn *fn, void *arg)
{
    strand_options options = test_options();
    options.threads = 1;
    strand_run(&options, fn, arg);
}

/* ---- no case is left behind ------------------------------------------------------------------------ */

/* One strand selects again and again, in turns on one set of channels and on the other: sends and receives take turns
 * too. */
struct many {
    int count;
    unsigned flags;
    longs chans[2][MOST];
    strand_case cases[MOST];
    long in[MOST], out[MOST];
    _Atomic int rounds; /* the number of finished rounds. For the last one: */
    int chosen, result;
    long seen[MOST];
};

static bool is_send(int round, int i)
{
    return (round / 2 + i) % 2;
}

/* The other set has the other order: so a case that was left behind would be taken for one of another channel. */
static longs chan_of(const struct many *many, int round, int i)
{
    return many->chans[round % 2][round % 2 ? many->count - 1 - i : i];
}

static void *select_in_turns(void *arg)
{
    struct many *many = arg;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < many->count; i++) {
            many->in[i] = -1;
            many->out[i] = 1000 * round + i;
            many->cases[i] = is_send(round, i) ? STRAND_ON_SEND(chan_of(many, round, i), &many->out[i])
                                               : STRAND_ON_RECEIVE(chan_of(many, round, i), &many->in[i]);
        }
        many->chosen = strand_select(many->cases, (size_t)many->count, many->flags);
        many->result = many->chosen >= 0 ? many->cases[many->chosen].result : 1;
        memcpy(many->seen, many->in, sizeof many->seen);
        many->rounds = round + 1;
    }
    return NULL;
}

/* Nobody waits at the channels of an earlier round, to send or to receive. */
static void check_that_nobody_is_there(struct many *many, int round)
{
    long value = -7;
    for (int i = 0; i < many->count; i++) {
        CHECK_EQ(STRAND_TRY_SEND(chan_of(many, round, i), &value), -EAGAIN);
        CHECK_EQ(STRAND_TRY_RECEIVE(chan_of(many, round, i), &value), -EAGAIN);
    }
}

static void meet_case(struct many *many, int round, int i)
{
    if (is_send(round, i))
        CHECK_EQ(received_from(chan_of(many, round, i)), 1000 * round + i);
    else
        send_to(chan_of(many, round, i), 50 + i);
    test_yield_until(&many->rounds, round + 1);
    CHECK_EQ(many->chosen, i);
    CHECK_EQ(many->result, 0);
    for (int n = 0; n < many->count; n++)
        CHECK_EQ(many->seen[n], n == i && !is_send(round, i) ? 50 + i : -1);
}

/* Others use all the channels, and values go from one to the other. */
static void use_all_channels(strand_scope scope, struct many *many)
{
    for (int set = 0; set < 2; set++)
        for (int i = 0; i < many->count; i++) {
            struct peer receiver = {.chan = many->chans[set][i], .value = -1};
            receiver.strand = strand_spawn(scope, receive_one, &receiver);
            send_to(many->chans[set][i], 70 + i);
            strand_join(receiver.strand);
            CHECK_EQ(receiver.value, 70 + i);
        }
}

static void *wait_with_many(void *arg)
{
    FOR_BOTH_WAYS(flags)
    {
        static struct many many;
        STRAND_SCOPE(s);
        many = (struct many){.count = *(int *)arg, .flags = flags};
        for (int i = 0; i < many.count; i++) {
            many.chans[0][i] = STRAND_CHAN_OPEN(longs, s, 0);
            many.chans[1][i] = STRAND_CHAN_OPEN(longs, s, 0);
        }
        strand selector = strand_spawn(s, select_in_turns, &many);
        for (int round = 0; round < ROUNDS; round++) {
            test_await_blocked("blocked: waits for one of", 1);
            check_that_nobody_is_there(&many, round + 1);
            meet_case(&many, round, (round * 7 + (int)flags) % many.count);
        }
        strand_join(selector);
        check_that_nobody_is_there(&many, 0);
        check_that_nobody_is_there(&many, 1);
        use_all_channels(s, &many);
    }
    return arg;
}

static int numbers[] = {12, MOST};

/* */
TEST(on_one_thread_a_select_of_many_cases_that_has_waited_leaves_none_of_them_behind)
{
    for (int i = 0; i < 2; i++)
        run_on_one_thread(wait_with_many, &numbers[i]);
}

/* */
TEST_RACE(a_select_of_many_cases_that_has_waited_leaves_none_of_them_behind)
{
    for (int i = 0; i < 2; i++)
        wait_with_many(&numbers[i]);
}

static void *select_for_ever(void *arg)
{
    struct many *many = arg;
    strand_select(many->cases, (size_t)many->count, many->flags);
    return NULL;
}

/* Each that is cancelled leaves its memory to the next. */
static void *interrupt_many(void *arg)
{
    FOR_BOTH_WAYS(flags)
    {
        static struct many many;
        STRAND_SCOPE(s);
        many = (struct many){.count = *(int *)arg, .flags = flags};
        for (int i = 0; i < many.count; i++) {
            many.chans[0][i] = STRAND_CHAN_OPEN(longs, s, 0);
            many.chans[1][i] = STRAND_CHAN_OPEN(longs, s, 0);
        }
        for (int round = 0; round < ROUNDS; round++) {
            for (int i = 0; i < many.count; i++)
                many.cases[i] = is_send(round, i) ? STRAND_ON_SEND(chan_of(&many, round, i), &many.out[i])
                                                  : STRAND_ON_RECEIVE(chan_of(&many, round, i), &many.in[i]);
            strand selector = strand_spawn(s, select_for_ever, &many);
            test_await_blocked("blocked: waits for one of", 1);
            check_that_nobody_is_there(&many, round + 1);
            strand_cancel(selector, NULL);
            CHECK(test_join_interrupted(selector));
        }
        use_all_channels(s, &many);
    }
    return arg;
}

/* */
TEST(on_one_thread_an_interrupted_select_of_many_cases_leaves_none_of_them_behind)
{
    for (int i = 0; i < 2; i++)
        run_on_one_thread(interrupt_many, &numbers[i]);
}

/* H-08, X-16 */
TEST_RACE(an_interrupted_select_of_many_cases_leaves_none_of_them_behind)
{
    for (int i = 0; i < 2; i++)
        interrupt_many(&numbers[i]);
}

/* ---- chance is fair ---------------------------------------------------------------------------------- */

enum { CHOICES = 4000 };

/* If two cases can happen, each is chosen half of the time, wherever they are listed. */
static void choose_between(int count, int one, int other)
{
    STRAND_SCOPE(s);
    static longs chans[MOST];
    static strand_case cases[MOST];
    static long value;
    int counts[2] = {0, 0};
    for (int i = 0; i < count; i++) {
        chans[i] = STRAND_CHAN_OPEN(longs, s, 1);
        cases[i] = STRAND_ON_RECEIVE(chans[i], &value);
    }
    send_to(chans[one], 1);
    send_to(chans[other], 2);
    for (int n = 0; n < CHOICES; n++) {
        int chosen = strand_select(cases, (size_t)count, 0);
        CHECK(chosen == one || chosen == other);
        CHECK_EQ(value, chosen == one ? 1 : 2);
        counts[chosen == other]++;
        send_to(chans[chosen], value);
    }
    if (counts[0] < CHOICES * 2 / 5 || counts[0] > CHOICES * 3 / 5)
        CHECK_FAIL("of %d cases the ones at %d and %d have happened %d and %d times", count, one, other, counts[0],
                   counts[1]);
}

static void *choose(void *arg)
{
    int count = *(int *)arg;
    choose_between(count, 0, 1);
    choose_between(count, 0, count - 1);
    choose_between(count, count / 4, count - 1);
    return arg;
}

static int few = 4, some = 16, lots = MOST;

/* */
TEST_REAL(on_one_thread_chance_is_fair_to_two_of_four_cases)
{
    run_on_one_thread(choose, &few);
}

/* */
TEST_REAL(on_one_thread_chance_is_fair_to_two_of_sixteen_cases)
{
    run_on_one_thread(choose, &some);
}

/* */
TEST_REAL(on_one_thread_chance_is_fair_to_two_of_forty_cases)
{
    run_on_one_thread(choose, &lots);
}

/* */
TEST_REAL_RACE(chance_is_fair_to_two_of_four_cases)
{
    choose(&few);
}

/* */
TEST_REAL_RACE(chance_is_fair_to_two_of_sixteen_cases)
{
    choose(&some);
}

/* */
TEST_REAL_RACE(chance_is_fair_to_two_of_forty_cases)
{
    choose(&lots);
}
