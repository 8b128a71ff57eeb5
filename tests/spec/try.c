/*
 * STRAND_TRY and strand_try: which block runs, in which order clean-ups run, and how blocks are left.
 */
#define SUITE try_block
#include "test.h"

static const strand_kind FRUIT = STRAND_KIND("fruit", &STRAND_ERROR);
static const strand_kind APPLE = STRAND_KIND("apple", &FRUIT);
static const strand_kind STONE = STRAND_KIND("stone", &STRAND_ERROR);

/* Stays true; the compiler can't know it. */
static volatile int yes = 1;

static NOINLINE void throw_apple(void)
{
    TEST_LEAVING("deep");
    if (yes)
        strand_throw(&APPLE, "worm");
}

static NOINLINE void throw_stone(void)
{
    if (yes)
        strand_throw(&STONE, "hard");
}

static NOINLINE void throw_through_frames(int frames)
{
    TEST_LEAVING("f");
    if (frames == 0)
        throw_stone();
    else
        throw_through_frames(frames - 1);
    __asm__ volatile("");
}

/* ---- which block runs ---------------------------------------------------------------------- */

TEST_INSIDE(no_catch_block_runs_when_nothing_is_thrown)
{
    STRAND_TRY {
        TEST_LEAVING("left");
        test_log("body");
    }
    STRAND_CATCH(&STRAND_ANY, e) {
        test_log("catch");
    }
    STRAND_END
    test_log("after");
    CHECK_LOG("body left after");
}

TEST_INSIDE(a_catch_block_of_the_kind_runs_after_the_clean_ups_inside)
{
    STRAND_TRY {
        TEST_LEAVING("in");
        throw_apple();
        test_log("never");
    }
    STRAND_CATCH(&APPLE, e) {
        test_log("%s", strand_exception_text(e));
    }
    STRAND_END
    test_log("after");
    CHECK_LOG("deep in worm after");
}

/* contract 4.52 */
TEST_INSIDE(a_catch_block_takes_the_kinds_below_its_own)
{
    STRAND_TRY {
        throw_apple();
    }
    STRAND_CATCH(&FRUIT, e) {
        CHECK_KIND(e, &APPLE);
        test_log("fruit");
    }
    STRAND_END
    CHECK_LOG("deep fruit");
}

/* contract 4.52 */
TEST_INSIDE(only_the_first_matching_catch_block_runs)
{
    STRAND_TRY {
        throw_apple();
    }
    STRAND_CATCH(&STONE, e) {
        test_log("stone");
    }
    STRAND_CATCH(&STRAND_ERROR, e) {
        test_log("error");
    }
    STRAND_CATCH(&APPLE, e) {
        test_log("apple");
    }
    STRAND_END
    CHECK_LOG("deep error");
}

TEST_INSIDE(the_outer_try_never_sees_what_the_inner_one_catches)
{
    STRAND_TRY {
        TEST_LEAVING("in1");
        STRAND_TRY {
            TEST_LEAVING("in2");
            throw_apple();
        }
        STRAND_CATCH(&STRAND_ERROR, e) {
            test_log("inner");
        }
        STRAND_END
        test_log("between");
    }
    STRAND_CATCH(&STRAND_ANY, e) {
        test_log("outer");
    }
    STRAND_END
    CHECK_LOG("deep in2 inner between in1");
}

/* contract 4.52 */
TEST_INSIDE(a_kind_that_the_inner_try_does_not_name_goes_on_to_the_outer)
{
    STRAND_TRY {
        TEST_LEAVING("in1");
        STRAND_TRY {
            TEST_LEAVING("in2");
            throw_stone();
        }
        STRAND_CATCH(&FRUIT, e) {
            test_log("inner");
        }
        STRAND_END
        test_log("between");
    }
    STRAND_CATCH(&STONE, e) {
        test_log("outer");
    }
    STRAND_END
    CHECK_LOG("in2 in1 outer");
}

static NOINLINE void catch_fruit_only(void)
{
    TEST_LEAVING("frame");
    STRAND_TRY {
        TEST_LEAVING("in");
        throw_stone();
    }
    STRAND_CATCH(&FRUIT, e) {
        test_log("wrong");
    }
    STRAND_END
    test_log("never");
}

/* contract 4.52 */
TEST_INSIDE(an_exception_that_no_block_takes_leaves_the_function_of_the_try)
{
    STRAND_TRY {
        catch_fruit_only();
    }
    STRAND_CATCH(&STONE, e) {
        test_log("caller");
    }
    STRAND_END
    CHECK_LOG("in frame caller");
}

