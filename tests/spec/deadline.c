/*
 * A deadline interrupts its block, and only its own block turns that interruption into timed-out.
 */
#define SUITE deadline
#include "test.h"

static const strand_kind STONE = STRAND_KIND("stone", &STRAND_ERROR);

static void check_timed_out(strand_exception *e)
{
    CHECK_KIND(e, &STRAND_TIMED_OUT);
    strand_exception_release(e);
}

static void check_interrupted(strand_exception *e)
{
    CHECK_KIND(e, &STRAND_INTERRUPTED);
    strand_exception_release(e);
}

/* ---- its own block -------------------------------------------------------------------------- */

static void *sleep_under_a_deadline(void *arg)
{
    STRAND_DEADLINE(strand_in(STRAND_MS));
    strand_sleep(FOREVER);
    return arg;
}

/* contract 4.25 */
TEST_INSIDE(a_block_that_is_left_by_its_deadline_throws_timed_out)
{
    check_timed_out(strand_try(sleep_under_a_deadline, NULL, NULL));
}

/* contract 4.25 */
TEST_INSIDE(timed_out_is_an_error)
{
    STRAND_TRY {
        sleep_under_a_deadline(NULL);
    }
    STRAND_CATCH(&STRAND_ERROR, e) {
        test_log("error");
    }
    STRAND_END
    CHECK_LOG("error");
}

/* contract 4.25 */
TEST_INSIDE(inside_its_block_a_deadline_is_an_interruption)
{
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(STRAND_MS));
        check_interrupted(strand_try(test_sleep, NULL, NULL));
    }
    STRAND_CATCH(&STRAND_ANY, e) {
        test_log("outside");
    }
    STRAND_END
    CHECK_LOG("");
}

TEST_INSIDE(catching_all_errors_inside_the_block_does_not_catch_its_deadline)
{
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(STRAND_MS));
        STRAND_TRY {
            strand_sleep(FOREVER);
        }
        STRAND_CATCH(&STRAND_ERROR, e) {
            test_log("swallowed");
        }
        STRAND_END
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        test_log("timed-out");
    }
    STRAND_END
    CHECK_LOG("timed-out");
}

TEST_INSIDE(catching_the_interruption_of_a_deadline_once_changes_nothing)
{
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(STRAND_MS));
        check_interrupted(strand_try(test_sleep, NULL, NULL));
        check_interrupted(strand_try(test_sleep, NULL, NULL));
        strand_checkpoint();
        test_log("never");
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        test_log("timed-out");
    }
    STRAND_END
    CHECK_LOG("timed-out");
}

/* contract 4.26 */
TEST_INSIDE(nothing_is_left_of_a_deadline_after_its_block)
{
    check_timed_out(strand_try(sleep_under_a_deadline, NULL, NULL));
    strand_checkpoint();
    strand_yield();
    strand_sleep(2 * STRAND_MS);
}

TEST_INSIDE(a_deadline_that_does_not_strike_does_nothing)
{
    {
        STRAND_DEADLINE(strand_in(FOREVER));
        strand_sleep(10 * STRAND_US);
    }
    strand_yield();
}

TEST_INSIDE(a_deadline_that_is_left_before_its_time_never_strikes)
{
    {
        STRAND_DEADLINE(strand_in(100 * STRAND_MS));
        strand_checkpoint();
    }
    strand_sleep(200 * STRAND_MS);
    strand_checkpoint();
}

TEST_INSIDE(no_instant_means_no_deadline)
{
    STRAND_DEADLINE((strand_time){0});
    strand_checkpoint();
    strand_yield();
}

TEST_INSIDE(the_end_of_time_is_a_deadline_that_never_strikes)
{
    STRAND_DEADLINE(strand_in(INT64_MAX));
    strand_checkpoint();
    strand_sleep(STRAND_US);
    strand_yield();
}

/* ---- a deadline that has passed ------------------------------------------------------------- */

static void *checkpoint_past_deadline(void *arg)
{
    STRAND_DEADLINE(LONG_PAST);
    strand_checkpoint();
    return arg;
}

TEST_INSIDE(a_deadline_that_has_passed_at_entry_interrupts_the_first_operation)
{
    check_timed_out(strand_try(checkpoint_past_deadline, NULL, NULL));
}

/* contract 4.26 */
TEST_INSIDE(a_block_that_is_left_normally_does_not_time_out_however_late)
{
    STRAND_DEADLINE(LONG_PAST);
    test_log("body");
    CHECK_LOG("body");
}

static void *throw_past_deadline(void *arg)
{
    STRAND_DEADLINE(LONG_PAST);
    if (arg == NULL)
        strand_throw(&STONE, "hard");
    return arg;
}

/* contract 4.26 */
TEST_INSIDE(an_exception_that_leaves_the_block_goes_on_unchanged_however_late)
{
    strand_exception *e = strand_try(throw_past_deadline, NULL, NULL);
    CHECK_KIND(e, &STONE);
    CHECK_PTR(strand_exception_suppressed(e, 0), NULL);
    strand_exception_release(e);
}

