/*
 * Joining: it is the owner's, happens once, and takes what the child leaves, its value or its exception. Waiting, which
 * takes nothing, is in wait.c.
 */
#define SUITE join
#include "test.h"

/* ---- values ---------------------------------------------------------------------------------- */

/* V-25, contract 4.6 */
TEST_INSIDE(joining_waits_for_the_end_of_the_child)
{
    struct test_child child = {.release = 1};
    STRAND_SCOPE(s);
    CHECK_PTR(strand_join(strand_spawn(s, test_child_waits, &child)), &child);
    CHECK_EQ(child.ended, 1);
}

/* contract 4.6 */
TEST_INSIDE(a_child_that_has_ended_can_still_be_joined)
{
    STRAND_SCOPE(s);
    strand child = strand_spawn(s, test_return, TEST_PTR(4));
    while (!strand_ended(child))
        strand_yield();
    CHECK_PTR(strand_join(child), TEST_PTR(4));
}

TEST_INSIDE(children_can_be_joined_in_any_order)
{
    strand children[100];
    STRAND_SCOPE(s);
    for (int i = 0; i < 100; i++)
        children[i] = strand_spawn(s, test_return, TEST_PTR(i));
    for (int i = 0; i < 100; i++) {
        int k = i * 37 % 100;
        CHECK_PTR(strand_join(children[k]), TEST_PTR(k));
    }
}

static void *count_calls(void *counter)
{
    atomic_fetch_add((_Atomic int *)counter, 1);
    return NULL;
}

/* The joiner may run the child itself: then no other thread may run it too. */
TEST_RACE(a_child_runs_once_although_its_joiner_may_run_it)
{
    _Atomic int calls = 0;
    STRAND_SCOPE(s);
    for (long i = 0; i < test_scale(20000); i++) {
        strand_join(strand_spawn(s, count_calls, &calls));
        CHECK_EQ(calls, i + 1);
    }
}

TEST_RACE(joining_races_with_the_end_of_the_child)
{
    STRAND_SCOPE(s);
    for (long i = 0; i < test_scale(5000); i++) {
        strand children[4];
        for (int n = 0; n < 4; n++)
            children[n] = strand_spawn(s, test_yield_times, TEST_PTR(n));
        for (int n = 3; n >= 0; n--)
            CHECK_PTR(strand_join(children[n]), TEST_PTR(n));
    }
}

static void *write_plainly(void *number)
{
    strand_yield();
    *(long *)number = 7;
    return NULL;
}

/* For the thread sanitizer: the memory is not atomic. */
/* contract 8.1 */
TEST_RACE(the_join_of_a_scope_sees_what_its_children_did)
{
    for (long i = 0; i < test_scale(1000); i++) {
        long numbers[8] = {0};
        STRAND_SCOPE(s);
        for (int n = 0; n < 8; n++)
            strand_spawn(s, write_plainly, &numbers[n]);
        strand_scope_join(s);
        for (int n = 0; n < 8; n++)
            CHECK_EQ(numbers[n], 7);
    }
}

/* ---- exceptions ------------------------------------------------------------------------------ */

static void *keep_and_throw(void *kept)
{
    STRAND_TRY {
        test_throw("apples");
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        *(strand_exception **)kept = strand_exception_keep(e);
        strand_rethrow(strand_exception_keep(e));
    }
    STRAND_END
    return NULL;
}

/* V-27, contract 4.6 */
TEST_INSIDE(joining_a_child_that_ended_by_an_exception_throws_that_very_exception)
{
    strand_exception *kept = NULL;
    STRAND_SCOPE(s);
    strand child = strand_spawn(s, keep_and_throw, &kept);
    strand_exception *e = strand_try(test_join, &child, NULL);
    CHECK_KIND(e, &TEST_ERROR);
    CHECK_STR(strand_exception_text(e), "apples");
    CHECK_PTR(e, kept);
    strand_exception_release(e);
    strand_exception_release(kept);
}

