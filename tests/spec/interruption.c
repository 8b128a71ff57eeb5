/*
 * Every interruptible operation of an interrupted strand throws, again and again; if several sources hold, the
 * outermost counts.
 */
#define SUITE interruption
#include "test.h"

#include "strand/io.h"
#include "strand/pool.h"

static _Atomic int started;

/* ---- every operation ------------------------------------------------------------------------ */

static void *checkpoint(void *arg)
{
    strand_checkpoint();
    return arg;
}

static void *sleep_no_time(void *arg)
{
    strand_sleep(0);
    return arg;
}

static void *sleep_until_the_past(void *arg)
{
    strand_sleep_until(LONG_PAST);
    return arg;
}

static void *operate_on_time(void *arg)
{
    test_try_operation(test_yield, arg);
    test_try_operation(checkpoint, arg);
    test_try_operation(sleep_no_time, arg);
    test_try_operation(sleep_until_the_past, arg);
    test_try_operation(test_sleep, arg);
    return arg;
}

/* V-30, contract 1.7, 4.18 */
TEST_INSIDE(a_cancelled_strand_is_cut_at_yields_checkpoints_and_sleeps_of_any_length)
{
    test_run_cancelled(operate_on_time, NULL);
    CHECK_LOG("cut cut cut cut cut");
}

static void *operate_on_an_ended_child(void *arg)
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, test_return, arg);
    {
        STRAND_SHIELD;
        strand_wait(child);
    }
    test_try_operation(test_join, &child);
    test_try_operation(test_wait, &child);
    test_try_operation(test_join_scope, &scope);
    STRAND_SHIELD;
    CHECK_PTR(strand_join(child), arg);
    return arg;
}

/* V-30, contract 4.18 */
TEST_INSIDE(a_cancelled_strand_is_cut_at_a_join_that_could_return_at_once_and_nothing_is_lost)
{
    test_run_cancelled(operate_on_an_ended_child, &started);
    CHECK_LOG("cut cut cut");
}

static void *take_first(void *scope)
{
    return strand_scope_join_first(*(strand_scope *)scope, NULL);
}

static void *take_next(void *scope)
{
    strand_scope_wait_next(*(strand_scope *)scope);
    return NULL;
}

static void *operate_on_policies(void *arg)
{
    STRAND_SCOPE_WITH(first, STRAND_FIRST_WINS);
    STRAND_SCOPE_WITH(collect, STRAND_COLLECT);
    strand_spawn(first, test_return, arg);
    strand_spawn(collect, test_return, arg);
    test_try_operation(take_first, &first);
    test_try_operation(take_next, &first);
    test_try_operation(take_next, &collect);
    strand_scope_cancel(first, NULL);
    strand_scope_cancel(collect, NULL);
    return arg;
}

/* V-30, contract 1.7, 5.2 */
TEST_INSIDE(a_cancelled_strand_is_cut_at_waiting_for_any_child)
{
    test_run_cancelled(operate_on_policies, NULL);
    CHECK_LOG("cut cut cut");
}

static void *offload(void *arg)
{
    strand_offload(test_return, arg);
    return arg;
}

static void *operate_on_offload(void *arg)
{
    test_try_operation(offload, arg);
    return arg;
}

/* V-30, contract 1.7 */
TEST_INSIDE(a_cancelled_strand_is_cut_at_an_offload)
{
    test_run_cancelled(operate_on_offload, NULL);
    CHECK_LOG("cut");
}

static void *use_what_does_not_block(void *arg)
{
    STRAND_SCOPE_WITH(scope, STRAND_COLLECT);
    strand child = strand_spawn(scope, test_return, arg);
    strand_ended(child);
    CHECK_PTR(strand_scope_failure(scope, NULL), NULL);
    CHECK_EQ(strand_scope_count(scope), 1);
    CHECK(strand_id(strand_self()) != 0);
    strand_cancel(child, NULL);
    strand_scope_cancel(scope, NULL);
    test_log("through");
    return arg;
}

/* contract 4.21 */
TEST_INSIDE(operations_that_do_not_block_are_never_interrupted)
{
    test_run_cancelled(use_what_does_not_block, NULL);
    CHECK_LOG("through");
}

static void *hand_off_when_cancelled(void *open)
{
    STRAND_SCOPE(mine);
    strand child = strand_spawn(mine, test_return, &started);
    CHECK_EQ(strand_hand_off(child, *(strand_scope *)open), 0);
    test_log("handed");
    return open;
}

/* contract 4.22 */
TEST_INSIDE(giving_back_is_never_interrupted)
{
    STRAND_SCOPE_OPEN(open);
    test_run_cancelled(hand_off_when_cancelled, &open);
    strand_scope_join(open);
    CHECK_LOG("handed");
}

/* Leaves two scopes whose children take their time to end. */
static void *end_slowly(void *arg)
{
    STRAND_SHIELD;
    for (int i = 0; i < 3; i++)
        strand_yield();
    ++*(_Atomic int *)arg;
    return arg;
}

