/*
 * Scopes: a scope belongs to a block of its owner's code, and leaving the block by any way leaves the scope: what is
 * anchored to it is cancelled and waited for. Which exceptions come out of it is in live_strands.c, failure.c and
 * policy.c; cancelling one is in scope_cancel.c; open ones are in open_scope.c.
 */
#define SUITE scope
#include "test.h"

/* A blocked child that the owner has cancelled, so that leaving the scope throws nothing. */
static void spawn_cancelled(strand_scope scope, struct test_child *child)
{
    strand_cancel(test_spawn_started(scope, test_child_blocks, child), NULL);
}

/* ---- the ways out of a block ----------------------------------------------------------------- */

/* contract 4.1 */
TEST_INSIDE(falling_off_a_block_waits_for_its_children)
{
    struct test_child child = {0};
    {
        STRAND_SCOPE(s);
        spawn_cancelled(s, &child);
    }
    CHECK_EQ(child.ended, 1);
}

static int leave_by_return(struct test_child *child)
{
    STRAND_SCOPE(s);
    spawn_cancelled(s, child);
    return 7;
}

/* contract 4.1 */
TEST_INSIDE(a_return_waits_for_the_children_and_keeps_its_value)
{
    struct test_child child = {0};
    CHECK_EQ(leave_by_return(&child), 7);
    CHECK_EQ(child.ended, 1);
}

/* contract 4.1 */
TEST_INSIDE(a_break_waits_for_the_children)
{
    struct test_child child = {0};
    for (;;) {
        STRAND_SCOPE(s);
        spawn_cancelled(s, &child);
        break;
    }
    CHECK_EQ(child.ended, 1);
}

/* contract 4.1 */
TEST_INSIDE(a_continue_waits_for_the_children)
{
    struct test_child children[3] = {{0}};
    for (int i = 0; i < 3; i++) {
        CHECK(i == 0 || children[i - 1].ended);
        STRAND_SCOPE(s);
        spawn_cancelled(s, &children[i]);
        continue;
    }
    CHECK_EQ(children[2].ended, 1);
}

/* contract 4.1 */
TEST_INSIDE(a_goto_out_of_the_block_waits_for_the_children)
{
    struct test_child child = {0};
    {
        STRAND_SCOPE(s);
        spawn_cancelled(s, &child);
        goto out;
    }
out:
    CHECK_EQ(child.ended, 1);
}

static void *leave_by_throw(void *child)
{
    STRAND_SCOPE(s);
    test_spawn_started(s, test_child_blocks, child);
    strand_throw(&TEST_ERROR, "out");
}

/* contract 4.1 */
TEST_INSIDE(an_exception_waits_for_the_children_and_goes_on)
{
    struct test_child child = {0};
    strand_exception *e = strand_try(leave_by_throw, &child, NULL);
    CHECK_KIND(e, &TEST_ERROR);
    CHECK_STR(strand_exception_text(e), "out");
    CHECK_EQ(child.ended, 1);
    strand_exception_release(e);
}

static void *leave_by_interruption(void *children)
{
    STRAND_SCOPE(s);
    struct test_child *own = children, *childs = own + 1;
    test_spawn_started(s, test_child_blocks, childs);
    atomic_store(&own->started, 1);
    strand_sleep(FOREVER);
    return NULL;
}

/* contract 4.1 */
TEST_INSIDE(an_interruption_cancels_the_children_and_waits_for_them)
{
    struct test_child children[2] = {{0}};
    {
        STRAND_SCOPE(s);
        strand owner = strand_spawn(s, leave_by_interruption, children);
        test_yield_until(&children[0].started, 1);
        strand_cancel(owner, NULL);
        strand_wait(owner);
        CHECK_EQ(children[1].ended, 1);
    }
}

/* V-28, contract 4.36 */
TEST_INSIDE(leaving_a_scope_cancels_and_waits_for_its_children)
{
    struct test_child children[5] = {{0}};
    STRAND_TRY {
        STRAND_SCOPE(s);
        for (int i = 0; i < 5; i++)
            test_spawn_started(s, test_child_blocks, &children[i]);
    }
    STRAND_CATCH(&STRAND_LIVE_STRANDS, e) {
        for (int i = 0; i < 5; i++)
            CHECK_EQ(children[i].ended, 1);
        test_log("caught");
    }
    STRAND_END
    CHECK_LOG("caught");
}

TEST_INSIDE(a_scope_without_children_is_left_at_once)
{
    struct test_child other = {0};
    STRAND_SCOPE(outer);
    strand child = strand_spawn(outer, test_child_waits, &other);
    for (int i = 0; i < 100; i++) {
        STRAND_SCOPE(empty);
        CHECK_EQ(strand_scope_count(empty), 0);
    }
    other.release = 1;
    CHECK_PTR(strand_join(child), &other);
}

/* ---- leaving waits uninterruptibly ----------------------------------------------------------- */

