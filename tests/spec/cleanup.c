/*
 * Clean-ups run on every way out of their block, once, innermost first, and may block while an exception is in flight.
 */
#define SUITE cleanup
#include "test.h"

/* Stays true; the compiler can't know it. */
static volatile int yes = 1;

/* A clean-up that is the function `run`. */
#define CLEAN_UP(run) int run##_at_exit __attribute__((cleanup(run), unused)) = 0

static _Atomic int started;

/* The child runs fn until it blocks for good, is cancelled then, and has ended at the return. */
static void cancel_once_started(strand_fn *fn, void *arg)
{
    STRAND_SCOPE(scope);
    started = 0;
    strand child = strand_spawn(scope, fn, arg);
    test_yield_until(&started, 1);
    strand_cancel(child, "enough");
    strand_wait(child);
}

static void block_forever(void)
{
    started = 1;
    strand_sleep(FOREVER);
    CHECK_FAIL("a sleep of an hour has ended");
}

typedef void clean_up_fn(int *unused);

static void run_clean_up(clean_up_fn **fn)
{
    (*fn)(NULL);
}

static void *block_with_clean_up(void *fn)
{
    clean_up_fn *at_exit __attribute__((cleanup(run_clean_up), unused)) = *(clean_up_fn **)fn;
    block_forever();
    return fn;
}

/* A strand with this clean-up is cancelled while it blocks, and has ended at the return. */
static void cancel_with_clean_up(clean_up_fn *fn)
{
    cancel_once_started(block_with_clean_up, &fn);
}

/* ---- every way out -------------------------------------------------------------------------- */

/* contract 4.43 */
TEST_INSIDE(falling_off_the_end_of_a_block_runs_its_clean_ups_innermost_first)
{
    {
        TEST_LEAVING("outer");
        TEST_LEAVING("inner");
        test_log("body");
    }
    CHECK_LOG("body inner outer");
}

static NOINLINE int return_early(void)
{
    TEST_LEAVING("outer");
    if (yes) {
        TEST_LEAVING("inner");
        return 1;
    }
    return 2;
}

/* contract 4.43 */
TEST_INSIDE(return_runs_the_clean_ups_of_all_blocks_of_the_function)
{
    CHECK_EQ(return_early(), 1);
    CHECK_LOG("inner outer");
}

/* contract 4.43 */
TEST_INSIDE(break_continue_and_goto_run_the_clean_ups_of_the_blocks_they_leave)
{
    for (int i = 0; i < 3; i++) {
        TEST_LEAVING("each");
        if (i == 0)
            continue;
        if (i == 1)
            break;
    }
    {
        TEST_LEAVING("block");
        if (yes)
            goto out;
    }
    test_log("never");
out:
    CHECK_LOG("each each block");
}

static NOINLINE void three_frames(int depth)
{
    static const char *const names[] = {"zero", "one", "two"};
    TEST_LEAVING(names[depth]);
    if (depth == 2)
        test_throw("hard");
    else
        three_frames(depth + 1);
    __asm__ volatile("");
}

/* V-38, contract 4.43 */
TEST_INSIDE(an_exception_runs_the_clean_ups_of_all_frames_innermost_first)
{
    STRAND_TRY {
        three_frames(0);
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        test_log("caught");
    }
    STRAND_END
    CHECK_LOG("two one zero caught");
}

static void *fail_with_clean_up(void *arg)
{
    TEST_LEAVING("child");
    test_throw("hard");
    return arg;
}

TEST_INSIDE(the_clean_ups_of_a_failed_child_have_run_before_its_join_throws)
{
    STRAND_TRY {
        STRAND_SCOPE(scope);
        strand_join(strand_spawn(scope, fail_with_clean_up, NULL));
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        test_log("joiner");
    }
    STRAND_END
    CHECK_LOG("child joiner");
}

static void *block_with_clean_ups(void *arg)
{
    TEST_LEAVING("outer");
    TEST_LEAVING("inner");
    block_forever();
    return arg;
}

/* V-38 */
TEST_INSIDE(cancelling_a_strand_runs_all_its_clean_ups)
{
    cancel_once_started(block_with_clean_ups, NULL);
    test_log("waited");
    CHECK_LOG("inner outer waited");
}

static void *count_many_clean_ups(void *count)
{
    for (volatile int i = 0; i < 50; i++) {
        STRAND_TRY {
            three_frames(0);
        }
        STRAND_CATCH(&TEST_ERROR, e) {
            ++*(int *)count;
        }
        STRAND_END
    }
    return count;
}