/* contract 9.1 */
TEST_INSIDE(clean_ups_around_a_try_block_run_once_and_those_inside_run_once)
{
    TEST_LEAVING("before");
    STRAND_TRY {
        TEST_LEAVING("first");
        TEST_LEAVING("second");
        throw_stone();
    }
    STRAND_CATCH(&STONE, e) {
        TEST_LEAVING("in_catch");
    }
    STRAND_END
    CHECK_LOG("second first in_catch");
}

/* ---- throwing in a catch block -------------------------------------------------------------- */

/* contract 4.53 */
TEST_INSIDE(a_try_block_does_not_catch_an_exception_of_its_own_catch_block)
{
    STRAND_TRY {
        STRAND_TRY {
            throw_apple();
        }
        STRAND_CATCH(&APPLE, e) {
            TEST_LEAVING("in_catch");
            throw_stone();
        }
        STRAND_CATCH(&STRAND_ANY, e) {
            test_log("wrong");
        }
        STRAND_END
        test_log("never");
    }
    STRAND_CATCH(&STONE, e) {
        test_log("outer");
    }
    STRAND_END
    CHECK_LOG("deep in_catch outer");
}

TEST_INSIDE(the_exception_that_a_catch_block_pushes_aside_is_suppressed_in_the_new_one)
{
    STRAND_TRY {
        STRAND_TRY {
            throw_apple();
        }
        STRAND_CATCH(&APPLE, e) {
            throw_stone();
        }
        STRAND_END
    }
    STRAND_CATCH(&STONE, e) {
        const strand_exception *aside = strand_exception_suppressed(e, 0);
        CHECK(aside != NULL);
        CHECK_STR(strand_exception_text(aside), "worm");
        CHECK_PTR(strand_exception_suppressed(e, 1), NULL);
        test_log("seen");
    }
    STRAND_END
    CHECK_LOG("deep seen");
}

/* contract 4.53 */
TEST_INSIDE(a_catch_block_that_rethrows_passes_the_same_exception_on)
{
    strand_exception *volatile first = NULL;
    STRAND_TRY {
        STRAND_TRY {
            throw_stone();
        }
        STRAND_CATCH(&STRAND_ERROR, e) {
            first = e;
            strand_rethrow(strand_exception_keep(e));
        }
        STRAND_END
    }
    STRAND_CATCH(&STRAND_ANY, e) {
        CHECK_PTR(e, first);
        CHECK_KIND(e, &STONE);
        CHECK_PTR(strand_exception_suppressed(e, 0), NULL);
        test_log("again");
    }
    STRAND_END
    CHECK_LOG("again");
}

TEST_INSIDE(a_try_inside_a_catch_block_works_like_any_other)
{
    STRAND_TRY {
        throw_stone();
    }
    STRAND_CATCH(&STONE, outer) {
        STRAND_TRY {
            throw_apple();
        }
        STRAND_CATCH(&APPLE, inner) {
            test_log("%s", strand_exception_text(inner));
        }
        STRAND_END
        test_log("%s", strand_exception_text(outer));
    }
    STRAND_END
    CHECK_LOG("deep worm hard");
}

/* ---- leaving the blocks by other ways ------------------------------------------------------- */

static NOINLINE int return_from_try(void)
{
    TEST_LEAVING("out");
    STRAND_TRY {
        TEST_LEAVING("in");
        if (yes)
            return 1;
    }
    STRAND_CATCH(&STRAND_ANY, e) {
        test_log("catch");
    }
    STRAND_END
    return 2;
}

TEST_INSIDE(return_leaves_a_try_block)
{
    CHECK_EQ(return_from_try(), 1);
    CHECK_LOG("in out");
}

static NOINLINE int return_from_catch(void)
{
    TEST_LEAVING("out");
    STRAND_TRY {
        throw_stone();
    }
    STRAND_CATCH(&STONE, e) {
        TEST_LEAVING("in");
        if (yes)
            return 1;
    }
    STRAND_END
    return 2;
}

/* contract 4.53 */
TEST_INSIDE(return_leaves_a_catch_block)
{
    CHECK_EQ(return_from_catch(), 1);
    CHECK_LOG("in out");
}

TEST_INSIDE(after_a_return_out_of_a_try_block_its_catch_blocks_are_gone)
{
    STRAND_TRY {
        return_from_try();
        throw_stone();
    }
    STRAND_CATCH(&STONE, e) {
        test_log("mine");
    }
    STRAND_END
    CHECK_LOG("in out mine");
}

TEST_INSIDE(goto_leaves_a_try_block)
{
    STRAND_TRY {
        TEST_LEAVING("in");
        if (yes)
            goto out;
    }
    STRAND_CATCH(&STRAND_ANY, e) {
        test_log("catch");
    }
    STRAND_END
    test_log("never");
out:
    CHECK_LOG("in");
}

/* contract 4.53 */
TEST_INSIDE(goto_leaves_a_catch_block)
{
    STRAND_TRY {
        throw_stone();
    }
    STRAND_CATCH(&STONE, e) {
        TEST_LEAVING("in");
        if (yes)
            goto out;
    }
    STRAND_END
    test_log("never");
out:
    CHECK_LOG("in");
}