static void *leave_scopes_when_cancelled(void *arg)
{
    STRAND_SCOPE(outer);
    strand_spawn(outer, end_slowly, arg);
    STRAND_SCOPE(inner);
    strand_spawn(inner, end_slowly, arg);
    strand_checkpoint();
    return arg;
}

/* contract 4.36 */
TEST_INSIDE(an_interrupted_owner_waits_for_all_its_children)
{
    _Atomic int ended = 0;
    test_run_cancelled(leave_scopes_when_cancelled, &ended);
    CHECK_EQ(ended, 2);
}

static void *compute_only(void *arg)
{
    started = 1;
    while (started != 2)
        __asm__ volatile("");
    test_log("undisturbed");
    return arg;
}

static void *cancel_a_computation(void *arg)
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, compute_only, arg);
    test_yield_until(&started, 1);
    strand_cancel(child, NULL);
    started = 2;
    CHECK_PTR(strand_join(child), arg);
    return arg;
}

/* V-37, contract 4.70 */
TEST_REAL(code_that_does_nothing_interruptible_is_not_stopped)
{
    strand_options options = test_options();
    test_set_threads(&options, 2);
    strand_run(&options, cancel_a_computation, &started);
    CHECK_LOG("undisturbed");
}

/* ---- lasting, and not an error -------------------------------------------------------------- */

static void *try_again_and_again(void *arg)
{
    for (int i = 0; i < 3; i++)
        test_try_operation(test_sleep, arg);
    strand_checkpoint();
    test_log("never");
    return arg;
}

/* V-31, contract 4.18 */
TEST_INSIDE(catching_an_interruption_does_not_end_it)
{
    test_run_cancelled(try_again_and_again, NULL);
    CHECK_LOG("cut cut cut");
}

static void *retry_all_errors(void *arg)
{
    for (volatile int i = 0; i < 3; i++) {
        STRAND_TRY {
            started = 1;
            strand_sleep(FOREVER);
        }
        STRAND_CATCH(&STRAND_ERROR, e) {
            test_log("swallowed");
        }
        STRAND_END
    }
    return arg;
}

/* V-31, contract 4.24 */
TEST_INSIDE(catching_all_errors_lets_an_interruption_pass)
{
    STRAND_SCOPE(scope);
    started = 0;
    strand child = strand_spawn(scope, retry_all_errors, NULL);
    test_yield_until(&started, 1);
    strand_cancel(child, NULL);
    CHECK(test_join_interrupted(child));
    CHECK_LOG("");
}

/* V-30, contract 4.18 */
TEST_INSIDE(an_operation_that_is_blocked_already_is_interrupted_too)
{
    struct test_child blocked = {0};
    STRAND_SCOPE(scope);
    strand child = test_spawn_started(scope, test_child_blocks, &blocked);
    for (int i = 0; i < 10; i++)
        strand_yield();
    strand_cancel(child, NULL);
    strand_wait(child);
    CHECK(strand_ended(child));
}

static void *return_though_cancelled(void *arg)
{
    test_try_operation(test_sleep, NULL);
    return arg;
}

TEST_INSIDE(a_cancelled_strand_that_returns_a_value_is_joined_for_its_value)
{
    int x = 0;
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, return_though_cancelled, &x);
    strand_cancel(child, NULL);
    CHECK_PTR(strand_join(child), &x);
    CHECK_LOG("cut");
}

/* ---- who and why ---------------------------------------------------------------------------- */

static void *log_who_and_why(void *arg)
{
    STRAND_TRY {
        strand_sleep(FOREVER);
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        test_log("%s", strand_exception_who(e));
        test_log("%s", strand_exception_why(e));
    }
    STRAND_END
    return arg;
}

/* Q-08, contract 4.14 */
TEST_INSIDE(an_interruption_has_the_strand_and_reason_of_the_cancel)
{
    test_run_cancelled(log_who_and_why, NULL);
    CHECK_LOG("root because");
}

static void *count_why(void *length)
{
    STRAND_TRY {
        strand_sleep(FOREVER);
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        *(size_t *)length = strlen(strand_exception_why(e));
    }
    STRAND_END
    return length;
}

/* contract 4.14 */
TEST_INSIDE(the_reason_of_a_cancel_is_copied_up_to_128_bytes)
{
    char why[201] = "";
    size_t length = 0;
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, count_why, &length);
    memset(why, 'y', 200);
    strand_cancel(child, why);
    memset(why, 'n', 200);
    strand_join(child);
    CHECK_EQ(length, 128);
}

TEST_INSIDE(a_cancel_without_a_reason_gives_an_empty_one)
{
    size_t length = 7;
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, count_why, &length);
    strand_cancel(child, NULL);
    strand_join(child);
    CHECK_EQ(length, 0);
}

/* contract 4.14 */
TEST_INSIDE(the_first_of_two_cancels_is_reported)
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, log_who_and_why, NULL);
    strand_cancel(child, "first");
    strand_cancel(child, "second");
    strand_join(child);
    CHECK_LOG("root first");
}

/* ---- several sources ------------------------------------------------------------------------ */