/* contract 4.43 */
TEST_INSIDE(a_clean_up_runs_once_however_often_its_frame_is_thrown_through)
{
    char expected[50 * 13 + 1] = "";
    int count = 0;
    for (int i = 0; i < 50; i++)
        strcat(expected, i ? " two one zero" : "two one zero");
    count_many_clean_ups(&count);
    CHECK_EQ(count, 50);
    CHECK_LOG(expected);
}

/* ---- blocking in clean-ups ------------------------------------------------------------------ */

static void block_a_little(int *unused)
{
    (void)unused;
    strand_yield();
    strand_sleep(10 * STRAND_US);
    strand_checkpoint();
    test_log("blocked");
}

static void *block_in_clean_up_of_a_cancel(void *arg)
{
    TEST_LEAVING("outer");
    CLEAN_UP(block_a_little);
    block_forever();
    return arg;
}

/* contract 4.45 */
TEST_INSIDE(a_clean_up_of_a_cancelled_strand_may_block)
{
    cancel_once_started(block_in_clean_up_of_a_cancel, NULL);
    CHECK_LOG("blocked outer");
}

/* contract 4.45 */
TEST_INSIDE(a_clean_up_of_a_failing_block_may_block)
{
    STRAND_TRY {
        CLEAN_UP(block_a_little);
        test_throw("hard");
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        test_log("caught");
    }
    STRAND_END
    CHECK_LOG("blocked caught");
}

static void *return_seven(void *arg)
{
    strand_yield();
    *(int *)arg = 7;
    return arg;
}

static void spawn_and_join(int *unused)
{
    static int answer;
    (void)unused;
    answer = 0;
    STRAND_SCOPE(scope);
    strand_join(strand_spawn(scope, return_seven, &answer));
    test_log("%d", answer);
}

/* contract 4.45 */
TEST_INSIDE(a_clean_up_of_a_cancelled_strand_may_spawn_and_join)
{
    cancel_with_clean_up(spawn_and_join);
    CHECK_LOG("7");
}

/* contract 9.2 */
TEST_INSIDE(a_scope_that_is_left_normally_in_a_clean_up_does_not_disturb_the_exception_in_flight)
{
    STRAND_TRY {
        CLEAN_UP(spawn_and_join);
        test_throw("hard");
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        CHECK_PTR(strand_exception_suppressed(e, 0), NULL);
        test_log("caught");
    }
    STRAND_END
    CHECK_LOG("7 caught");
}

static void try_to_yield(int *unused)
{
    (void)unused;
    STRAND_TRY {
        strand_yield();
        test_log("yielded");
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        test_log("interrupted");
    }
    STRAND_END
    strand_yield();
    test_log("shielded");
}

/* contract 4.46 */
TEST_INSIDE(a_try_block_in_a_clean_up_that_catches_interruptions_is_not_shielded_and_what_follows_it_is)
{
    cancel_with_clean_up(try_to_yield);
    CHECK_LOG("interrupted shielded");
}

static void *yield_and_log(void *arg)
{
    strand_yield();
    test_log("yielded");
    return arg;
}

static void try_with_and_without_a_shield(int *unused)
{
    (void)unused;
    strand_exception *e = strand_try(yield_and_log, NULL, NULL);
    test_log("%s", strand_exception_kind(e)->name);
    strand_exception_release(e);
    STRAND_SHIELD;
    CHECK_PTR(strand_try(yield_and_log, NULL, NULL), NULL);
}

TEST_INSIDE(strand_try_in_a_clean_up_takes_interruptions_unless_a_shield_is_around_it)
{
    cancel_with_clean_up(try_with_and_without_a_shield);
    CHECK_LOG("interrupted yielded");
}

/* Blocks and logs, and catches errors only. */
static void say_goodbye(int *unused)
{
    (void)unused;
    STRAND_TRY {
        block_a_little(NULL);
        test_throw("hard");
    }
    STRAND_CATCH(&STRAND_ERROR, e) {
        test_log("%s", strand_exception_text(e));
    }
    STRAND_END
    strand_yield();
    test_log("shielded");
}

/* contract 4.46 */
TEST_INSIDE(a_try_block_in_a_clean_up_that_catches_no_interruption_is_shielded)
{
    cancel_with_clean_up(say_goodbye);
    CHECK_LOG("blocked hard shielded");
}

static void goodbye_without_a_catch_block(int *unused)
{
    STRAND_TRY {
        block_a_little(unused);
    }
    STRAND_END
}