static void *throw_payload(void *payload)
{
    strand_throw_info info = {.size = sizeof info, .code = -71, .payload = payload};
    strand_throw_with(&TEST_ERROR, &info, "loaded");
}

/* V-27 */
TEST_INSIDE(code_and_payload_of_an_exception_cross_the_join)
{
    int payload = 0;
    STRAND_SCOPE(s);
    strand child = strand_spawn(s, throw_payload, &payload);
    strand_exception *e = strand_try(test_join, &child, NULL);
    CHECK_KIND(e, &TEST_ERROR);
    CHECK_EQ(strand_exception_code(e), -71);
    CHECK_PTR(strand_exception_payload(e), &payload);
    strand_exception_release(e);
}

static void *spawn_and_join_below(void *depth)
{
    STRAND_SCOPE(s);
    if (depth == NULL)
        test_throw("from below");
    return strand_join(strand_spawn(s, spawn_and_join_below, TEST_PTR((intptr_t)depth - 1)));
}

/* V-27 */
TEST_INSIDE(an_exception_crosses_ten_joins)
{
    strand_exception *e = strand_try(spawn_and_join_below, TEST_PTR(10), NULL);
    CHECK_KIND(e, &TEST_ERROR);
    CHECK_STR(strand_exception_text(e), "from below");
    strand_exception_release(e);
}

TEST_INSIDE(an_exception_that_was_joined_is_dealt_with)
{
    {
        STRAND_SCOPE(s);
        strand child = strand_spawn(s, test_throw, NULL);
        strand_exception_release(strand_try(test_join, &child, NULL));
        CHECK_EQ(strand_scope_count(s), 0);
        strand_checkpoint();
        strand_yield();
        strand_sleep(1);
    }
    strand_checkpoint();
}

/* ---- cancelled children ---------------------------------------------------------------------- */

/* contract 4.8 */
TEST_INSIDE(joining_a_child_that_was_cancelled_and_interrupted_throws_child_cancelled)
{
    struct test_child blocked = {0};
    STRAND_SCOPE(s);
    strand child = test_spawn_started(s, test_child_blocks, &blocked);
    strand_cancel(child, "no more");
    strand_exception *e = strand_try(test_join, &child, NULL);
    CHECK_KIND(e, &STRAND_CHILD_CANCELLED);
    CHECK_STR(strand_exception_who(e), "root");
    CHECK_STR(strand_exception_why(e), "no more");
    CHECK_EQ(strand_scope_count(s), 0);
    strand_exception_release(e);
}

/* A handler for all errors catches it; a handler for the strand's own interruption does not. */
/* contract 4.8 */
TEST_INSIDE(child_cancelled_is_an_error_and_no_interruption)
{
    struct test_child blocked = {0};
    STRAND_SCOPE(s);
    STRAND_TRY {
        strand child = test_spawn_started(s, test_child_blocks, &blocked);
        strand_cancel(child, NULL);
        strand_join(child);
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        test_log("interrupted");
    }
    STRAND_CATCH(&STRAND_ERROR, e) {
        test_log("error");
    }
    STRAND_END
    strand_checkpoint();
    CHECK_LOG("error");
}

static void *join_cancelled_grandchild(void *blocked)
{
    STRAND_SCOPE(s);
    strand child = test_spawn_started(s, test_child_blocks, blocked);
    strand_cancel(child, "below");
    return strand_join(child);
}

/* The middle one was not cancelled: it has ended by an error, and that is what its joiner gets. */
/* contract 4.8 */
TEST_INSIDE(an_interruption_never_crosses_strands)
{
    struct test_child blocked = {0};
    STRAND_SCOPE(s);
    strand child = strand_spawn(s, join_cancelled_grandchild, &blocked);
    strand_exception *e = strand_try(test_join, &child, NULL);
    CHECK_KIND(e, &STRAND_CHILD_CANCELLED);
    CHECK_STR(strand_exception_who(e), "strand");
    CHECK_STR(strand_exception_why(e), "below");
    strand_exception_release(e);
}

