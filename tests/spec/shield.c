/*
 * A shield defers every source of interruption outside of its block, and none inside.
 */
#define SUITE shield
#include "test.h"

static _Atomic int started;

static void *block_for_a_moment(void *arg)
{
    strand_yield();
    strand_checkpoint();
    strand_sleep(STRAND_US);
    return arg;
}

static void try_an_operation(void)
{
    test_try_operation(block_for_a_moment, NULL);
}

static void *operate_under_a_shield(void *arg)
{
    STRAND_SHIELD;
    try_an_operation();
    return arg;
}

/* V-32, contract 4.42 */
TEST_INSIDE(a_cancel_does_not_reach_into_a_shield)
{
    test_run_cancelled(operate_under_a_shield, NULL);
    CHECK_LOG("ok");
}

static void *operate_around_a_shield(void *arg)
{
    try_an_operation();
    {
        STRAND_SHIELD;
        try_an_operation();
        try_an_operation();
    }
    try_an_operation();
    return arg;
}

/* V-32, contract 4.42 */
TEST_INSIDE(at_the_end_of_a_shield_the_interruption_is_back)
{
    test_run_cancelled(operate_around_a_shield, NULL);
    CHECK_LOG("cut ok ok cut");
}

static void *nest_shields(void *arg)
{
    STRAND_SHIELD;
    {
        STRAND_SHIELD;
        try_an_operation();
    }
    try_an_operation();
    return arg;
}

/* V-32, contract 4.42 */
TEST_INSIDE(the_end_of_an_inner_shield_leaves_the_outer_one_up)
{
    test_run_cancelled(nest_shields, NULL);
    CHECK_LOG("ok ok");
}

static void *throw_out_of_a_shield(void *arg)
{
    STRAND_TRY {
        STRAND_SHIELD;
        strand_yield();
        test_throw(NULL);
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        test_log("caught");
        try_an_operation();
    }
    STRAND_END
    try_an_operation();
    return arg;
}

TEST_INSIDE(a_shield_that_is_left_by_an_exception_is_down)
{
    test_run_cancelled(throw_out_of_a_shield, NULL);
    CHECK_LOG("caught cut cut");
}

static void *return_out_of_a_shield(void *arg)
{
    STRAND_SHIELD;
    strand_yield();
    return arg;
}

static void *call_a_shielding_function(void *arg)
{
    return_out_of_a_shield(arg);
    try_an_operation();
    return arg;
}

TEST_INSIDE(a_shield_that_is_left_by_return_is_down)
{
    test_run_cancelled(call_a_shielding_function, NULL);
    CHECK_LOG("cut");
}

static void *block_under_a_shield(void *arg)
{
    STRAND_SHIELD;
    started = 1;
    test_yield_until(&started, 2);
    test_log("through");
    return arg;
}

TEST_INSIDE(a_cancel_during_a_shield_waits_for_its_end)
{
    STRAND_SCOPE(scope);
    started = 0;
    strand child = strand_spawn(scope, block_under_a_shield, &started);
    test_yield_until(&started, 1);
    strand_cancel(child, NULL);
    started = 2;
    CHECK_PTR(strand_join(child), &started);
    CHECK_LOG("through");
}

/* ---- deadlines ------------------------------------------------------------------------------ */

/* contract 4.42 */
TEST_INSIDE(a_deadline_outside_of_a_shield_waits_for_its_end)
{
    STRAND_TRY {
        STRAND_DEADLINE(LONG_PAST);
        {
            STRAND_SHIELD;
            try_an_operation();
        }
        strand_checkpoint();
        test_log("never");
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        test_log("timed-out");
    }
    STRAND_END
    CHECK_LOG("ok timed-out");
}

static void *time_out_under_a_shield(void *arg)
{
    STRAND_SHIELD;
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(STRAND_MS));
        strand_sleep(FOREVER);
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        test_log("timed-out");
    }
    STRAND_END
    try_an_operation();
    return arg;
}

/* contract 4.42 */
TEST_INSIDE(a_deadline_inside_of_a_shield_counts)
{
    test_run_cancelled(time_out_under_a_shield, NULL);
    CHECK_LOG("timed-out ok");
}

/* contract 4.42 */
TEST_INSIDE(a_shield_inside_a_deadline_inside_a_shield_puts_off_that_deadline)
{
    STRAND_SHIELD;
    STRAND_TRY {
        STRAND_DEADLINE(LONG_PAST);
        STRAND_SHIELD;
        try_an_operation();
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        test_log("timed-out");
    }
    STRAND_END
    CHECK_LOG("ok");
}

/* ---- scopes and children -------------------------------------------------------------------- */

static void *join_a_failure_under_a_shield(void *arg)
{
    STRAND_SHIELD;
    STRAND_TRY {
        STRAND_SCOPE(scope);
        strand_spawn(scope, test_throw, NULL);
        strand_sleep(FOREVER);
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        test_log("failure");
    }
    STRAND_END
    return arg;
}

/* contract 4.42 */
TEST_INSIDE(a_failed_child_of_a_scope_inside_a_shield_interrupts)
{
    test_run_cancelled(join_a_failure_under_a_shield, NULL);
    CHECK_LOG("failure");
}

TEST_INSIDE(a_failed_child_of_a_scope_outside_a_shield_waits_for_its_end)
{
    STRAND_TRY {
        STRAND_SCOPE(scope);
        strand child = strand_spawn(scope, test_throw, NULL);
        {
            STRAND_SHIELD;
            strand_wait(child);
            try_an_operation();
        }
        strand_sleep(FOREVER);
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        test_log("failure");
    }
    STRAND_END
    CHECK_LOG("ok failure");
}

static void *log_being_cut(void *arg)
{
    started = 1;
    STRAND_TRY {
        strand_sleep(FOREVER);
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        test_log("child-cut");
    }
    STRAND_END
    return arg;
}

TEST_INSIDE(a_shield_is_its_strands_own_and_no_childs)
{
    STRAND_SHIELD;
    STRAND_SCOPE(scope);
    started = 0;
    strand child = strand_spawn(scope, log_being_cut, NULL);
    test_yield_until(&started, 1);
    strand_cancel(child, NULL);
    strand_join(child);
    CHECK_LOG("child-cut");
}

static void *shield_on_the_way_out(void *arg)
{
    TEST_LEAVING("last");
    STRAND_SHIELD;
    STRAND_SCOPE(scope);
    strand_join(strand_spawn(scope, operate_under_a_shield, arg));
    test_log("joined");
    return arg;
}

TEST_INSIDE(a_cancelled_strand_can_spawn_and_join_under_a_shield)
{
    test_run_cancelled(shield_on_the_way_out, NULL);
    CHECK_LOG("ok joined last");
}