static void *return_from_struck_deadline(void *arg)
{
    STRAND_DEADLINE(LONG_PAST);
    check_interrupted(strand_try(test_sleep, NULL, NULL));
    return arg;
}

TEST_INSIDE(a_block_that_dealt_with_its_interruption_returns_its_value)
{
    int x = 0;
    void *result = NULL;
    CHECK_PTR(strand_try(return_from_struck_deadline, &x, &result), NULL);
    CHECK_PTR(result, &x);
}

/* ---- nesting -------------------------------------------------------------------------------- */

/* contract 4.27 */
TEST_INSIDE(the_nearer_of_two_deadlines_strikes_and_times_out_its_own_block)
{
    STRAND_DEADLINE(strand_in(FOREVER));
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(STRAND_MS));
        strand_sleep(FOREVER);
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        test_log("inner");
    }
    STRAND_END
    strand_checkpoint();
    CHECK_LOG("inner");
}

/* Waits for good under a deadline of its own; a retry loop that catches every error. */
static void library_with_retries(strand_time own)
{
    for (volatile int i = 0; i < 3; i++) {
        STRAND_TRY {
            STRAND_DEADLINE(own);
            strand_sleep(FOREVER);
        }
        STRAND_CATCH(&STRAND_ERROR, e) {
            test_log("retry");
        }
        STRAND_END
    }
    test_log("gave-up");
}

/* contract 4.27 */
TEST_INSIDE(a_library_sees_its_own_deadline)
{
    STRAND_DEADLINE(strand_in(FOREVER));
    library_with_retries(strand_in(STRAND_MS));
    CHECK_LOG("retry retry retry gave-up");
}

/* contract 4.27 */
TEST_INSIDE(a_library_can_not_swallow_its_callers_deadline)
{
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(STRAND_MS));
        library_with_retries(strand_in(FOREVER));
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        test_log("caller");
    }
    STRAND_END
    CHECK_LOG("caller");
}

/* contract 4.27 */
TEST_INSIDE(when_both_have_passed_the_outer_deadline_counts)
{
    STRAND_TRY {
        STRAND_DEADLINE(LONG_PAST);
        library_with_retries(LONG_PAST);
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        test_log("caller");
    }
    STRAND_END
    CHECK_LOG("caller");
}

static void *sleep_under_ten_deadlines(void *levels)
{
    int left = *(int *)levels;
    if (left == 0)
        return test_sleep(NULL);
    STRAND_DEADLINE(left == 5 ? strand_in(STRAND_MS) : strand_in(FOREVER));
    int fewer = left - 1;
    strand_exception *e = strand_try(sleep_under_ten_deadlines, &fewer, NULL);
    CHECK(e != NULL);
    test_log("%s", strand_exception_kind(e) == &STRAND_TIMED_OUT ? "t" : "i");
    strand_rethrow(e);
}

TEST_INSIDE(the_interruption_passes_all_deadlines_inside_its_own)
{
    int levels = 10;
    check_timed_out(strand_try(sleep_under_ten_deadlines, &levels, NULL));
    CHECK_LOG("i i i i i t t t t t");
}

TEST_INSIDE(two_deadlines_may_be_set_in_one_block)
{
    strand_time begin = strand_now();
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(FOREVER));
        STRAND_DEADLINE(strand_in(STRAND_MS));
        strand_sleep(FOREVER);
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        test_log("timed-out");
    }
    STRAND_END
    CHECK(strand_now().ns - begin.ns < FOREVER);
    CHECK_LOG("timed-out");
}

static void *set_and_leave_many(void *arg)
{
    for (long i = 0; i < test_scale(10000); i++) {
        STRAND_DEADLINE(strand_in(FOREVER - i));
        strand_checkpoint();
    }
    return arg;
}

TEST_INSIDE(many_deadlines_can_be_set_and_left_one_after_the_other)
{
    CHECK_PTR(strand_try(set_and_leave_many, NULL, NULL), NULL);
}

/* ---- what it reaches ------------------------------------------------------------------------ */

/* contract 5.2 */
TEST_INSIDE(a_deadline_interrupts_a_join_and_the_child_can_be_joined_later)
{
    int x = 0;
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, test_return, &x);
    STRAND_TRY {
        STRAND_DEADLINE(LONG_PAST);
        strand_join(child);
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        test_log("timed-out");
    }
    STRAND_END
    CHECK_PTR(strand_join(child), &x);
    CHECK_LOG("timed-out");
}

/* contract 5.2 */
TEST_INSIDE(a_deadline_interrupts_a_wait_for_a_strand_that_does_not_end)
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, test_sleep, NULL);
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(STRAND_MS));
        strand_wait(child);
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        test_log("timed-out");
    }
    STRAND_END
    CHECK(!strand_ended(child));
    strand_cancel(child, NULL);
    CHECK_LOG("timed-out");
}

