/*
 * Failures: a child that was not cancelled ends by an exception. That is never silent: its scope interrupts the owner,
 * and whatever way the owner takes, the exception is thrown where it is joined, or where the scope is left. Several
 * exceptions at a time are in suppressed.c.
 */
#define SUITE failure
#include "test.h"

/* A child that has failed by the time this returns. */
static strand spawn_failed(strand_scope scope)
{
    strand child;
    test_spawn_failed(scope, &child, 1);
    return child;
}

/* ---- the owner is interrupted ---------------------------------------------------------------- */

/* contract 4.29 */
TEST_INSIDE(a_failed_child_interrupts_its_owner_and_leaving_the_scope_throws_what_the_child_threw)
{
    STRAND_TRY {
        STRAND_SCOPE(s);
        strand_spawn(s, test_throw, "child");
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
        test_log("%s", strand_exception_text(e));
    }
    STRAND_END
    CHECK_LOG("interrupted child");
}

/* contract 4.29 */
TEST_INSIDE(a_failed_child_interrupts_its_owner_lastingly)
{
    STRAND_TRY {
        STRAND_SCOPE(s);
        spawn_failed(s);
        for (int i = 0; i < 3; i++) {
            STRAND_TRY {
                strand_checkpoint();
            }
            STRAND_CATCH(&STRAND_INTERRUPTED, e) {
                test_log("interrupted");
            }
            STRAND_END
        }
        strand_yield();
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        test_log("failed");
    }
    STRAND_END
    CHECK_LOG("interrupted interrupted interrupted failed");
}

TEST_INSIDE(catching_all_errors_inside_the_scope_does_not_catch_the_failure)
{
    STRAND_TRY {
        STRAND_SCOPE(s);
        spawn_failed(s);
        STRAND_TRY {
            strand_yield();
        }
        STRAND_CATCH(&STRAND_ERROR, e) {
            test_log("inside");
        }
        STRAND_END
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        test_log("outside");
    }
    STRAND_END
    CHECK_LOG("outside");
}

TEST_INSIDE(nothing_is_left_of_a_failure_after_its_scope)
{
    STRAND_TRY {
        STRAND_SCOPE(s);
        spawn_failed(s);
        strand_yield();
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        strand_checkpoint();
        test_log("caught");
    }
    STRAND_END
    strand_yield();
    strand_sleep(1);
    CHECK_LOG("caught");
}

TEST_INSIDE(joining_another_child_is_interrupted_by_the_failure_of_its_sibling)
{
    struct test_child blocked = {0};
    STRAND_TRY {
        STRAND_SCOPE(s);
        strand sibling = test_spawn_started(s, test_child_blocks, &blocked);
        strand_spawn(s, test_throw, NULL);
        strand_join(sibling);
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        CHECK_EQ(blocked.ended, 1);
        test_log("caught");
    }
    STRAND_END
    CHECK_LOG("caught");
}

TEST_INSIDE(waiting_for_a_strand_is_interrupted_by_a_failure)
{
    struct test_child other = {0};
    STRAND_SCOPE(outer);
    strand unrelated = test_spawn_started(outer, test_child_waits, &other);
    STRAND_TRY {
        STRAND_SCOPE(s);
        strand_spawn(s, test_throw, NULL);
        strand_wait(unrelated);
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        test_log("caught");
    }
    STRAND_END
    other.release = 1;
    CHECK_PTR(strand_join(unrelated), &other);
    CHECK_LOG("caught");
}

/* Only with the scope is it over for them. */
TEST_INSIDE(a_failure_leaves_the_siblings_alone)
{
    struct test_child other = {0};
    STRAND_TRY {
        STRAND_SCOPE(s);
        strand sibling = test_spawn_started(s, test_child_waits, &other);
        spawn_failed(s);
        STRAND_SHIELD;
        for (int i = 0; i < 20; i++)
            strand_yield();
        CHECK_EQ(other.ended, 0);
        other.release = 1;
        CHECK_PTR(strand_join(sibling), &other);
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        test_log("caught");
    }
    STRAND_END
    CHECK_LOG("caught");
}

/* ---- nested scopes --------------------------------------------------------------------------- */

/* contract 4.29 */
TEST_INSIDE(the_interruption_passes_inner_scopes_on_its_way_to_the_scope_of_the_failed_child)
{
    struct test_child inside = {0};
    STRAND_TRY {
        STRAND_SCOPE(outer);
        STRAND_TRY {
            STRAND_SCOPE(inner);
            test_spawn_started(inner, test_child_blocks, &inside);
            strand_spawn(outer, test_throw, NULL);
            strand_sleep(FOREVER);
        }
        STRAND_CATCH(&STRAND_INTERRUPTED, e) {
            CHECK_EQ(inside.ended, 1);
            test_log("interrupted");
            strand_rethrow(strand_exception_keep(e));
        }
        STRAND_END
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        test_log("failed");
    }
    STRAND_END
    CHECK_LOG("interrupted failed");
}

