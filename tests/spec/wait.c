/*
 * Waiting for the end of a strand: anybody may, any number of times, and it takes nothing.
 */
#define SUITE wait
#include "test.h"

/* contract 4.10 */
TEST_INSIDE(waiting_for_a_child_does_not_consume_it)
{
    STRAND_SCOPE(s);
    strand child = strand_spawn(s, test_return, TEST_PTR(2));
    strand_wait(child);
    strand_wait(child);
    CHECK(strand_ended(child));
    CHECK_PTR(strand_join(child), TEST_PTR(2));
}

static void *wait_and_log(void *other)
{
    strand_wait(*(strand *)other);
    test_log("seen");
    return NULL;
}

/* contract 4.10 */
TEST_INSIDE(anybody_may_wait_for_the_end_of_a_strand)
{
    struct test_child child = {0};
    STRAND_SCOPE(s);
    strand other = test_spawn_started(s, test_child_waits, &child);
    strand waiters[3];
    for (int i = 0; i < 3; i++)
        waiters[i] = strand_spawn(s, wait_and_log, &other);
    for (int i = 0; i < 10; i++)
        strand_yield();
    CHECK_LOG("");
    child.release = 1;
    for (int i = 0; i < 3; i++)
        strand_join(waiters[i]);
    CHECK_LOG("seen seen seen");
    CHECK_PTR(strand_join(other), &child);
}

static void *wait_in_grandchild(void *other)
{
    STRAND_SCOPE(s);
    strand_join(strand_spawn(s, wait_and_log, other));
    return NULL;
}

TEST_INSIDE(a_strand_may_wait_for_a_sibling_of_its_parent)
{
    struct test_child child = {0};
    STRAND_SCOPE(s);
    strand other = test_spawn_started(s, test_child_waits, &child);
    strand waiter = strand_spawn(s, wait_in_grandchild, &other);
    strand_yield();
    child.release = 1;
    strand_join(waiter);
    strand_join(other);
    CHECK_LOG("seen");
}

TEST_INSIDE(waiting_for_a_strand_that_ends_by_an_exception_throws_nothing)
{
    STRAND_SCOPE_WITH(s, STRAND_COLLECT);
    strand child = strand_spawn(s, test_throw, NULL);
    strand_wait(child);
    strand_exception *e = strand_scope_failure(s, NULL);
    CHECK_KIND(e, &TEST_ERROR);
    strand_exception_release(e);
}

/* contract 4.10 */
TEST_INSIDE(waiting_for_a_strand_that_is_gone_returns_at_once)
{
    STRAND_SCOPE(s);
    strand child = strand_spawn(s, test_return, NULL);
    strand_join(child);
    strand_wait(child);
    for (int i = 0; i < 10; i++)
        strand_join(strand_spawn(s, test_return, NULL));
    strand_wait(child);
}

/* contract 5.4 */
TEST_INSIDE(waiting_is_interruptible_and_leaves_the_other_alone)
{
    struct test_child child = {0};
    STRAND_SCOPE(s);
    strand other = test_spawn_started(s, test_child_waits, &child);
    strand waiter = strand_spawn(s, wait_and_log, &other);
    for (int i = 0; i < 5; i++)
        strand_yield();
    strand_cancel(waiter, NULL);
    strand_wait(waiter);
    CHECK(!strand_ended(other));
    child.release = 1;
    CHECK_PTR(strand_join(other), &child);
    CHECK_LOG("");
}

static struct two {
    strand first, second;
} two;
static _Atomic int moved;

/* For the first; interrupted there, for the second. */
static void *wait_for_one_of_two(void *number)
{
    strand_exception *e = strand_try(test_wait, &two.first, NULL);
    if (e) {
        strand_exception_release(e);
        STRAND_SHIELD;
        moved++;
        strand_wait(two.second);
    }
    return number;
}

/* Wherever a waiter stands, and in whatever order others leave beside it. */
TEST_INSIDE(some_of_many_waiters_for_an_end_leave_and_wait_for_another)
{
    enum { MANY = 5 };
    static const int leaving[] = {2, 1, 3};
    struct test_child first = {0}, second = {0};
    moved = 0;
    STRAND_SCOPE(s);
    two.first = test_spawn_started(s, test_child_waits, &first);
    two.second = test_spawn_started(s, test_child_waits, &second);
    strand waiters[MANY];
    for (int i = 0; i < MANY; i++) {
        waiters[i] = strand_spawn(s, wait_for_one_of_two, TEST_PTR(i));
        test_await_blocked("waits for the end of strand", i + 1);
    }
    for (int i = 0; i < 3; i++) {
        strand_cancel(waiters[leaving[i]], NULL);
        test_yield_until(&moved, i + 1);
        test_await_blocked("waits for the end of strand", MANY);
    }
    first.release = 1;
    strand_join(two.first);
    CHECK_PTR(strand_join(waiters[0]), TEST_PTR(0));
    CHECK_PTR(strand_join(waiters[4]), TEST_PTR(4));
    for (int i = 0; i < 3; i++)
        CHECK(!strand_ended(waiters[leaving[i]]));
    second.release = 1;
    strand_join(two.second);
    for (int i = 0; i < 3; i++)
        CHECK_PTR(strand_join(waiters[leaving[i]]), TEST_PTR(leaving[i]));
}

/* Some waiters come before the end, some after it, and some are cancelled meanwhile: all of them end. */
/* contract 5.1 */
TEST_RACE(waiting_races_with_the_end_and_with_cancels)
{
    for (long i = 0; i < test_scale(1000); i++) {
        STRAND_SCOPE(s);
        strand other = strand_spawn(s, test_yield_times, TEST_PTR(i % 4));
        strand waiters[6];
        for (int n = 0; n < 6; n++)
            waiters[n] = strand_spawn(s, test_wait, &other);
        strand_cancel(waiters[1], NULL);
        strand_yield();
        strand_cancel(waiters[4], NULL);
        CHECK_PTR(strand_join(other), TEST_PTR(i % 4));
        strand_scope_join(s);
    }
}

/* ---- strand_ended ---------------------------------------------------------------------------- */

TEST_INSIDE(a_strand_has_ended_when_its_frames_are_left)
{
    struct test_child child = {0};
    STRAND_SCOPE(s);
    strand handle = test_spawn_started(s, test_child_waits, &child);
    CHECK(!strand_ended(handle));
    child.release = 1;
    while (!strand_ended(handle))
        strand_yield();
    CHECK_EQ(child.ended, 1);
    strand_join(handle);
}

TEST_INSIDE(a_strand_that_has_not_started_has_not_ended)
{
    struct test_child child = {0};
    STRAND_SCOPE(s);
    CHECK(!strand_ended(strand_self()));
    strand handle = strand_spawn(s, test_child_waits, &child);
    CHECK(!strand_ended(handle));
    child.release = 1;
    strand_join(handle);
}

/* Its control block serves another strand by then. */
TEST_INSIDE(a_handle_of_a_joined_strand_stays_ended)
{
    struct test_child child = {0};
    STRAND_SCOPE(s);
    strand old = strand_spawn(s, test_return, NULL);
    strand_join(old);
    CHECK(strand_ended(old));
    strand other = test_spawn_started(s, test_child_waits, &child);
    CHECK(strand_ended(old));
    child.release = 1;
    strand_join(other);
    CHECK(strand_ended(old));
}
