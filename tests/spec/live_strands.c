/*
 * Live strands: before an owner leaves a scope normally, it joins, cancels or hands off every child. Otherwise the
 * children are cancelled and waited for, and STRAND_LIVE_STRANDS is thrown. The rule does not depend on timing: it
 * depends on what the owner did, not on whether the child has ended.
 */
#define SUITE live_strands
#include "test.h"

/* The owner's deed between a spawn and the end of the scope. */
typedef void owner_deed(strand_scope scope, strand child, struct test_child *state);

struct leaving {
    strand_fn *fn;
    owner_deed *deed;
    struct test_child child;
};

static void *do_and_leave(void *arg)
{
    struct leaving *leaving = arg;
    STRAND_SCOPE_OPEN(s);
    strand child = strand_spawn(s, leaving->fn, &leaving->child);
    if (leaving->deed != NULL)
        leaving->deed(s, child, &leaving->child);
    test_log("leaving");
    return NULL;
}

static void check_live(strand_fn *fn, owner_deed *deed)
{
    struct leaving leaving = {.fn = fn, .deed = deed};
    CHECK_THROWS(do_and_leave, &leaving, &STRAND_LIVE_STRANDS);
    CHECK_LOG("leaving");
}

static void check_silent(strand_fn *fn, owner_deed *deed)
{
    struct leaving leaving = {.fn = fn, .deed = deed};
    strand_exception *e = strand_try(do_and_leave, &leaving, NULL);
    if (e != NULL)
        CHECK_FAIL("thrown: %s, %s", strand_exception_kind(e)->name, strand_exception_text(e));
    CHECK_LOG("leaving");
}

/* ---- what counts as live --------------------------------------------------------------------- */

static void let_it_start(strand_scope scope, strand child, struct test_child *state)
{
    (void)scope, (void)child;
    test_yield_until(&state->started, 1);
}

/* V-36 */
TEST_INSIDE(a_blocked_child_that_was_neither_joined_nor_cancelled_is_live)
{
    check_live(test_child_blocks, let_it_start);
}

TEST_INSIDE(a_child_that_has_not_started_is_live)
{
    check_live(test_child_blocks, NULL);
}

static void let_it_end(strand_scope scope, strand child, struct test_child *state)
{
    (void)scope, (void)state;
    strand_wait(child);
}

/* Otherwise a program would be right or wrong by chance. */
/* V-29, contract 4.38 */
TEST_INSIDE(a_child_that_happens_to_have_ended_is_live_all_the_same)
{
    check_live(test_return, let_it_end);
}

static void *cancel_child(void *handle)
{
    strand_cancel(*(strand *)handle, NULL);
    return NULL;
}

static void have_it_cancelled(strand_scope scope, strand child, struct test_child *state)
{
    test_yield_until(&state->started, 1);
    strand_join(strand_spawn(scope, cancel_child, &child));
    strand_wait(child);
}

/* contract 1.6, 4.39 */
TEST_INSIDE(a_child_that_somebody_else_cancelled_is_live)
{
    check_live(test_child_blocks, have_it_cancelled);
}

static void *cancel_scope(void *scope)
{
    strand_scope_cancel(*(strand_scope *)scope, NULL);
    return NULL;
}

static void have_the_scope_cancelled(strand_scope scope, strand child, struct test_child *state)
{
    test_yield_until(&state->started, 1);
    strand_join(strand_spawn(scope, cancel_scope, &scope));
    strand_wait(child);
}

/* contract 4.39 */
TEST_INSIDE(the_children_of_an_open_scope_that_somebody_else_cancelled_are_live)
{
    check_live(test_child_blocks, have_the_scope_cancelled);
}

static void *cancel_itself(void *unused)
{
    strand_cancel(strand_self(), NULL);
    strand_checkpoint();
    return unused;
}

/* contract 4.39 */
TEST_INSIDE(a_child_that_cancelled_itself_is_live)
{
    check_live(cancel_itself, let_it_end);
}

static void *leave_after_policy(void *unused)
{
    struct test_child blocked = {0};
    strand failed;
    STRAND_SCOPE_WITH(s, STRAND_TOGETHER);
    strand sibling = test_spawn_started(s, test_child_blocks, &blocked);
    test_spawn_failed(s, &failed, 1);
    STRAND_TRY {
        strand_join(failed);
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        test_log("joined");
    }
    STRAND_END
    strand_wait(sibling);
    return unused;
}