TEST_INSIDE(a_failure_that_is_caught_outside_of_its_scope_leaves_the_scopes_around_it_alone)
{
    struct test_child outside = {0};
    STRAND_SCOPE(outer);
    strand child = test_spawn_started(outer, test_child_waits, &outside);
    STRAND_TRY {
        STRAND_SCOPE(inner);
        spawn_failed(inner);
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        test_log("caught");
    }
    STRAND_END
    CHECK_EQ(outside.ended, 0);
    outside.release = 1;
    CHECK_PTR(strand_join(child), &outside);
    CHECK_LOG("caught");
}

static void *fail_in_both(void *unused)
{
    strand child;
    STRAND_SCOPE(outer);
    {
        STRAND_SHIELD;
        strand_wait(strand_spawn(outer, test_throw2, "outer"));
    }
    STRAND_SCOPE(inner);
    test_spawn_failed(inner, &child, 1);
    strand_checkpoint();
    return unused;
}

TEST_INSIDE(the_outer_of_failures_in_two_scopes_counts_and_the_inner_one_is_suppressed)
{
    strand_exception *e = strand_try(fail_in_both, NULL, NULL);
    CHECK_KIND(e, &TEST_ERROR2);
    CHECK_EQ(test_count_kind(e, &TEST_ERROR), 1);
    strand_exception_release(e);
}

static void *fail_below(void *depth)
{
    STRAND_SCOPE(s);
    if (depth == NULL)
        test_throw("from below");
    strand_spawn(s, fail_below, TEST_PTR((intptr_t)depth - 1));
    strand_sleep(FOREVER);
    return NULL;
}

/* V-36, contract 4.29 */
TEST_INSIDE(a_failure_that_nobody_catches_climbs_the_tree)
{
    strand_exception *e = strand_try(fail_below, TEST_PTR(5), NULL);
    CHECK_KIND(e, &TEST_ERROR);
    CHECK_STR(strand_exception_text(e), "from below");
    strand_exception_release(e);
}

/* ---- leaving normally ------------------------------------------------------------------------ */

/* V-36, contract 4.32 */
TEST_INSIDE(a_failure_that_the_owner_has_not_seen_is_thrown_when_it_leaves_the_scope)
{
    STRAND_TRY {
        STRAND_SCOPE(s);
        spawn_failed(s);
        test_log("leaving");
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        test_log("caught");
    }
    STRAND_END
    CHECK_LOG("leaving caught");
}

/* contract 4.32 */
TEST_INSIDE(a_failure_whose_interruption_was_swallowed_is_thrown_when_the_scope_is_left)
{
    STRAND_TRY {
        STRAND_SCOPE(s);
        strand_spawn(s, test_throw, NULL);
        STRAND_TRY {
            strand_sleep(FOREVER);
        }
        STRAND_CATCH(&STRAND_ANY, e) {
            test_log("swallowed");
        }
        STRAND_END
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        test_log("caught");
    }
    STRAND_END
    CHECK_LOG("swallowed caught");
}

static void *return_over_a_failure(void *value)
{
    STRAND_SCOPE(s);
    spawn_failed(s);
    return value;
}

/* contract 4.32 */
TEST_INSIDE(a_return_over_an_unseen_failure_throws_it)
{
    CHECK_THROWS(return_over_a_failure, TEST_PTR(1), &TEST_ERROR);
}

/* ---- joining --------------------------------------------------------------------------------- */

/* The scope interrupts everything else that blocks, but the join has what it is about. */
/* contract 4.31 */
TEST_INSIDE(joining_the_failed_child_throws_its_exception_directly)
{
    STRAND_SCOPE(s);
    strand child = spawn_failed(s);
    CHECK_THROWS(test_join, &child, &TEST_ERROR);
}

/* contract 4.31 */
TEST_INSIDE(after_its_join_a_failure_is_dealt_with_also_for_the_leaving_of_the_scope)
{
    {
        STRAND_SCOPE(s);
        strand child = spawn_failed(s);
        strand_exception_release(strand_try(test_join, &child, NULL));
        strand_yield();
    }
    strand_checkpoint();
}

