/*
 * Once: one run that returns, and everybody has its value.
 */
#define SUITE once
#include "test.h"

#include "strand/sync.h"

static strand_once once;
static _Atomic int runs, go_on;

static void start(void)
{
    once = (strand_once){{0}};
    runs = go_on = 0;
}

static void *run_slowly(void *arg)
{
    runs++;
    strand_yield();
    return arg;
}

static void *call(void *arg)
{
    return strand_once_run(&once, run_slowly, arg);
}

/* contract 5.6 */
TEST_INSIDE(the_first_caller_runs_it_and_all_get_its_value)
{
    start();
    CHECK(!strand_once_done(&once));
    CHECK_PTR(strand_once_run(&once, test_return, TEST_PTR(1)), TEST_PTR(1));
    CHECK(strand_once_done(&once));
    CHECK_PTR(strand_once_run(&once, test_throw, TEST_PTR(2)), TEST_PTR(1));
}

TEST_RACE(one_of_many_simultaneous_callers_runs_it)
{
    for (long i = 0; i < test_scale(1000); i++) {
        STRAND_SCOPE(s);
        strand children[6];
        start();
        for (int n = 0; n < 6; n++)
            children[n] = strand_spawn(s, call, TEST_PTR(n + 1));
        void *value = strand_join(children[0]);
        CHECK(value != NULL);
        for (int n = 1; n < 6; n++)
            CHECK_PTR(strand_join(children[n]), value);
        CHECK_EQ(runs, 1);
    }
}

static void *run_until_released(void *arg)
{
    runs++;
    test_yield_until(&go_on, 1);
    return arg;
}

static void *run_and_fail(void *arg)
{
    run_until_released(arg);
    strand_throw(&TEST_ERROR, "failed");
}

static void *call_and_fail(void *arg)
{
    return strand_once_run(&once, run_and_fail, arg);
}

static void *call_until_released(void *arg)
{
    return strand_once_run(&once, run_until_released, arg);
}

/* contract 5.6 */
TEST_INSIDE(a_run_that_fails_does_not_count_and_the_next_in_the_queue_runs_its_own)
{
    STRAND_SCOPE_WITH(s, STRAND_COLLECT);
    start();
    strand first = strand_spawn(s, call_and_fail, NULL);
    test_yield_until(&runs, 1);
    strand second = strand_spawn(s, call, TEST_PTR(2));
    test_await_blocked("waits for once", 1);
    strand third = strand_spawn(s, call, TEST_PTR(3));
    test_await_blocked("waits for once", 2);
    go_on = 1;
    CHECK_PTR(strand_join(second), TEST_PTR(2));
    CHECK_PTR(strand_join(third), TEST_PTR(2));
    CHECK_EQ(runs, 2);
    strand_wait(first);
    strand_exception *e = strand_scope_failure(s, NULL);
    CHECK_KIND(e, &TEST_ERROR);
    strand_exception_release(e);
}

TEST_INSIDE(a_run_that_fails_alone_leaves_it_to_the_next_caller)
{
    start();
    go_on = 1;
    CHECK_THROWS(call_and_fail, NULL, &TEST_ERROR);
    CHECK(!strand_once_done(&once));
    CHECK_PTR(call(TEST_PTR(4)), TEST_PTR(4));
}

TEST_INSIDE(a_run_that_is_cancelled_does_not_count)
{
    STRAND_SCOPE(s);
    start();
    strand first = strand_spawn(s, call_until_released, TEST_PTR(1));
    test_yield_until(&runs, 1);
    strand second = strand_spawn(s, call, TEST_PTR(2));
    test_await_blocked("waits for once", 1);
    strand_cancel(first, "not needed");
    CHECK(test_join_interrupted(first));
    CHECK_PTR(strand_join(second), TEST_PTR(2));
    CHECK_EQ(runs, 2);
}

TEST_INSIDE(a_cancelled_waiter_leaves_no_trace)
{
    STRAND_SCOPE(s);
    start();
    strand first = strand_spawn(s, call_until_released, TEST_PTR(1));
    test_yield_until(&runs, 1);
    strand second = strand_spawn(s, call, TEST_PTR(2));
    test_await_blocked("waits for once", 1);
    strand_cancel(second, "not needed");
    CHECK(test_join_interrupted(second));
    go_on = 1;
    CHECK_PTR(strand_join(first), TEST_PTR(1));
    CHECK_EQ(runs, 1);
}

TEST_INSIDE(an_interrupted_strand_does_not_begin_it)
{
    start();
    test_run_cancelled(call, NULL);
    CHECK_EQ(runs, 0);
}

/* Whichever strand is cancelled, and when: one run counts, and no strand waits for ever. */
/* contract 5.1 */
TEST_RACE(cancels_race_with_the_run)
{
    for (long i = 0; i < test_scale(1500); i++) {
        STRAND_SCOPE(s);
        strand children[4];
        start();
        for (int n = 0; n < 4; n++)
            children[n] = strand_spawn(s, call, TEST_PTR(n + 1));
        for (int n = 0; n < i % 5; n++)
            strand_yield();
        for (int n = 0; n < 3; n++)
            strand_cancel(children[(n + i) % 4], "race");
        CHECK(strand_join(children[(3 + i) % 4]) != NULL);
        CHECK(strand_once_done(&once));
        for (int n = 0; n < 3; n++)
            (void)test_join_interrupted(children[(n + i) % 4]);
    }
}
