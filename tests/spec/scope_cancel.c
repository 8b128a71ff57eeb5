/*
 * Cancelling a scope: all its children, those spawned later too, without waiting for them.
 */
#define SUITE scope_cancel
#include "test.h"

TEST_INSIDE(cancelling_a_scope_cancels_all_its_children)
{
    struct test_child children[10] = {{0}};
    {
        STRAND_SCOPE(s);
        for (int i = 0; i < 10; i++)
            test_spawn_started(s, test_child_blocks, &children[i]);
        strand_scope_cancel(s, NULL);
        for (int i = 0; i < 10; i++)
            test_yield_until(&children[i].ended, 1);
    }
}

TEST_INSIDE(cancelling_a_scope_does_not_wait)
{
    struct test_child child = {0};
    STRAND_SCOPE(s);
    test_spawn_started(s, test_child_resists, &child);
    strand_scope_cancel(s, NULL);
    CHECK_EQ(child.ended, 0);
    child.release = 1;
}

static void *log_why(void *unused)
{
    STRAND_TRY {
        strand_checkpoint();
        test_log("not-interrupted");
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        test_log("%s:%s", strand_exception_who(e), strand_exception_why(e));
        strand_rethrow(strand_exception_keep(e));
    }
    STRAND_END
    return unused;
}

/* contract 4.4, 4.13 */
TEST_INSIDE(a_strand_spawned_into_a_cancelled_scope_is_born_cancelled)
{
    STRAND_SCOPE(s);
    strand_scope_cancel(s, "closed");
    strand child = strand_spawn(s, log_why, NULL);
    strand_wait(child);
    CHECK_LOG("root:closed");
}

TEST_INSIDE(joining_a_born_cancelled_child_throws_child_cancelled)
{
    volatile bool thrown = false;
    STRAND_SCOPE(s);
    strand_scope_cancel(s, "closed");
    strand child = strand_spawn(s, log_why, NULL);
    STRAND_TRY {
        strand_join(child);
    }
    STRAND_CATCH(&STRAND_CHILD_CANCELLED, e) {
        CHECK_STR(strand_exception_why(e), "closed");
        thrown = true;
    }
    STRAND_END
    CHECK(thrown);
}

/* contract 4.13 */
TEST_INSIDE(a_born_cancelled_child_that_never_blocks_returns_its_value)
{
    STRAND_SCOPE(s);
    strand_scope_cancel(s, NULL);
    CHECK_PTR(strand_join(strand_spawn(s, test_return, TEST_PTR(3))), TEST_PTR(3));
}

TEST_INSIDE(the_first_reason_of_a_cancelled_scope_stays)
{
    STRAND_SCOPE(s);
    strand_scope_cancel(s, "first");
    strand_scope_cancel(s, "second");
    strand_wait(strand_spawn(s, log_why, NULL));
    CHECK_LOG("root:first");
}

TEST_INSIDE(cancelling_a_scope_does_not_interrupt_its_owner)
{
    struct test_child child = {0};
    STRAND_SCOPE(s);
    test_spawn_started(s, test_child_blocks, &child);
    strand_scope_cancel(s, NULL);
    strand_yield();
    strand_checkpoint();
    strand_sleep(1);
}

TEST_INSIDE(cancelling_a_scope_leaves_the_children_of_other_scopes_alone)
{
    struct test_child other = {0};
    STRAND_SCOPE(outer);
    STRAND_SCOPE(inner);
    strand child = test_spawn_started(outer, test_child_waits, &other);
    strand_scope_cancel(inner, NULL);
    for (int i = 0; i < 10; i++)
        strand_yield();
    CHECK_EQ(other.ended, 0);
    other.release = 1;
    CHECK_PTR(strand_join(child), &other);
}

static void *cancel_own_scope(void *child)
{
    STRAND_SCOPE(s);
    test_spawn_started(s, test_child_blocks, child);
    strand_cancel(strand_self(), NULL);
    strand_scope_cancel(s, NULL);
    CHECK_EQ(strand_scope_count(s), 1);
    return TEST_PTR(1);
}

/* Nothing in it may throw: cancelling, counting and leaving give back. */
/* contract 4.22 */
TEST_INSIDE(a_cancelled_owner_can_cancel_its_scope_and_leave_it)
{
    struct test_child child = {0};
    STRAND_SCOPE(s);
    CHECK_PTR(strand_join(strand_spawn(s, cancel_own_scope, &child)), TEST_PTR(1));
    CHECK_EQ(child.ended, 1);
}
