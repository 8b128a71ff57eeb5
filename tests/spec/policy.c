/*
 * The policies of a scope: together (the first failure also cancels the siblings) and collect (failures wait to be
 * fetched). First wins is in first_wins.c.
 */
#define SUITE policy
#include "growth.h"
#include "test.h"

/* ---- together -------------------------------------------------------------------------------- */

/* contract 4.33 */
TEST_INSIDE(together_a_failure_cancels_the_siblings)
{
    struct test_child blocked[3] = {{0}};
    strand failed;
    STRAND_TRY {
        STRAND_SCOPE_WITH(s, STRAND_TOGETHER);
        for (int i = 0; i < 3; i++)
            test_spawn_started(s, test_child_blocks, &blocked[i]);
        test_spawn_failed(s, &failed, 1);
        STRAND_SHIELD;
        for (int i = 0; i < 3; i++)
            test_yield_until(&blocked[i].ended, 1);
        test_log("ended");
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        test_log("failed");
    }
    STRAND_END
    CHECK_LOG("ended failed");
}

/* contract 4.33 */
TEST_INSIDE(together_the_owner_is_interrupted_and_the_scope_throws_the_failure)
{
    struct test_child blocked = {0};
    STRAND_TRY {
        STRAND_SCOPE_WITH(s, STRAND_TOGETHER);
        test_spawn_started(s, test_child_blocks, &blocked);
        strand_spawn(s, test_throw, NULL);
        STRAND_TRY {
            strand_sleep(FOREVER);
        }
        STRAND_CATCH(&STRAND_INTERRUPTED, e) {
            test_log("interrupted");
            strand_rethrow(strand_exception_keep(e));
        }
        STRAND_END
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        CHECK_EQ(blocked.ended, 1);
        test_log("failed");
    }
    STRAND_END
    CHECK_LOG("interrupted failed");
}

/* contract 4.33 */
TEST_INSIDE(together_a_value_cancels_nobody)
{
    struct test_child waiting = {0};
    STRAND_SCOPE_WITH(s, STRAND_TOGETHER);
    strand child = test_spawn_started(s, test_child_waits, &waiting);
    CHECK_PTR(strand_join(strand_spawn(s, test_return, TEST_PTR(1))), TEST_PTR(1));
    for (int i = 0; i < 20; i++)
        strand_yield();
    CHECK_EQ(waiting.ended, 0);
    waiting.release = 1;
    CHECK_PTR(strand_join(child), &waiting);
}

/* contract 4.33 */
TEST_INSIDE(together_a_cancelled_child_is_no_failure)
{
    struct test_child waiting = {0}, blocked = {0};
    STRAND_SCOPE_WITH(s, STRAND_TOGETHER);
    strand child = test_spawn_started(s, test_child_waits, &waiting);
    strand_cancel(test_spawn_started(s, test_child_blocks, &blocked), NULL);
    test_yield_until(&blocked.ended, 1);
    for (int i = 0; i < 20; i++)
        strand_yield();
    CHECK_EQ(waiting.ended, 0);
    waiting.release = 1;
    CHECK_PTR(strand_join(child), &waiting);
}

TEST_INSIDE(together_joining_the_scope_throws_the_failure_and_expects_the_siblings_to_end_interrupted)
{
    struct test_child blocked[3] = {{0}};
    STRAND_SCOPE_WITH(s, STRAND_TOGETHER);
    for (int i = 0; i < 3; i++)
        test_spawn_started(s, test_child_blocks, &blocked[i]);
    strand_spawn(s, test_throw, NULL);
    strand_exception *e = strand_try(test_join_scope, &s, NULL);
    CHECK_KIND(e, &TEST_ERROR);
    CHECK_PTR(strand_exception_suppressed(e, 0), NULL);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(blocked[i].ended, 1);
    CHECK_EQ(strand_scope_count(s), 0);
    strand_exception_release(e);
}

TEST_INSIDE(together_joining_a_cancelled_sibling_throws_child_cancelled)
{
    struct test_child blocked = {0};
    strand failed;
    STRAND_SCOPE_WITH(s, STRAND_TOGETHER);
    strand sibling = test_spawn_started(s, test_child_blocks, &blocked);
    test_spawn_failed(s, &failed, 1);
    CHECK_THROWS(test_join, &failed, &TEST_ERROR);
    CHECK_THROWS(test_join, &sibling, &STRAND_CHILD_CANCELLED);
}