/* Its failure was dealt with by the join, so it is not the failure that is thrown. */
/* contract 4.39 */
TEST_INSIDE(a_child_that_a_policy_cancelled_is_live)
{
    CHECK_THROWS(leave_after_policy, NULL, &STRAND_LIVE_STRANDS);
    CHECK_LOG("joined");
}

static void *spawn_into(void *scope)
{
    strand_spawn(*(strand_scope *)scope, test_return, NULL);
    return NULL;
}

static void have_another_one_spawned(strand_scope scope, strand child, struct test_child *state)
{
    (void)state;
    strand_join(child);
    strand_join(strand_spawn(scope, spawn_into, &scope));
}

TEST_INSIDE(a_child_that_somebody_else_spawned_is_live)
{
    check_live(test_return, have_another_one_spawned);
}

static void join_and_spawn_another(strand_scope scope, strand child, struct test_child *state)
{
    (void)state;
    strand_join(child);
    strand_spawn(scope, test_return, NULL);
}

TEST_INSIDE(one_live_child_among_joined_ones_is_enough)
{
    check_live(test_return, join_and_spawn_another);
}

/* ---- what does not --------------------------------------------------------------------------- */

static void join_it(strand_scope scope, strand child, struct test_child *state)
{
    (void)scope, (void)state;
    strand_join(child);
}

/* contract 1.6 */
TEST_INSIDE(a_joined_child_is_not_live)
{
    check_silent(test_return, join_it);
}

static void join_all(strand_scope scope, strand child, struct test_child *state)
{
    (void)child, (void)state;
    strand_scope_join(scope);
}

TEST_INSIDE(after_joining_the_scope_nobody_is_live)
{
    check_silent(test_return, join_all);
}

static void cancel_it(strand_scope scope, strand child, struct test_child *state)
{
    (void)scope;
    test_yield_until(&state->started, 1);
    strand_cancel(child, NULL);
}

/* contract 1.6, 4.39 */
TEST_INSIDE(a_child_that_its_owner_cancelled_is_not_live)
{
    check_silent(test_child_blocks, cancel_it);
}

static void cancel_at_once(strand_scope scope, strand child, struct test_child *state)
{
    (void)scope, (void)state;
    strand_cancel(child, NULL);
}

TEST_INSIDE(a_child_that_its_owner_cancelled_before_it_started_is_not_live)
{
    check_silent(test_child_blocks, cancel_at_once);
}

static void cancel_after_its_end(strand_scope scope, strand child, struct test_child *state)
{
    (void)scope, (void)state;
    strand_wait(child);
    strand_cancel(child, NULL);
}

/* The owner has said that it wants no more of it; whether the child was quicker must not matter. */
/* contract 4.38 */
TEST_INSIDE(a_child_that_its_owner_cancelled_after_its_end_is_not_live)
{
    check_silent(test_return, cancel_after_its_end);
}

static void cancel_the_scope(strand_scope scope, strand child, struct test_child *state)
{
    (void)child, (void)state;
    strand_spawn(scope, test_return, NULL);
    strand_scope_cancel(scope, NULL);
}

/* contract 4.39 */
TEST_INSIDE(children_of_a_scope_that_its_owner_cancelled_are_not_live)
{
    check_silent(test_child_blocks, cancel_the_scope);
}

static void cancel_the_scope_and_spawn(strand_scope scope, strand child, struct test_child *state)
{
    (void)child, (void)state;
    strand_scope_cancel(scope, NULL);
    strand_spawn(scope, test_return, NULL);
}

TEST_INSIDE(a_child_that_was_spawned_into_a_scope_that_its_owner_had_cancelled_is_not_live)
{
    check_silent(test_child_blocks, cancel_the_scope_and_spawn);
}

static void cancel_after_another(strand_scope scope, strand child, struct test_child *state)
{
    have_it_cancelled(scope, child, state);
    strand_cancel(child, NULL);
}

/* The second cancel changes nothing for the child, but it is the owner's. */
TEST_INSIDE(a_child_that_somebody_else_and_then_its_owner_cancelled_is_not_live)
{
    check_silent(test_child_blocks, cancel_after_another);
}

/* ---- how it is thrown ------------------------------------------------------------------------ */

static void *leave_blocked_child(void *child)
{
    STRAND_SCOPE(s);
    test_spawn_started(s, test_child_blocks, child);
    return NULL;
}

/* V-29, contract 4.37 */
TEST_INSIDE(live_strands_is_thrown_when_all_have_ended)
{
    struct test_child child = {0};
    strand_exception *e = strand_try(leave_blocked_child, &child, NULL);
    CHECK_EQ(child.ended, 1);
    CHECK_KIND(e, &STRAND_LIVE_STRANDS);
    strand_exception_release(e);
}