static void *leave_with_resisting_child(void *children)
{
    struct test_child *own = children, *childs = own + 1;
    STRAND_SCOPE(s);
    strand_cancel(test_spawn_started(s, test_child_resists, childs), NULL);
    atomic_store(&own->started, 1);
    return NULL;
}

/* V-28, V-33, contract 4.36 */
TEST_INSIDE(a_cancelled_owner_still_waits_for_its_children_at_the_end_of_the_scope)
{
    struct test_child children[2] = {{0}};
    STRAND_SCOPE(s);
    strand owner = strand_spawn(s, leave_with_resisting_child, children);
    test_yield_until(&children[0].started, 1);
    strand_cancel(owner, NULL);
    for (int i = 0; i < 100; i++) {
        strand_yield();
        CHECK(!strand_ended(owner));
    }
    children[1].release = 1;
    strand_wait(owner);
    CHECK_EQ(children[1].ended, 1);
}

TEST_INSIDE(an_owner_whose_leaving_was_not_interrupted_still_returns_its_value)
{
    struct test_child children[2] = {{0}};
    STRAND_SCOPE(s);
    strand owner = strand_spawn(s, leave_with_resisting_child, children);
    test_yield_until(&children[0].started, 1);
    strand_cancel(owner, NULL);
    children[1].release = 1;
    CHECK_PTR(strand_join(owner), NULL);
}

/* ---- several scopes -------------------------------------------------------------------------- */

static void *log_when_interrupted(void *name)
{
    TEST_LEAVING(name);
    strand_sleep(FOREVER);
    return NULL;
}

static void *leave_two_scopes(void *unused)
{
    STRAND_SCOPE(first);
    STRAND_SCOPE(second);
    strand_spawn(first, log_when_interrupted, "first");
    strand_spawn(second, log_when_interrupted, "second");
    return unused;
}

/* The children of the first are not even cancelled before those of the second have ended. */
/* V-24 */
TEST_INSIDE(scopes_of_one_block_are_left_the_last_one_first)
{
    CHECK_THROWS(leave_two_scopes, NULL, &STRAND_LIVE_STRANDS);
    CHECK_LOG("second first");
}

/* V-24 */
TEST_INSIDE(leaving_an_inner_scope_leaves_the_children_of_the_outer_one_alone)
{
    struct test_child outside = {0}, inside = {0};
    STRAND_SCOPE(outer);
    strand child = test_spawn_started(outer, test_child_waits, &outside);
    {
        STRAND_SCOPE(inner);
        spawn_cancelled(inner, &inside);
    }
    CHECK_EQ(inside.ended, 1);
    CHECK_EQ(outside.ended, 0);
    outside.release = 1;
    CHECK_PTR(strand_join(child), &outside);
}

TEST_INSIDE(a_child_of_an_outer_scope_can_be_spawned_and_joined_while_an_inner_one_is_open)
{
    STRAND_SCOPE(outer);
    strand child;
    {
        STRAND_SCOPE(inner);
        child = strand_spawn(outer, test_return, TEST_PTR(5));
        CHECK_EQ(strand_scope_count(inner), 0);
        CHECK_EQ(strand_scope_count(outer), 1);
    }
    CHECK_PTR(strand_join(child), TEST_PTR(5));
}

static void *nest(void *depth)
{
    STRAND_SCOPE(s);
    if (depth == NULL)
        return TEST_PTR(0);
    strand child = strand_spawn(s, test_return, TEST_PTR(1));
    intptr_t below = (intptr_t)nest(TEST_PTR((intptr_t)depth - 1));
    return TEST_PTR(below + (intptr_t)strand_join(child));
}

TEST_INSIDE(a_hundred_scopes_of_one_strand_nest)
{
    CHECK_PTR(nest(TEST_PTR(100)), TEST_PTR(100));
}

TEST_INSIDE(a_block_that_is_entered_again_has_a_new_scope)
{
    for (long i = 0; i < test_scale(10000); i++) {
        STRAND_SCOPE(s);
        CHECK_EQ(strand_scope_count(s), 0);
        CHECK_PTR(strand_join(strand_spawn(s, test_return, TEST_PTR(i))), TEST_PTR(i));
    }
}

/* ---- borrowed memory ------------------------------------------------------------------------- */

static void *write_number(void *number)
{
    *(int *)number = 42;
    return NULL;
}

/* contract 3.2 */
TEST_INSIDE(children_use_locals_of_their_parent_that_outlive_the_scope)
{
    int numbers[10] = {0};
    {
        STRAND_SCOPE(s);
        for (int i = 0; i < 10; i++)
            strand_spawn(s, write_number, &numbers[i]);
        strand_scope_join(s);
    }
    for (int i = 0; i < 10; i++)
        CHECK_EQ(numbers[i], 42);
}

/* ---- counting -------------------------------------------------------------------------------- */

TEST_INSIDE(an_ended_child_counts_until_it_is_joined)
{
    STRAND_SCOPE(s);
    strand child = strand_spawn(s, test_return, NULL);
    CHECK_EQ(strand_scope_count(s), 1);
    strand_wait(child);
    CHECK_EQ(strand_scope_count(s), 1);
    strand_join(child);
    CHECK_EQ(strand_scope_count(s), 0);
}