TEST_INSIDE(together_what_a_cancelled_sibling_throws_is_suppressed_in_the_failure)
{
    struct test_child sibling = {0};
    STRAND_TRY {
        STRAND_SCOPE_WITH(s, STRAND_TOGETHER);
        test_spawn_started(s, test_child_throws, &sibling);
        strand_spawn(s, test_throw, NULL);
        strand_sleep(FOREVER);
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        CHECK_EQ(test_count_kind(e, &TEST_ERROR2), 1);
        test_log("caught");
    }
    STRAND_END
    CHECK_LOG("caught");
}

static void *throw_when_scheduled(void *times)
{
    for (intptr_t i = 0; i < (intptr_t)times; i++)
        strand_yield();
    strand_throw(&TEST_ERROR, "%d", (int)(intptr_t)times);
}

static void *race_together(void *i)
{
    STRAND_SCOPE_WITH(s, STRAND_TOGETHER);
    for (int n = 0; n < 5; n++)
        strand_spawn(s, throw_when_scheduled, TEST_PTR(((intptr_t)i + n) % 4));
    strand_scope_join(s);
    return NULL;
}

/* Each cancels the others, and at least one is not cancelled before it fails. */
TEST_RACE(together_failures_race_with_the_cancels_by_each_other)
{
    for (long i = 0; i < test_scale(1000); i++) {
        strand_exception *e = strand_try(race_together, TEST_PTR(i), NULL);
        CHECK_KIND(e, &TEST_ERROR);
        CHECK_EQ(test_count_kind(e, &STRAND_INTERRUPTED) + test_count_kind(e, &STRAND_CHILD_CANCELLED), 0);
        strand_exception_release(e);
    }
}

/* ---- collect --------------------------------------------------------------------------------- */

/* contract 4.34 */
TEST_INSIDE(collect_failures_interrupt_nobody)
{
    struct test_child waiting = {0};
    strand failed;
    STRAND_SCOPE_WITH(s, STRAND_COLLECT);
    strand child = test_spawn_started(s, test_child_waits, &waiting);
    test_spawn_failed(s, &failed, 1);
    strand_checkpoint();
    for (int i = 0; i < 20; i++)
        strand_yield();
    CHECK_EQ(waiting.ended, 0);
    waiting.release = 1;
    CHECK_PTR(strand_join(child), &waiting);
    strand_exception_release(strand_scope_failure(s, NULL));
}

/* contract 4.34 */
TEST_INSIDE(collect_failures_are_fetched_in_the_order_of_their_ends_with_their_children)
{
    static const char *const texts[] = {"0", "1", "2"};
    strand children[3];
    STRAND_SCOPE_WITH(s, STRAND_COLLECT);
    test_spawn_failed(s, children, 3);
    for (int i = 0; i < 3; i++) {
        strand which;
        strand_exception *e = strand_scope_failure(s, &which);
        CHECK_KIND(e, &TEST_ERROR);
        CHECK_STR(strand_exception_text(e), texts[i]);
        CHECK_EQ(strand_id(which), strand_id(children[i]));
        strand_exception_release(e);
    }
    CHECK_PTR(strand_scope_failure(s, NULL), NULL);
}

TEST_INSIDE(collect_fetching_a_failure_consumes_the_child)
{
    strand children[2];
    STRAND_SCOPE_WITH(s, STRAND_COLLECT);
    test_spawn_failed(s, children, 2);
    CHECK_EQ(strand_scope_count(s), 2);
    strand_exception_release(strand_scope_failure(s, NULL));
    CHECK_EQ(strand_scope_count(s), 1);
    strand_exception_release(strand_scope_failure(s, NULL));
    CHECK_EQ(strand_scope_count(s), 0);
}

TEST_INSIDE(collect_there_is_no_failure_while_children_run_or_when_they_return)
{
    struct test_child waiting = {0};
    STRAND_SCOPE_WITH(s, STRAND_COLLECT);
    CHECK_PTR(strand_scope_failure(s, NULL), NULL);
    strand child = test_spawn_started(s, test_child_waits, &waiting);
    CHECK_PTR(strand_scope_failure(s, NULL), NULL);
    waiting.release = 1;
    strand_wait(child);
    CHECK_PTR(strand_scope_failure(s, NULL), NULL);
    CHECK_PTR(strand_join(child), &waiting);
}