TEST_INSIDE(a_try_block_in_a_clean_up_without_a_catch_block_is_shielded)
{
    cancel_with_clean_up(goodbye_without_a_catch_block);
    CHECK_LOG("blocked");
}

/* An inner try block that may be interrupted, in one that may not; the other way round. */
static void nest_try_blocks(int *unused)
{
    STRAND_TRY {
        try_to_yield(unused);
    }
    STRAND_CATCH(&STRAND_ERROR, e) {
        test_log("error");
    }
    STRAND_END
    STRAND_TRY {
        say_goodbye(unused);
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        test_log("error");
    }
    STRAND_CATCH(&STRAND_ANY, e) {
        test_log("any");
    }
    STRAND_END
}

TEST_INSIDE(a_nested_try_block_that_catches_interruptions_lifts_the_shield_for_its_block)
{
    cancel_with_clean_up(nest_try_blocks);
    CHECK_LOG("interrupted shielded any");
}

/* What is opened inside of the try block interrupts: a scope whose child fails, and a deadline. */
static void open_blocks_in_a_try(int *unused)
{
    (void)unused;
    STRAND_TRY {
        STRAND_SCOPE(scope);
        strand_spawn(scope, test_throw, "hard");
        strand_sleep(FOREVER);
    }
    STRAND_CATCH(&STRAND_ERROR, e) {
        test_log("%s", strand_exception_text(e));
    }
    STRAND_END
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(STRAND_MS));
        strand_sleep(FOREVER);
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        test_log("timed-out");
    }
    STRAND_END
}

TEST_INSIDE(a_scope_and_a_deadline_in_a_shielded_try_block_of_a_clean_up_count)
{
    cancel_with_clean_up(open_blocks_in_a_try);
    CHECK_LOG("hard timed-out");
}

/* The strand returns normally, and is cancelled before. */
static void *say_goodbye_on_a_normal_way_out(void *arg)
{
    STRAND_TRY {
        block_forever();
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        test_log("first");
    }
    STRAND_END
    CLEAN_UP(say_goodbye);
    return arg;
}

TEST_INSIDE(a_try_block_in_a_clean_up_on_a_normal_way_out_is_not_shielded)
{
    cancel_once_started(say_goodbye_on_a_normal_way_out, NULL);
    CHECK_LOG("first");
}

static void shield_a_try(int *unused)
{
    (void)unused;
    STRAND_SHIELD;
    STRAND_TRY {
        strand_yield();
        test_log("yielded");
    }
    STRAND_CATCH(&STRAND_ANY, e) {
        test_log("interrupted");
    }
    STRAND_END
}

TEST_INSIDE(a_try_block_under_a_shield_in_a_clean_up_is_shielded)
{
    cancel_with_clean_up(shield_a_try);
    CHECK_LOG("yielded");
}

static void sleep_under_a_deadline(int *unused)
{
    (void)unused;
    STRAND_SHIELD;
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(STRAND_MS));
        strand_sleep(FOREVER);
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        test_log("timed-out");
    }
    STRAND_END
}

/* contract 4.45 */
TEST_INSIDE(a_deadline_opened_in_a_clean_up_of_a_cancelled_strand_counts)
{
    cancel_with_clean_up(sleep_under_a_deadline);
    CHECK_LOG("timed-out");
}

static void *throw_with_deadline_in_clean_up(void *arg)
{
    CLEAN_UP(sleep_under_a_deadline);
    test_throw("hard");
    return arg;
}

/* contract 4.45 */
TEST_INSIDE(a_deadline_opened_in_a_clean_up_of_a_failing_block_counts)
{
    CHECK_THROWS(throw_with_deadline_in_clean_up, NULL, &TEST_ERROR);
    CHECK_LOG("timed-out");
}

static void *sleep_past_a_deadline(void *arg)
{
    CLEAN_UP(block_a_little);
    STRAND_DEADLINE(strand_in(STRAND_MS));
    strand_sleep(FOREVER);
    return arg;
}

TEST_INSIDE(a_clean_up_after_a_deadline_has_struck_may_block)
{
    CHECK_THROWS(sleep_past_a_deadline, NULL, &STRAND_TIMED_OUT);
    CHECK_LOG("blocked");
}

/* Cancelled already, but on its way out by a return. */
static void *return_normally_though_cancelled(void *arg)
{
    STRAND_TRY {
        block_forever();
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        test_log("first");
    }
    STRAND_END
    STRAND_TRY {
        CLEAN_UP(block_a_little);
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        test_log("second");
    }
    STRAND_END
    return arg;
}