TEST_INSIDE(continue_in_a_try_block_goes_on_with_the_loop_around_it)
{
    for (volatile int i = 0; i < 3; i++) {
        STRAND_TRY {
            TEST_LEAVING("in");
            if (i < 2)
                continue;
            test_log("last");
        }
        STRAND_CATCH(&STRAND_ANY, e) {
            test_log("catch");
        }
        STRAND_END
        test_log("tail");
    }
    CHECK_LOG("in in last in tail");
}

/* contract 4.53 */
TEST_INSIDE(continue_in_a_catch_block_goes_on_with_the_loop_around_it)
{
    for (volatile int i = 0; i < 2; i++) {
        STRAND_TRY {
            throw_stone();
        }
        STRAND_CATCH(&STONE, e) {
            test_log("catch");
            continue;
        }
        STRAND_END
        test_log("tail");
    }
    CHECK_LOG("catch catch");
}

TEST_INSIDE(break_in_a_try_block_ends_a_retry_loop)
{
    for (volatile int n = 1;; n++) {
        STRAND_TRY {
            if (n < 3)
                throw_stone();
            test_log("ok");
            break;
        }
        STRAND_CATCH(&STRAND_ERROR, e) {
            test_log("retry");
        }
        STRAND_END
        CHECK(n < 3);
    }
    CHECK_LOG("retry retry ok");
}

/* contract 4.53 */
TEST_INSIDE(break_in_a_catch_block_ends_the_loop_around_it)
{
    for (volatile int i = 0; i < 3; i++) {
        STRAND_TRY {
            throw_stone();
        }
        STRAND_CATCH(&STONE, e) {
            test_log("catch");
            break;
        }
        STRAND_END
        test_log("tail");
    }
    CHECK_LOG("catch");
}

/* ---- tries in clean-ups --------------------------------------------------------------------- */

static void catch_in_clean_up(int *unused)
{
    (void)unused;
    STRAND_TRY {
        throw_apple();
    }
    STRAND_CATCH(&STRAND_ANY, e) {
        test_log("%s", strand_exception_text(e));
    }
    STRAND_END
}

/* contract 9.2 */
TEST_INSIDE(a_try_in_a_clean_up_leaves_the_exception_in_flight_alone)
{
    STRAND_TRY {
        int x __attribute__((cleanup(catch_in_clean_up), unused)) = 0;
        throw_stone();
    }
    STRAND_CATCH(&STRAND_ERROR, e) {
        test_log("%s", strand_exception_text(e));
        CHECK_PTR(strand_exception_suppressed(e, 0), NULL);
    }
    STRAND_END
    CHECK_LOG("deep worm hard");
}

static void return_in_clean_up(int *leave)
{
    STRAND_TRY {
        TEST_LEAVING("in");
        if (*leave)
            return;
    }
    STRAND_CATCH(&STRAND_ANY, e) {
        test_log("wrong");
    }
    STRAND_END
    test_log("never");
}

/* contract 9.2 */
TEST_INSIDE(a_return_out_of_a_try_in_a_clean_up_leaves_the_exception_in_flight_alone)
{
    STRAND_TRY {
        int leave __attribute__((cleanup(return_in_clean_up), unused)) = 1;
        throw_stone();
    }
    STRAND_CATCH(&STRAND_ERROR, e) {
        test_log("%s", strand_exception_text(e));
    }
    STRAND_END
    CHECK_LOG("in hard");
}

static void throw_in_clean_up(int *unused)
{
    (void)unused;
    throw_stone();
}

/* contract 4.47 */
TEST_INSIDE(a_clean_up_on_a_normal_way_out_may_throw)
{
    STRAND_TRY {
        TEST_LEAVING("out");
        int x __attribute__((cleanup(throw_in_clean_up), unused)) = 0;
        TEST_LEAVING("in");
        test_log("body");
    }
    STRAND_CATCH(&STONE, e) {
        test_log("%s", strand_exception_text(e));
    }
    STRAND_END
    CHECK_LOG("body in out hard");
}

/* ---- locals --------------------------------------------------------------------------------- */

/* contract 4.52 */
TEST_INSIDE(a_volatile_local_written_in_the_try_block_is_right_in_the_catch_block)
{
    volatile int a = 1;
    volatile char b[2] = "x";
    STRAND_TRY {
        a = 2;
        b[0] = 'y';
        throw_stone();
        a = 3;
    }
    STRAND_CATCH(&STONE, e) {
        CHECK_EQ(a, 2);
        CHECK_EQ(b[0], 'y');
        test_log("seen");
    }
    STRAND_END
    CHECK_LOG("seen");
}