/* contract 4.31 */
TEST_INSIDE(as_long_as_one_of_two_failures_is_not_dealt_with_the_owner_stays_interrupted)
{
    strand children[2];
    STRAND_SCOPE(s);
    test_spawn_failed(s, children, 2);
    for (int i = 0; i < 2; i++) {
        STRAND_TRY {
            strand_checkpoint();
        }
        STRAND_CATCH(&STRAND_INTERRUPTED, e) {
            test_log("interrupted");
        }
        STRAND_END
        CHECK_THROWS(test_join, &children[i], &TEST_ERROR);
    }
    strand_checkpoint();
    CHECK_LOG("interrupted interrupted");
}

/* ---- what is no failure ---------------------------------------------------------------------- */

TEST_INSIDE(the_exception_of_a_cancelled_child_does_not_interrupt_the_owner)
{
    struct test_child child = {0};
    STRAND_SCOPE(s);
    strand handle = test_spawn_started(s, test_child_throws, &child);
    strand_cancel(handle, NULL);
    strand_wait(handle);
    strand_checkpoint();
    CHECK_THROWS(test_join, &handle, &TEST_ERROR2);
}

/* contract 4.41 */
TEST_INSIDE(the_exception_of_a_cancelled_child_is_suppressed_in_what_leaves_the_scope)
{
    struct test_child child = {0};
    STRAND_TRY {
        STRAND_SCOPE(s);
        test_spawn_started(s, test_child_throws, &child);
        test_throw("of the owner");
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        CHECK_KIND(strand_exception_suppressed(e, 0), &TEST_ERROR2);
        CHECK_STR(strand_exception_text(strand_exception_suppressed(e, 0)), "of a cancelled child");
        test_log("caught");
    }
    STRAND_END
    CHECK_LOG("caught");
}

/* contract 4.41 */
TEST_INSIDE(the_interruption_of_a_cancelled_child_is_not_suppressed_in_anything)
{
    struct test_child child = {0};
    STRAND_TRY {
        STRAND_SCOPE(s);
        test_spawn_started(s, test_child_blocks, &child);
        test_throw2("of the owner");
    }
    STRAND_CATCH(&TEST_ERROR2, e) {
        CHECK_EQ(test_count_kind(e, &STRAND_INTERRUPTED), 0);
        CHECK_EQ(test_count_kind(e, &STRAND_CHILD_CANCELLED), 0);
        test_log("caught");
    }
    STRAND_END
    CHECK_LOG("caught");
}

static void *cancel_it(void *handle)
{
    strand_cancel(*(strand *)handle, NULL);
    return NULL;
}

TEST_INSIDE(a_child_that_somebody_cancelled_and_that_ended_interrupted_does_not_interrupt_the_owner)
{
    struct test_child child = {0};
    STRAND_SCOPE(s);
    strand handle = test_spawn_started(s, test_child_blocks, &child);
    strand_join(strand_spawn(s, cancel_it, &handle));
    strand_wait(handle);
    strand_checkpoint();
    strand_yield();
    CHECK_THROWS(test_join, &handle, &STRAND_CHILD_CANCELLED);
}

/* ---- open scopes ----------------------------------------------------------------------------- */

static void *spawn_failing_into(void *scope)
{
    strand_spawn(*(strand_scope *)scope, test_throw, "spawned");
    for (int i = 0; i < 20; i++)
        strand_yield();
    test_log("unharmed");
    return NULL;
}

TEST_INSIDE(a_failure_in_an_open_scope_interrupts_its_owner_and_not_the_spawner)
{
    STRAND_SCOPE(outer);
    STRAND_TRY {
        STRAND_SCOPE_OPEN(s);
        strand spawner = strand_spawn(outer, spawn_failing_into, &s);
        STRAND_TRY {
            strand_sleep(FOREVER);
        }
        STRAND_CATCH(&STRAND_INTERRUPTED, e) {
            STRAND_SHIELD;
            strand_join(spawner);
        }
        STRAND_END
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        test_log("%s", strand_exception_text(e));
    }
    STRAND_END
    CHECK_LOG("unharmed spawned");
}

/* ---- seen by a clean-up ---------------------------------------------------------------------- */

static void join_quietly(strand *child)
{
    CHECK_THROWS(test_join, child, &TEST_ERROR);
}

TEST_INSIDE(a_failure_that_a_clean_up_has_joined_meanwhile_leaves_the_scope_all_the_same)
{
    STRAND_TRY {
        STRAND_SCOPE(s);
        strand child __attribute__((cleanup(join_quietly))) = spawn_failed(s);
        strand_sleep(FOREVER);
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        test_log("%s", strand_exception_text(e));
    }
    STRAND_END
    CHECK_LOG("0");
}