/* contract 4.46 */
TEST_INSIDE(a_clean_up_on_a_normal_way_out_is_not_shielded)
{
    cancel_once_started(return_normally_though_cancelled, NULL);
    CHECK_LOG("first second");
}

static void *yield_after_a_catch(void *arg)
{
    STRAND_TRY {
        CLEAN_UP(block_a_little);
        block_forever();
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        test_log("caught");
    }
    STRAND_END
    strand_yield();
    test_log("never");
    return arg;
}

/* contract 4.46 */
TEST_INSIDE(the_shield_of_unwinding_ends_with_the_catch)
{
    cancel_once_started(yield_after_a_catch, NULL);
    CHECK_LOG("blocked caught");
}

static _Atomic int in_clean_up;

static void wait_for_the_second_cancel(int *unused)
{
    (void)unused;
    in_clean_up = 1;
    test_yield_until(&in_clean_up, 2);
    strand_yield();
    test_log("unharmed");
}

/* contract 4.45 */
TEST_INSIDE(a_second_cancel_does_not_reach_a_clean_up_that_runs)
{
    clean_up_fn *clean_up = wait_for_the_second_cancel;
    STRAND_SCOPE(scope);
    started = in_clean_up = 0;
    strand child = strand_spawn(scope, block_with_clean_up, &clean_up);
    test_yield_until(&started, 1);
    strand_cancel(child, "first");
    test_yield_until(&in_clean_up, 1);
    strand_cancel(child, "second");
    in_clean_up = 2;
    strand_wait(child);
    CHECK_LOG("unharmed");
}

/* ---- clean-ups that fail -------------------------------------------------------------------- */

static void catch_own_failure(int *unused)
{
    (void)unused;
    strand_exception *e = strand_try(test_throw, NULL, NULL);
    CHECK(e != NULL);
    strand_exception_release(e);
    test_log("dealt-with");
}

TEST_INSIDE(a_clean_up_that_catches_its_own_failure_goes_on_unwinding)
{
    cancel_with_clean_up(catch_own_failure);
    CHECK_LOG("dealt-with");
}

/* The program of tests/programs that fails in a clean-up; arg says on what way out. */
static void run_failing_clean_up(struct test_output *o, const char *way)
{
    test_program(o, "cleanup_throws", way);
    CHECK(o->signalled || o->status != 0);
    CHECK(strstr(o->out, "still alive") == NULL);
}

/* contract 4.48 */
TEST_PROGRAM(a_clean_up_that_throws_while_unwinding_ends_the_program_with_both_messages)
{
    static struct test_output o;
    run_failing_clean_up(&o, "unwinding");
    CHECK_CONTAINS(o.err, "first failure");
    CHECK_CONTAINS(o.err, "second failure");
}

/* contract 4.48 */
TEST_PROGRAM(a_clean_up_that_throws_while_unwinding_ends_the_program_with_both_traces)
{
    static struct test_output o;
    run_failing_clean_up(&o, "unwinding");
    CHECK_CONTAINS(o.err, "throw_first");
    CHECK_CONTAINS(o.err, "throw_second");
}

#if !TEST_ASAN /* which brings a C++ runtime along: some handler of C++ might catch it */
/* contract 4.48 */
TEST_PROGRAM(a_throw_that_would_leave_a_clean_up_is_known_before_anything_unwinds)
{
    static struct test_output o;
    run_failing_clean_up(&o, "unwinding");
    CHECK_CONTAINS(o.out, "clean-up begins");
    CHECK(strstr(o.out, "inner frame of the clean-up left") == NULL);
}
#endif

TEST_PROGRAM(with_a_cxx_runtime_too_a_throw_that_leaves_a_clean_up_ends_the_program_with_both_traces)
{
    static struct test_output o;
    run_failing_clean_up(&o, "cxx");
    CHECK_CONTAINS(o.err, "would leave a clean-up");
    CHECK_CONTAINS(o.err, "throw_first");
    CHECK_CONTAINS(o.err, "throw_second");
    run_failing_clean_up(&o, "cxx-try");
    CHECK_CONTAINS(o.err, "would leave a clean-up");
}

/* contract 4.48 */
TEST_PROGRAM(a_deadline_that_would_leave_a_clean_up_ends_the_program)
{
    static struct test_output o;
    run_failing_clean_up(&o, "deadline");
    CHECK_CONTAINS(o.err, "first failure");
}