TEST_INSIDE(a_cancelled_child_counts_until_it_is_joined)
{
    struct test_child child = {0};
    STRAND_SCOPE(s);
    spawn_cancelled(s, &child);
    test_yield_until(&child.ended, 1);
    CHECK_EQ(strand_scope_count(s), 1);
    strand_scope_join(s);
    CHECK_EQ(strand_scope_count(s), 0);
}

/* ---- strand_scope_join ----------------------------------------------------------------------- */

static void *add_slowly(void *sum)
{
    for (int i = 0; i < 3; i++)
        strand_yield();
    atomic_fetch_add((_Atomic int *)sum, 1);
    return NULL;
}

TEST_INSIDE(joining_a_scope_waits_for_all_children)
{
    _Atomic int sum = 0;
    STRAND_SCOPE(s);
    for (int i = 0; i < 100; i++)
        strand_spawn(s, add_slowly, &sum);
    strand_scope_join(s);
    CHECK_EQ(sum, 100);
    CHECK_EQ(strand_scope_count(s), 0);
}

TEST_INSIDE(joining_an_empty_scope_returns)
{
    STRAND_SCOPE(s);
    strand_scope_join(s);
    strand_scope_join(s);
}

TEST_INSIDE(a_joined_scope_takes_new_children)
{
    _Atomic int sum = 0;
    STRAND_SCOPE(s);
    for (int i = 0; i < 3; i++) {
        strand_spawn(s, add_slowly, &sum);
        strand_scope_join(s);
        CHECK_EQ(sum, i + 1);
    }
}

TEST_INSIDE(joining_a_scope_leaves_out_children_that_were_joined_already)
{
    _Atomic int sum = 0;
    STRAND_SCOPE(s);
    strand one = strand_spawn(s, test_return, TEST_PTR(1));
    strand_spawn(s, add_slowly, &sum);
    CHECK_PTR(strand_join(one), TEST_PTR(1));
    strand_scope_join(s);
    CHECK_EQ(sum, 1);
}

TEST_INSIDE(joining_a_scope_expects_children_that_its_owner_cancelled_to_end_interrupted)
{
    struct test_child cancelled = {0};
    _Atomic int sum = 0;
    STRAND_SCOPE(s);
    strand_spawn(s, add_slowly, &sum);
    spawn_cancelled(s, &cancelled);
    strand_scope_join(s);
    CHECK_EQ(sum, 1);
    CHECK_EQ(cancelled.ended, 1);
}

static void *cancel_it(void *handle)
{
    strand_cancel(*(strand *)handle, "in the way");
    return NULL;
}

TEST_INSIDE(joining_a_scope_throws_child_cancelled_for_a_child_that_somebody_else_cancelled)
{
    struct test_child child = {0};
    volatile bool thrown = false;
    STRAND_SCOPE(s);
    strand blocked = test_spawn_started(s, test_child_blocks, &child);
    strand_join(strand_spawn(s, cancel_it, &blocked));
    STRAND_TRY {
        strand_scope_join(s);
    }
    STRAND_CATCH(&STRAND_CHILD_CANCELLED, e) {
        CHECK_STR(strand_exception_why(e), "in the way");
        thrown = true;
    }
    STRAND_END
    CHECK(thrown);
    CHECK_EQ(strand_scope_count(s), 0);
}

static void *join_resisting_child(void *children)
{
    struct test_child *own = children, *childs = own + 1;
    STRAND_SCOPE(s);
    test_spawn_started(s, test_child_waits, childs);
    atomic_store(&own->started, 1);
    STRAND_TRY {
        strand_scope_join(s);
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        test_log("interrupted");
    }
    STRAND_END
    STRAND_SHIELD;
    childs->release = 1;
    strand_scope_join(s);
    return TEST_PTR(childs->ended);
}

/* An interrupted join of the scope has consumed nobody: the second one finds the child. */
TEST_INSIDE(joining_a_scope_is_interruptible)
{
    struct test_child children[2] = {{0}};
    STRAND_SCOPE(s);
    strand owner = strand_spawn(s, join_resisting_child, children);
    test_yield_until(&children[0].started, 1);
    strand_cancel(owner, NULL);
    CHECK_PTR(strand_join(owner), TEST_PTR(1));
    CHECK_LOG("interrupted");
}

/* ---- many ------------------------------------------------------------------------------------ */

/* V-28 */
TEST_RACE(leaving_a_scope_waits_for_many_children)
{
    long n = test_scale(10000);
    struct test_child *children = calloc((size_t)n, sizeof(*children));
    {
        STRAND_SCOPE(s);
        for (long i = 0; i < n; i++)
            strand_spawn(s, test_child_blocks, &children[i]);
        strand_scope_cancel(s, NULL);
    }
    for (long i = 0; i < n; i++)
        CHECK_EQ(children[i].ended, 1);
    free(children);
}
