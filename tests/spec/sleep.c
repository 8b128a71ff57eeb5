/*
 * Time: sleeping, the order of wake-ups, and instants.
 */
#define SUITE sleep
#include "test.h"

/* ---- instants -------------------------------------------------------------------------------- */

TEST_INSIDE(time_does_not_go_backwards)
{
    strand_time last = strand_now();
    for (int i = 0; i < 1000; i++) {
        strand_time now = strand_now();
        CHECK(now.ns >= last.ns);
        last = now;
        strand_yield();
    }
}

TEST_INSIDE(an_instant_to_come_is_now_and_the_time_until_then)
{
    strand_time before = strand_now();
    strand_time then = strand_in(5 * STRAND_S);
    strand_time after = strand_now();
    CHECK(then.ns >= before.ns + 5 * STRAND_S);
    CHECK(then.ns <= after.ns + 5 * STRAND_S);
}

TEST_INSIDE(instants_saturate)
{
    CHECK_EQ(strand_in(INT64_MAX).ns, INT64_MAX);
    CHECK_EQ(strand_in(INT64_MAX - 1).ns, INT64_MAX);
    CHECK(strand_in(INT64_MIN).ns < strand_now().ns);
}

TEST(any_thread_may_ask_for_the_time)
{
    strand_time before = strand_now();
    CHECK(before.ns > 0);
    CHECK(strand_in(STRAND_S).ns >= before.ns + STRAND_S);
}

TEST_INSIDE(units_are_nanoseconds)
{
    CHECK_EQ(STRAND_US, 1000);
    CHECK_EQ(STRAND_MS, 1000000);
    CHECK_EQ(STRAND_S, 1000000000);
}

/* ---- how long -------------------------------------------------------------------------------- */

TEST_INSIDE(a_sleep_lasts_no_shorter_than_it_says)
{
    static const int64_t lengths[] = {1, STRAND_US, 50 * STRAND_US, STRAND_MS, 3 * STRAND_MS + 7};
    for (int i = 0; i < 5; i++) {
        int64_t before = strand_now().ns;
        strand_sleep(lengths[i]);
        CHECK(strand_now().ns >= before + lengths[i]);
    }
}

TEST_INSIDE(a_sleep_until_an_instant_lasts_until_then)
{
    strand_time when = strand_in(2 * STRAND_MS);
    strand_sleep_until(when);
    CHECK(strand_now().ns >= when.ns);
}

static void *count_turns(void *arg)
{
    struct test_child *child = arg;
    for (;;) {
        atomic_fetch_add(&child->release, 1);
        atomic_store(&child->started, 1);
        strand_yield();
    }
    return NULL;
}

static void *sleep_for_nothing(void *unused)
{
    struct test_child other = {0};
    STRAND_SCOPE(s);
    strand child = strand_spawn(s, count_turns, &other);
    test_yield_until(&other.started, 1);
    int before = other.release;
    strand_sleep(0);
    strand_sleep(-STRAND_S);
    strand_sleep(INT64_MIN);
    strand_sleep_until((strand_time){strand_now().ns - 1});
    strand_sleep_until((strand_time){1});
    CHECK(other.release >= before + 5);
    strand_cancel(child, NULL);
    return unused;
}

/* On one thread, where the other one runs only if it is let; a seed may let the same one go on. */
TEST_REAL(a_sleep_that_is_over_before_it_begins_yields_all_the_same)
{
    struct strand_options options = test_options();
    options.threads = 1;
    strand_run(&options, sleep_for_nothing, NULL);
}

/* V-08 */
TEST_INSIDE(others_run_while_a_strand_sleeps)
{
    struct test_child other = {0};
    STRAND_SCOPE(s);
    strand child = strand_spawn(s, test_child_waits, &other);
    while (!other.started)
        strand_sleep(STRAND_US);
    other.release = 1;
    CHECK_PTR(strand_join(child), &other);
}

/* ---- in which order -------------------------------------------------------------------------- */

struct sleeper {
    int64_t ns;
    int number;
};

static void *sleep_and_log(void *arg)
{
    struct sleeper *sleeper = arg;
    strand_sleep(sleeper->ns);
    test_log("%d", sleeper->number);
    return NULL;
}

static void *sleep_in_disorder(void *unused)
{
    static const int order[] = {3, 0, 4, 1, 2};
    struct sleeper sleepers[5];
    STRAND_SCOPE(s);
    for (int i = 0; i < 5; i++) {
        sleepers[i] = (struct sleeper){(20 + 20 * order[i]) * STRAND_MS, order[i]};
        strand_spawn(s, sleep_and_log, &sleepers[i]);
    }
    strand_scope_join(s);
    return unused;
}

/* On one thread: on several threads, the strand that was woken first may log last. */
TEST(strands_wake_up_in_the_order_of_their_times)
{
    struct strand_options options = test_options();
    options.threads = 1;
    strand_run(&options, sleep_in_disorder, NULL);
    CHECK_LOG("0 1 2 3 4");
}