TEST_INSIDE(live_strands_is_an_error)
{
    struct test_child child = {0};
    STRAND_TRY {
        leave_blocked_child(&child);
    }
    STRAND_CATCH(&STRAND_ERROR, e) {
        CHECK_KIND(e, &STRAND_LIVE_STRANDS);
        test_log("error");
    }
    STRAND_END
    CHECK_LOG("error");
}

TEST_INSIDE(live_strands_is_thrown_on_a_break_out_of_the_block)
{
    struct test_child child = {0};
    STRAND_TRY {
        for (;;) {
            STRAND_SCOPE(s);
            test_spawn_started(s, test_child_blocks, &child);
            break;
        }
        test_log("after");
    }
    STRAND_CATCH(&STRAND_LIVE_STRANDS, e) {
        test_log("live");
    }
    STRAND_END
    CHECK_LOG("live");
}

static void *throw_over_child(void *child)
{
    STRAND_SCOPE(s);
    test_spawn_started(s, test_child_blocks, child);
    test_throw("first");
    return NULL;
}

/* V-29, contract 4.37 */
TEST_INSIDE(an_exception_that_leaves_the_scope_is_not_replaced_by_live_strands)
{
    struct test_child child = {0};
    strand_exception *e = strand_try(throw_over_child, &child, NULL);
    CHECK_KIND(e, &TEST_ERROR);
    CHECK_STR(strand_exception_text(e), "first");
    CHECK_EQ(child.ended, 1);
    strand_exception_release(e);
}

TEST_INSIDE(an_exception_of_a_cancelled_live_child_is_suppressed_in_live_strands)
{
    struct leaving leaving = {.fn = test_child_throws, .deed = let_it_start};
    strand_exception *e = strand_try(do_and_leave, &leaving, NULL);
    CHECK_KIND(e, &STRAND_LIVE_STRANDS);
    CHECK_KIND(strand_exception_suppressed(e, 0), &TEST_ERROR2);
    strand_exception_release(e);
}

TEST_INSIDE(live_strands_of_a_child_is_a_failure_like_any_other)
{
    struct test_child child = {0};
    STRAND_TRY {
        STRAND_SCOPE(s);
        strand_join(strand_spawn(s, leave_blocked_child, &child));
    }
    STRAND_CATCH(&STRAND_LIVE_STRANDS, e) {
        test_log("live");
    }
    STRAND_END
    CHECK_LOG("live");
}

static void *note_who(void *who)
{
    STRAND_TRY {
        strand_sleep(FOREVER);
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        strcpy(who, strand_exception_who(e));
    }
    STRAND_END
    return NULL;
}

TEST_INSIDE(a_child_that_is_cancelled_by_leaving_learns_who_left)
{
    char who[64] = "";
    STRAND_TRY {
        STRAND_SCOPE(s);
        strand_spawn(s, note_who, who);
        strand_yield();
    }
    STRAND_CATCH(&STRAND_LIVE_STRANDS, e) {
        test_log("live");
    }
    STRAND_END
    CHECK_LOG("live");
    CHECK_STR(who, "root");
}

/* ---- races ----------------------------------------------------------------------------------- */

static void *leave_while_it_ends(void *i)
{
    STRAND_SCOPE(s);
    strand_spawn(s, test_yield_times, TEST_PTR((intptr_t)i % 5));
    for (int n = 0; n < (intptr_t)i % 7; n++)
        strand_yield();
    return NULL;
}

/* contract 4.38 */
TEST_RACE(leaving_that_races_with_the_end_of_the_child_always_throws_live_strands)
{
    for (long i = 0; i < test_scale(3000); i++) {
        CHECK_THROWS(leave_while_it_ends, TEST_PTR(i), &STRAND_LIVE_STRANDS);
    }
}

static void *cancel_while_it_ends(void *i)
{
    STRAND_SCOPE(s);
    strand child = strand_spawn(s, test_yield_times, TEST_PTR((intptr_t)i % 5));
    for (int n = 0; n < (intptr_t)i % 7; n++)
        strand_yield();
    strand_cancel(child, NULL);
    return NULL;
}

/* contract 4.38 */
TEST_RACE(a_cancel_that_races_with_the_end_of_the_child_never_leaves_it_live)
{
    for (long i = 0; i < test_scale(3000); i++)
        CHECK_PTR(strand_try(cancel_while_it_ends, TEST_PTR(i), NULL), NULL);
}