static void *return_from_interruption(void *child)
{
    STRAND_TRY {
        test_child_blocks(child);
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
    }
    STRAND_END
    return TEST_PTR(8);
}

/* contract 4.9 */
TEST_INSIDE(joining_a_child_that_was_cancelled_and_still_returned_a_value_returns_it)
{
    struct test_child blocked = {0};
    STRAND_SCOPE(s);
    strand child = test_spawn_started(s, return_from_interruption, &blocked);
    strand_cancel(child, NULL);
    CHECK_PTR(strand_join(child), TEST_PTR(8));
}

/* contract 4.9 */
TEST_INSIDE(joining_a_child_that_was_cancelled_and_ended_by_an_error_throws_the_error)
{
    struct test_child blocked = {0};
    STRAND_SCOPE(s);
    strand child = test_spawn_started(s, test_child_throws, &blocked);
    strand_cancel(child, NULL);
    strand_exception *e = strand_try(test_join, &child, NULL);
    CHECK_KIND(e, &TEST_ERROR2);
    CHECK_STR(strand_exception_text(e), "of a cancelled child");
    strand_exception_release(e);
}

/* ---- an interrupted joiner ------------------------------------------------------------------- */

static void *join_until_interrupted(void *children)
{
    struct test_child *own = children, *childs = own + 1;
    STRAND_SCOPE(s);
    strand child = test_spawn_started(s, test_child_waits, childs);
    STRAND_TRY {
        atomic_store(&own->started, 1);
        strand_join(child);
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        test_log("interrupted");
    }
    STRAND_END
    STRAND_SHIELD;
    childs->release = 1;
    CHECK_EQ(strand_scope_count(s), 1);
    return strand_join(child);
}

/* contract 4.20, 5.4 */
TEST_INSIDE(an_interrupted_join_takes_nothing)
{
    struct test_child children[2] = {{0}};
    STRAND_SCOPE(s);
    strand joiner = test_spawn_started(s, join_until_interrupted, children);
    strand_cancel(joiner, NULL);
    CHECK_PTR(strand_join(joiner), &children[1]);
    CHECK_LOG("interrupted");
}

static void *join_ended_while_cancelled(void *unused)
{
    STRAND_SCOPE(s);
    strand child = strand_spawn(s, test_return, TEST_PTR(6));
    strand_wait(child);
    strand_cancel(strand_self(), NULL);
    CHECK_THROWS(test_join, &child, &STRAND_INTERRUPTED);
    STRAND_SHIELD;
    CHECK_PTR(unused, NULL);
    return strand_join(child);
}

/* Also one that would not have had to wait: it throws before it does anything. */
TEST_INSIDE(a_cancelled_strand_cannot_join_even_a_child_that_has_ended)
{
    STRAND_SCOPE(s);
    CHECK_PTR(strand_join(strand_spawn(s, join_ended_while_cancelled, NULL)), TEST_PTR(6));
}

static void *join_twice_if_interrupted(void *times)
{
    STRAND_SCOPE(s);
    strand child = strand_spawn(s, test_yield_times, times);
    void *volatile value = NULL;
    volatile bool interrupted = false;
    STRAND_TRY {
        value = strand_join(child);
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        interrupted = true;
    }
    STRAND_END
    if (!interrupted)
        return value;
    STRAND_SHIELD;
    return strand_join(child);
}

/* Either the join took the value or it was interrupted: otherwise the second join is misuse, or finds nothing. */
/* contract 4.20, 5.1 */
TEST_RACE(an_interruption_of_the_joiner_races_with_the_end_of_the_child)
{
    STRAND_SCOPE(s);
    for (long i = 0; i < test_scale(3000); i++) {
        strand joiner = strand_spawn(s, join_twice_if_interrupted, TEST_PTR(i % 7));
        for (int n = 0; n < i % 5; n++)
            strand_yield();
        strand_cancel(joiner, NULL);
        CHECK_PTR(strand_join(joiner), TEST_PTR(i % 7));
    }
}