TEST_INSIDE(collect_a_child_that_was_cancelled_and_interrupted_is_no_failure)
{
    struct test_child blocked = {0};
    STRAND_SCOPE_WITH(s, STRAND_COLLECT);
    strand child = test_spawn_started(s, test_child_blocks, &blocked);
    strand_cancel(child, NULL);
    strand_wait(child);
    CHECK_PTR(strand_scope_failure(s, NULL), NULL);
    CHECK_EQ(strand_scope_count(s), 1);
}

/* contract 4.34 */
TEST_INSIDE(collect_a_failure_that_was_not_fetched_is_thrown_when_the_scope_is_left)
{
    strand children[2];
    STRAND_TRY {
        STRAND_SCOPE_WITH(s, STRAND_COLLECT);
        test_spawn_failed(s, children, 2);
        strand_checkpoint();
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        CHECK_STR(strand_exception_text(e), "0");
        CHECK_EQ(test_count_kind(e, &TEST_ERROR), 2);
        test_log("caught");
    }
    STRAND_END
    CHECK_LOG("caught");
}

TEST_INSIDE(collect_a_failed_child_can_be_joined_instead)
{
    strand failed;
    STRAND_SCOPE_WITH(s, STRAND_COLLECT);
    test_spawn_failed(s, &failed, 1);
    strand_exception *e = strand_try(test_join, &failed, NULL);
    CHECK_KIND(e, &TEST_ERROR);
    CHECK_PTR(strand_scope_failure(s, NULL), NULL);
    strand_exception_release(e);
}

static void *fetch_while_cancelled(void *unused)
{
    strand failed;
    STRAND_SCOPE_WITH(s, STRAND_COLLECT);
    test_spawn_failed(s, &failed, 1);
    strand_cancel(strand_self(), NULL);
    strand_exception *e = strand_scope_failure(s, NULL);
    CHECK_KIND(e, &TEST_ERROR);
    strand_exception_release(e);
    return unused;
}

/* contract 4.21 */
TEST_INSIDE(collect_fetching_is_not_interruptible)
{
    STRAND_SCOPE(s);
    CHECK_PTR(strand_join(strand_spawn(s, fetch_while_cancelled, TEST_PTR(1))), TEST_PTR(1));
}

/* ---- strand_scope_wait_next ----------------------------------------------------------------------- */

TEST_INSIDE(next_gives_the_children_in_the_order_of_their_ends)
{
    struct test_child children[3] = {{0}};
    strand handles[3];
    STRAND_SCOPE_WITH(s, STRAND_COLLECT);
    for (int i = 0; i < 3; i++)
        handles[i] = test_spawn_started(s, test_child_waits, &children[i]);
    for (int i = 2; i >= 0; i--) {
        children[i].release = 1;
        strand next = strand_scope_wait_next(s);
        CHECK_EQ(strand_id(next), strand_id(handles[i]));
        CHECK(strand_ended(next));
        CHECK_PTR(strand_join(next), &children[i]);
    }
    CHECK_EQ(strand_id(strand_scope_wait_next(s)), 0);
}

TEST_INSIDE(next_gives_none_when_no_child_is_anchored)
{
    STRAND_SCOPE_WITH(s, STRAND_COLLECT);
    CHECK_EQ(strand_id(strand_scope_wait_next(s)), 0);
    strand_join(strand_spawn(s, test_return, NULL));
    CHECK_EQ(strand_id(strand_scope_wait_next(s)), 0);
}

TEST_INSIDE(next_consumes_nothing)
{
    STRAND_SCOPE_WITH(s, STRAND_COLLECT);
    strand child = strand_spawn(s, test_return, TEST_PTR(7));
    CHECK_EQ(strand_id(strand_scope_wait_next(s)), strand_id(child));
    CHECK_EQ(strand_scope_count(s), 1);
    CHECK_PTR(strand_join(child), TEST_PTR(7));
}

TEST_INSIDE(next_gives_failed_and_cancelled_children_too)
{
    struct test_child blocked = {0};
    strand failed;
    STRAND_SCOPE_WITH(s, STRAND_COLLECT);
    test_spawn_failed(s, &failed, 1);
    CHECK_EQ(strand_id(strand_scope_wait_next(s)), strand_id(failed));
    strand_exception_release(strand_scope_failure(s, NULL));
    strand cancelled = test_spawn_started(s, test_child_blocks, &blocked);
    strand_cancel(cancelled, NULL);
    CHECK_EQ(strand_id(strand_scope_wait_next(s)), strand_id(cancelled));
}

