/*
 * Children fail at the same time on real threads. Every failure is thrown, suppressed, fetched or logged: none is lost.
 */
#define SUITE stress_failures
#include "test.h"

static const strand_kind PLANTED = STRAND_KIND("planted", &STRAND_ERROR);

#define CHILDREN 16

static _Atomic long logged;

static void count_logged(const char *message, void *arg)
{
    (void)arg;
    if (strstr(message, "planted"))
        logged++;
}

static void run(strand_fn *fn)
{
    strand_options options = test_options();
    options.on_log = count_logged;
    strand_run(&options, fn, NULL);
}

static bool time_is_left(strand_time until)
{
    return strand_now().ns < until.ns;
}

static void *fail_after_yields(void *arg)
{
    for (intptr_t i = 0; i < (intptr_t)arg % 4; i++)
        strand_yield();
    strand_throw(&PLANTED, "planted failure");
}

/* Shielded until its throw, so that a cancel does not keep it from failing. */
static void *fail_in_any_case(void *arg)
{
    STRAND_SHIELD;
    return fail_after_yields(arg);
}

static void join_failing_children(unsigned flags)
{
    STRAND_SCOPE_WITH(scope, flags);
    for (intptr_t i = 0; i < CHILDREN; i++)
        strand_spawn(scope, fail_in_any_case, (void *)i);
    strand_scope_join(scope);
}

static long count_suppressed(const strand_exception *e)
{
    long count = 0;
    while (strand_exception_suppressed(e, (size_t)count))
        count++;
    return count;
}

static void *count_failures(unsigned flags)
{
    strand_time until = strand_in(test_scale(200) * STRAND_MS);
    while (time_is_left(until)) {
        logged = 0;
        STRAND_TRY {
            join_failing_children(flags);
            CHECK_FAIL("nobody failed");
        }
        STRAND_CATCH(&PLANTED, e) {
            CHECK_EQ(1 + count_suppressed(e) + logged, CHILDREN);
        }
        STRAND_END
    }
    return NULL;
}

static void *count_failures_of_plain_scopes(void *arg)
{
    count_failures(0);
    return arg;
}

/* V-36 */
TEST_REAL(failures_of_many_children_are_all_in_the_exception_of_the_scope)
{
    run(count_failures_of_plain_scopes);
}

static void *count_failures_of_those_who_stand_together(void *arg)
{
    count_failures(STRAND_TOGETHER);
    return arg;
}

TEST_REAL(failures_of_siblings_that_are_cancelled_for_the_first_one_are_not_lost)
{
    run(count_failures_of_those_who_stand_together);
}

static void *fetch_failures(void *arg)
{
    strand_time until = strand_in(test_scale(200) * STRAND_MS);
    while (time_is_left(until)) {
        int fetched = 0;
        STRAND_SCOPE_WITH(scope, STRAND_COLLECT);
        for (intptr_t i = 0; i < CHILDREN; i++)
            strand_spawn(scope, fail_after_yields, (void *)i);
        while (strand_id(strand_scope_wait_next(scope)) != 0) {
            strand_exception *e;
            while ((e = strand_scope_failure(scope, NULL)) != NULL) {
                CHECK_KIND(e, &PLANTED);
                strand_exception_release(e);
                fetched++;
            }
        }
        CHECK_EQ(fetched, CHILDREN);
        CHECK_EQ(strand_scope_count(scope), 0);
    }
    return arg;
}

/* contract 4.34 */
TEST_REAL(a_supervisor_fetches_each_failure_once)
{
    run(fetch_failures);
}

/* Nobody joins the failing grandchildren: their failures go up by themselves. */
static void *spawn_a_failure_and_sleep(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, fail_after_yields, arg);
    strand_sleep(FOREVER);
    return arg;
}

static void *wait_for_a_failure_from_below(void *arg)
{
    strand_time until = strand_in(test_scale(200) * STRAND_MS);
    for (volatile intptr_t round = 0; time_is_left(until); round++) {
        STRAND_TRY {
            STRAND_SCOPE(scope);
            strand_spawn(scope, spawn_a_failure_and_sleep, (void *)round);
            strand_sleep(FOREVER);
        }
        STRAND_CATCH(&PLANTED, e) {
            CHECK_STR(strand_exception_text(e), "planted failure");
        }
        STRAND_END
    }
    return arg;
}

TEST_REAL(a_failure_wakes_every_owner_above_it)
{
    run(wait_for_a_failure_from_below);
}