static void *sleep_until_and_log(void *when)
{
    strand_sleep_until(*(strand_time *)when);
    test_log("up");
    return NULL;
}

TEST_INSIDE(strands_that_sleep_until_the_same_instant_all_wake_up)
{
    strand_time when = strand_in(STRAND_MS);
    STRAND_SCOPE(s);
    for (int i = 0; i < 5; i++)
        strand_spawn(s, sleep_until_and_log, &when);
    strand_scope_join(s);
    CHECK_LOG("up up up up up");
}

/* ---- interrupted ----------------------------------------------------------------------------- */

static void *sleep_for_ever(void *until)
{
    if (until != NULL)
        strand_sleep_until((strand_time){INT64_MAX});
    else
        strand_sleep(INT64_MAX);
    return NULL;
}

TEST_INSIDE(a_sleep_without_end_is_interrupted)
{
    STRAND_SCOPE(s);
    strand children[] = {strand_spawn(s, sleep_for_ever, NULL), strand_spawn(s, sleep_for_ever, TEST_PTR(1))};
    for (int i = 0; i < 5; i++)
        strand_yield();
    strand_scope_cancel(s, NULL);
    strand_wait(children[0]);
    strand_wait(children[1]);
}

static void *sleep_twice(void *unused)
{
    int64_t before = strand_now().ns;
    STRAND_TRY {
        strand_sleep(FOREVER);
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        test_log("interrupted");
    }
    STRAND_END
    STRAND_SHIELD;
    CHECK(strand_now().ns < before + FOREVER);
    before = strand_now().ns;
    strand_sleep(2 * STRAND_MS);
    CHECK(strand_now().ns >= before + 2 * STRAND_MS);
    return unused;
}

/* The timer of the first sleep, were it left behind, or taken for the second one's, would end that too early. */
/* contract 5.1, 5.4 */
TEST_INSIDE(an_interrupted_sleep_leaves_no_timer_behind)
{
    STRAND_SCOPE(s);
    strand child = strand_spawn(s, sleep_twice, TEST_PTR(1));
    for (int i = 0; i < 5; i++)
        strand_yield();
    strand_cancel(child, NULL);
    CHECK_PTR(strand_join(child), TEST_PTR(1));
    CHECK_LOG("interrupted");
}

static void *sleep_a_little(void *outcomes)
{
    STRAND_TRY {
        strand_sleep(20 * STRAND_US);
        atomic_fetch_add((_Atomic int *)outcomes, 1);
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        atomic_fetch_add((_Atomic int *)outcomes, 1);
    }
    STRAND_END
    return NULL;
}

/* contract 4.20, 5.1 */
TEST_RACE(waking_up_races_with_an_interruption)
{
    for (long i = 0; i < test_scale(500); i++) {
        _Atomic int outcomes = 0;
        STRAND_SCOPE(s);
        for (int n = 0; n < 8; n++)
            strand_spawn(s, sleep_a_little, &outcomes);
        strand_sleep((i % 8) * 5 * STRAND_US);
        strand_scope_cancel(s, NULL);
        strand_scope_join(s);
        CHECK_EQ(outcomes, 8);
    }
}

/* ---- many ------------------------------------------------------------------------------------ */

struct crowd {
    _Atomic long awake, early;
};

struct one_of_many {
    struct crowd *crowd;
    strand_time when;
};

static void *sleep_in_crowd(void *arg)
{
    struct one_of_many *one = arg;
    strand_sleep_until(one->when);
    if (strand_now().ns < one->when.ns)
        atomic_fetch_add(&one->crowd->early, 1);
    atomic_fetch_add(&one->crowd->awake, 1);
    return NULL;
}

/* Times in no order, over half a second. */
static void spawn_crowd(strand_scope scope, struct crowd *crowd, long n)
{
    uint64_t random = 1;
    for (long i = 0; i < n; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        struct one_of_many one = {crowd, strand_in((int64_t)(random >> 33) % (STRAND_S / 2))};
        strand_spawn_with(scope, NULL, sleep_in_crowd, &one, sizeof(one));
    }
}

TEST_RACE(a_great_many_strands_sleep_and_all_wake_up_not_too_early)
{
    long n = test_scale(100000);
    struct crowd crowd = {0};
    STRAND_SCOPE(s);
    spawn_crowd(s, &crowd, n);
    strand_scope_join(s);
    CHECK_EQ(crowd.awake, n);
    CHECK_EQ(crowd.early, 0);
}

TEST_RACE(a_great_many_sleeps_can_be_interrupted)
{
    long n = test_scale(50000);
    STRAND_SCOPE(s);
    for (long i = 0; i < n; i++)
        strand_spawn(s, sleep_for_ever, NULL);
    strand_sleep(STRAND_MS);
    strand_scope_cancel(s, NULL);
    strand_scope_join(s);
    CHECK_EQ(strand_scope_count(s), 0);
}