static void *next_until_interrupted(void *arg)
{
    struct test_child *child = arg;
    STRAND_SCOPE_WITH(s, STRAND_COLLECT);
    strand handle = strand_spawn(s, test_child_waits, child);
    STRAND_TRY {
        strand_scope_wait_next(s);
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        test_log("interrupted");
    }
    STRAND_END
    STRAND_SHIELD;
    child->release = 1;
    CHECK_EQ(strand_id(strand_scope_wait_next(s)), strand_id(handle));
    return strand_join(handle);
}

/* contract 5.2 */
TEST_INSIDE(next_is_interruptible_and_loses_nobody)
{
    struct test_child child = {0};
    STRAND_SCOPE(s);
    strand owner = strand_spawn(s, next_until_interrupted, &child);
    test_yield_until(&child.started, 1);
    strand_yield();
    strand_cancel(owner, NULL);
    CHECK_PTR(strand_join(owner), &child);
    CHECK_LOG("interrupted");
}

static void *fail_twice(void *runs)
{
    if (atomic_fetch_add((_Atomic int *)runs, 1) < 2)
        test_throw("not yet");
    return TEST_PTR(3);
}

/* What a supervisor is made of. */
/* contract 4.34 */
TEST_INSIDE(a_supervisor_restarts_its_child_until_it_returns)
{
    _Atomic int runs = 0;
    STRAND_SCOPE_WITH(s, STRAND_COLLECT);
    for (;;) {
        strand child = strand_spawn(s, fail_twice, &runs);
        CHECK_EQ(strand_id(strand_scope_wait_next(s)), strand_id(child));
        strand_exception *e = strand_scope_failure(s, NULL);
        if (e == NULL) {
            CHECK_PTR(strand_join(child), TEST_PTR(3));
            break;
        }
        CHECK_STR(strand_exception_text(e), "not yet");
        strand_exception_release(e);
    }
    CHECK_EQ(runs, 3);
}

static void *throw_if_odd(void *arg)
{
    intptr_t n = (intptr_t)arg;
    for (intptr_t i = 0; i < n % 5; i++)
        strand_yield();
    if (n % 2 != 0)
        strand_throw(&TEST_ERROR, "%d", (int)n);
    return arg;
}

/* While children end on other threads, each is given once, with what it has left. */
TEST_RACE(next_gives_each_of_many_children_once)
{
    for (long round = 0; round < test_scale(50); round++) {
        intptr_t values = 0, failures = 0;
        STRAND_SCOPE_WITH(s, STRAND_COLLECT);
        for (intptr_t n = 1; n <= 100; n++)
            strand_spawn(s, throw_if_odd, TEST_PTR(n));
        for (strand next; strand_id(next = strand_scope_wait_next(s)) != 0;) {
            void *value = NULL;
            strand_exception *e = strand_try(test_join, &next, &value);
            values += (intptr_t)value;
            failures += e != NULL ? atoi(strand_exception_text(e)) : 0;
            strand_exception_release(e);
        }
        CHECK_EQ(values, 2550);
        CHECK_EQ(failures, 2500);
    }
}

/* ---- many ------------------------------------------------------------------------------------ */

/* What it takes to fetch so many failures, which ended after as many values. */
static int64_t time_to_fetch(const void *what, int count)
{
    (void)what;
    STRAND_SCOPE_WITH(s, STRAND_COLLECT);
    for (int i = 0; i < 2 * count; i++)
        strand_wait(strand_spawn(s, i < count ? test_return : test_throw, NULL));
    int64_t before = growth_ns();
    int fetched = 0;
    for (strand_exception *e; (e = strand_scope_failure(s, NULL)); fetched++)
        strand_exception_release(e);
    int64_t ns = growth_ns() - before;
    CHECK_EQ(fetched, count);
    strand_scope_cancel(s, NULL);
    return ns;
}

TEST_REAL_INSIDE(many_failures_are_fetched_in_proportion_to_their_number)
{
    growth_compare(time_to_fetch, NULL, growth_count(100000));
}