/* contract 9.4 */
TEST_INSIDE(a_loop_counts_right_across_throws)
{
    volatile int sum = 0;
    for (volatile int i = 0; i < 5; i++) {
        STRAND_TRY {
            sum += i;
            throw_stone();
        }
        STRAND_CATCH(&STONE, e) {
            sum += 100;
        }
        STRAND_END
    }
    CHECK_EQ(sum, 510);
}

static NOINLINE int opaque(int x)
{
    __asm__ volatile("" : "+r"(x));
    return x;
}

static NOINLINE int hold_many_registers(int a, int b, int c, int d, int e, int f)
{
    int g = opaque(a * b), h = opaque(c * d), i = opaque(e * f), j = opaque(a + c), k = opaque(b + d);
    STRAND_TRY {
        opaque(g + h);
        throw_stone();
    }
    STRAND_CATCH(&STONE, x) {
        return a + b + c + d + e + f + g + h + i + j + k;
    }
    STRAND_END
    return 0;
}

/* contract 9.4 */
TEST_INSIDE(locals_that_the_try_block_does_not_write_survive_a_throw)
{
    CHECK_EQ(hold_many_registers(1, 2, 3, 4, 5, 6), 21 + 2 + 12 + 30 + 4 + 6);
}

/* ---- strand_try ----------------------------------------------------------------------------- */

static void *throw_hard(void *arg)
{
    TEST_LEAVING("frame");
    throw_stone();
    return arg;
}

/* contract 4.51 */
TEST_INSIDE(strand_try_gives_what_the_function_returned)
{
    int x = 0;
    void *result = NULL;
    CHECK_PTR(strand_try(test_return, &x, &result), NULL);
    CHECK_PTR(result, &x);
}

/* contract 4.51 */
TEST_INSIDE(strand_try_needs_no_place_for_a_result)
{
    CHECK_PTR(strand_try(test_return, NULL, NULL), NULL);
    strand_exception *e = strand_try(throw_hard, NULL, NULL);
    CHECK(e != NULL);
    strand_exception_release(e);
}

/* contract 4.51 */
TEST_INSIDE(strand_try_gives_the_exception_that_left_the_function)
{
    strand_exception *e = strand_try(throw_hard, NULL, NULL);
    CHECK_KIND(e, &STONE);
    CHECK_STR(strand_exception_text(e), "hard");
    CHECK_LOG("frame");
    strand_exception_release(e);
}

static void *try_and_rethrow(void *arg)
{
    strand_exception *e = strand_try(throw_hard, arg, NULL);
    CHECK(e != NULL);
    test_log("inner");
    strand_rethrow(e);
}

/* contract 4.51 */
TEST_INSIDE(an_exception_from_strand_try_can_be_rethrown_to_the_next_one)
{
    strand_exception *e = strand_try(try_and_rethrow, NULL, NULL);
    CHECK_STR(strand_exception_text(e), "hard");
    CHECK_LOG("frame inner");
    strand_exception_release(e);
}

static void *catch_inside(void *arg)
{
    STRAND_TRY {
        throw_stone();
    }
    STRAND_CATCH(&STONE, e) {
        return arg;
    }
    STRAND_END
    return NULL;
}

TEST_INSIDE(strand_try_does_not_see_what_is_caught_inside)
{
    int x = 0;
    void *result = NULL;
    CHECK_PTR(strand_try(catch_inside, &x, &result), NULL);
    CHECK_PTR(result, &x);
}

/* ---- many ----------------------------------------------------------------------------------- */

/* contract 9.1 */
TEST_INSIDE(a_throw_runs_the_clean_ups_of_a_hundred_frames)
{
    char expected[2 * 101 + 8] = "";
    for (int i = 0; i < 101; i++)
        strcat(expected, "f ");
    strcat(expected, "caught");
    STRAND_TRY {
        throw_through_frames(100);
    }
    STRAND_CATCH(&STONE, e) {
        test_log("caught");
    }
    STRAND_END
    CHECK_LOG(expected);
}

/* Throws and catches its own number, and yields inside both blocks. */
static void *throw_own_number(void *arg)
{
    int own = *(int *)arg;
    for (volatile int i = 0; i < 10; i++) {
        STRAND_TRY {
            strand_yield();
            strand_throw(&STONE, "%d", own);
        }
        STRAND_CATCH(&STONE, e) {
            strand_yield();
            CHECK_EQ(atoi(strand_exception_text(e)), own);
        }
        STRAND_END
    }
    return arg;
}

TEST_INSIDE(strands_that_take_turns_inside_their_try_blocks_catch_their_own)
{
    static int numbers[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    STRAND_SCOPE(all);
    for (int i = 0; i < 8; i++)
        strand_spawn(all, throw_own_number, &numbers[i]);
    strand_scope_join(all);
}