/* Cancelled, and under a deadline that has passed: the cancel is further out. */
static void *time_out_when_cancelled(void *arg)
{
    STRAND_TRY {
        STRAND_DEADLINE(LONG_PAST);
        strand_sleep(FOREVER);
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        test_log("timed-out");
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        test_log("%s", strand_exception_why(e));
    }
    STRAND_END
    return arg;
}

/* contract 4.19 */
TEST_INSIDE(a_cancel_counts_before_a_deadline)
{
    test_run_cancelled(time_out_when_cancelled, NULL);
    CHECK_LOG("because");
}

static void *fail_when_cancelled(void *arg)
{
    strand child;
    STRAND_TRY {
        STRAND_SCOPE(scope);
        test_spawn_failed(scope, &child, 1);
        strand_checkpoint();
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        test_log("failure");
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        test_log("cancel");
        CHECK_PTR(strand_exception_kind(strand_exception_suppressed(e, 0)), &TEST_ERROR);
    }
    STRAND_END
    return arg;
}

/* contract 4.19 */
TEST_INSIDE(a_cancel_counts_before_a_failed_child_whose_exception_is_suppressed_in_it)
{
    test_run_cancelled(fail_when_cancelled, NULL);
    CHECK_LOG("cancel");
}

static void fail_in_a_scope(void)
{
    strand child;
    STRAND_SCOPE(scope);
    test_spawn_failed(scope, &child, 1);
    strand_checkpoint();
}

/* contract 4.19 */
TEST_INSIDE(a_deadline_around_a_scope_counts_before_a_failed_child)
{
    STRAND_TRY {
        STRAND_DEADLINE(LONG_PAST);
        fail_in_a_scope();
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        test_log("timed-out");
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        test_log("failure");
    }
    STRAND_END
    CHECK_LOG("timed-out");
}

static void time_out_in_a_scope(void)
{
    strand child;
    STRAND_SCOPE(scope);
    test_spawn_failed(scope, &child, 1);
    STRAND_TRY {
        STRAND_DEADLINE(LONG_PAST);
        strand_checkpoint();
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        test_log("timed-out");
    }
    STRAND_END
}

/* contract 4.19 */
TEST_INSIDE(a_failed_child_counts_before_a_deadline_inside_its_scope)
{
    STRAND_TRY {
        time_out_in_a_scope();
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        test_log("failure");
    }
    STRAND_END
    CHECK_LOG("failure");
}

TEST_INSIDE(a_source_ends_with_its_block)
{
    STRAND_TRY {
        STRAND_DEADLINE(LONG_PAST);
        test_try_operation(checkpoint, NULL);
        strand_yield();
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        test_log("timed-out");
    }
    STRAND_END
    test_try_operation(checkpoint, NULL);
    CHECK_LOG("cut timed-out ok");
}

/* ---- who goes on all the same ------------------------------------------------------------------------------- */

static _Atomic int enough;

static void *say_enough(void *arg)
{
    enough = 1;
    return arg;
}

static void *try_with_no_time(void *arg)
{
    while (!enough) {
        STRAND_TRY {
            STRAND_DEADLINE(strand_in(-1));
            strand_checkpoint();
        }
        STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        }
        STRAND_END
    }
    return arg;
}

TEST_REAL_INSIDE(a_strand_that_catches_interruptions_and_tries_again_lets_others_run)
{
    STRAND_SCOPE(scope);
    enough = 0;
    int threads = test_threads();
    for (int i = 0; i < threads; i++)
        strand_spawn(scope, try_with_no_time, NULL);
    strand_spawn(scope, say_enough, NULL);
    strand_scope_join(scope);
    CHECK_EQ(enough, 1);
}

/* ---- interruptions that are swallowed ------------------------------------------------------- */

enum { REQUESTS = 12000 };
static _Atomic int warnings;

static void count_warnings(const char *message, void *arg)
{
    (void)arg;
    if (strstr(message, "has caught its interruption"))
        warnings++;
}

static void *serve_requests_that_come_too_late(void *arg)
{
    for (volatile int i = 0; i < REQUESTS; i++) {
        STRAND_TRY {
            STRAND_DEADLINE(LONG_PAST);
            strand_checkpoint();
        }
        STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        }
        STRAND_END
    }
    return arg;
}

static void *swallow_one_deadline(void *arg)
{
    STRAND_DEADLINE(LONG_PAST);
    for (volatile int i = 0; i < REQUESTS; i++) {
        STRAND_TRY {
            strand_checkpoint();
        }
        STRAND_CATCH(&STRAND_ANY, e) {
        }
        STRAND_END
    }
    return arg;
}

static int warnings_of(strand_fn *root)
{
    strand_options options = test_options();
    options.on_log = count_warnings;
    options.threads = 1; /* each thread counts by itself */
    warnings = 0;
    strand_run(&options, root, NULL);
    return warnings;
}

TEST_REAL(a_strand_that_catches_the_same_interruption_again_and_again_is_named_in_the_log)
{
    CHECK_EQ(warnings_of(swallow_one_deadline), 1);
}

TEST_REAL(a_strand_that_catches_many_deadlines_once_each_is_not_named_in_the_log)
{
    CHECK_EQ(warnings_of(serve_requests_that_come_too_late), 0);
}