static void *work_past_the_deadline(void *arg)
{
    strand_sleep(3 * STRAND_MS);
    strand_checkpoint();
    return arg;
}

static strand late_child;

static void *spawn_outside_and_sleep(void *scope)
{
    STRAND_DEADLINE(strand_in(STRAND_MS));
    late_child = strand_spawn(*(strand_scope *)scope, work_past_the_deadline, scope);
    strand_sleep(FOREVER);
    return scope;
}

TEST_INSIDE(a_deadline_does_not_reach_children_of_a_scope_outside_its_block)
{
    STRAND_SCOPE(scope);
    check_timed_out(strand_try(spawn_outside_and_sleep, &scope, NULL));
    CHECK_PTR(strand_join(late_child), &scope);
}

static _Atomic int child_interrupted;

static void *note_interruption(void *arg)
{
    strand_exception *e = strand_try(test_sleep, NULL, NULL);
    child_interrupted = strand_exception_is(e, &STRAND_INTERRUPTED);
    strand_rethrow(e);
    return arg;
}

TEST_INSIDE(leaving_a_scope_by_a_deadline_cancels_the_children_inside)
{
    child_interrupted = 0;
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(STRAND_MS));
        STRAND_SCOPE(scope);
        strand_spawn(scope, note_interruption, NULL);
        strand_scope_join(scope);
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        test_log("timed-out");
    }
    STRAND_END
    CHECK_LOG("timed-out");
    CHECK_EQ(child_interrupted, 1);
}

static void *throw_hard(void *arg)
{
    (void)arg;
    strand_throw(&STONE, "hard");
}

TEST_INSIDE(a_failed_child_inside_a_deadline_that_did_not_strike_is_thrown_as_it_is)
{
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(FOREVER));
        STRAND_SCOPE(scope);
        strand_spawn(scope, throw_hard, NULL);
        strand_sleep(FOREVER);
    }
    STRAND_CATCH(&STONE, e) {
        test_log("%s", strand_exception_text(e));
    }
    STRAND_END
    CHECK_LOG("hard");
}

static void *time_out_alone(void *arg)
{
    check_timed_out(strand_try(sleep_under_a_deadline, NULL, NULL));
    return arg;
}

TEST_INSIDE(each_strand_has_its_own_deadlines)
{
    int x = 0;
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, time_out_alone, &x);
    strand_sleep(3 * STRAND_MS);
    strand_checkpoint();
    CHECK_PTR(strand_join(child), &x);
}

/* ---- streams that are always ready ---------------------------------------------------------- */

/* Loops over an operation that never has to wait until a deadline ends it. */
static void loop_under_a_deadline(void (*operation)(void))
{
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(5 * STRAND_MS));
        for (;;)
            operation();
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        test_log("timed-out");
    }
    STRAND_END
    CHECK_LOG("timed-out");
}

static void *checkpoint_root(void *arg)
{
    loop_under_a_deadline(strand_checkpoint);
    return arg;
}

static void *yield_root(void *arg)
{
    loop_under_a_deadline(strand_yield);
    return arg;
}

static void sleep_not_at_all(void)
{
    strand_sleep(0);
}

static void *sleep_root(void *arg)
{
    loop_under_a_deadline(sleep_not_at_all);
    return arg;
}

/* contract 2.5, 4.28 */
TEST_REAL(a_loop_of_yields_sees_its_deadline)
{
    test_run(yield_root, NULL);
}

/* contract 2.5 */
TEST_REAL(a_loop_of_sleeps_of_no_time_sees_its_deadline)
{
    test_run(sleep_root, NULL);
}

/* contract 2.5, 4.28 */
TEST_REAL(a_loop_of_checkpoints_sees_its_deadline)
{
    test_run(checkpoint_root, NULL);
}

/* contract 4.28 */
TEST_REAL(a_loop_of_checkpoints_sees_its_deadline_while_another_thread_is_idle)
{
    strand_options options = test_options();
    test_set_threads(&options, 2);
    strand_run(&options, checkpoint_root, NULL);
}

/* ---- time ----------------------------------------------------------------------------------- */

/* contract 4.25 */
TEST_REAL_INSIDE(a_deadline_does_not_strike_before_its_time)
{
    strand_time when = strand_in(5 * STRAND_MS);
    STRAND_TRY {
        STRAND_DEADLINE(when);
        strand_sleep(FOREVER);
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        CHECK(strand_now().ns >= when.ns);
        test_log("timed-out");
    }
    STRAND_END
    CHECK_LOG("timed-out");
}

TEST(an_instant_too_far_away_is_the_last_one)
{
    CHECK(strand_in(INT64_MAX).ns > strand_now().ns);
    CHECK_EQ(strand_in(INT64_MAX).ns, INT64_MAX);
    CHECK(strand_in(-STRAND_S).ns < strand_now().ns);
}
