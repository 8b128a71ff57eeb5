/*
 * options.max_stack_bytes: what is counted, what is refused, and that nobody is refused what is free.
 */
#define SUITE stack_limit
#include "test.h"

#include <errno.h>

#define KIB ((size_t)1024)
#define STACK (64 * KIB)

static strand_options limited_to(size_t bytes)
{
    strand_options options = test_options();
    options.max_stack_bytes = bytes;
    return options;
}

/* ---- stacks of strands' own ----------------------------------------------------------------- */

static _Atomic int begun;

static void *begin_and_sleep(void *arg)
{
    begun++;
    return test_sleep(arg);
}

/* Spawns so many that sleep, and returns how many did; the others were refused in these words. */
static int how_many_begin(int count, size_t stack_size, const char *words)
{
    STRAND_SCOPE_WITH(scope, STRAND_COLLECT);
    int refused = 0;
    begun = 0;
    for (int i = 0; i < count; i++)
        strand_spawn_with(scope, STRAND_ATTR(.stack_size = stack_size), begin_and_sleep, NULL, 0);
    while (begun + refused < count) {
        strand_exception *e = strand_scope_failure(scope, NULL);
        if (!e) {
            strand_sleep(10 * STRAND_US);
            continue;
        }
        CHECK_KIND(e, &STRAND_SYSTEM);
        CHECK_EQ(strand_exception_code(e), -EAGAIN);
        CHECK_CONTAINS(strand_exception_text(e), words);
        strand_exception_release(e);
        refused++;
    }
    strand_scope_cancel(scope, NULL);
    strand_scope_join(scope);
    return begun;
}

static void *fill_with_usual_stacks(void *arg)
{
    /* The root has one. */
    CHECK_EQ(how_many_begin(20, 0, "options.max_stack_bytes is 655360, of which 655360 are in use, and 65536 more"), 9);
    CHECK_EQ(how_many_begin(20, 0, "max_stack_bytes"), 9); /* what has ended is not counted */
    return arg;
}

TEST(max_stack_bytes_limits_the_number_of_stacks)
{
    strand_options options = limited_to(10 * STACK);
    strand_run(&options, fill_with_usual_stacks, NULL);
}

TEST_OWN_STACKS(max_stack_bytes_limits_the_number_of_stacks, "strands of shared fibres take none");

static void *fill_with_all_sizes(void *arg)
{
    CHECK_EQ(how_many_begin(20, 0, "max_stack_bytes"), 15);
    CHECK_EQ(how_many_begin(5, 256 * KIB, "262144 more"), 3); /* those of the usual size are free, but take memory */
    CHECK_EQ(how_many_begin(3, 512 * KIB, "524288 more"), 1);
    /* Not 16 KiB: where the frame of a signal is large (AMX), such a stack gets 32. */
    CHECK_EQ(how_many_begin(25, 32 * KIB, "32768 more"), 25);
    CHECK_EQ(how_many_begin(20, 0, "max_stack_bytes"), 15);
    return arg;
}

TEST(stacks_of_one_size_that_are_free_make_room_for_others)
{
    strand_options options = limited_to(16 * STACK);
    strand_run(&options, fill_with_all_sizes, NULL);
}

TEST_OWN_STACKS(stacks_of_one_size_that_are_free_make_room_for_others, "those who share stacks take none");

static void *add_one(void *number)
{
    ++*(_Atomic long *)number;
    return number;
}

/* Each joins before it spawns the next: so there is room for it, whatever threads there are. */
static void *spawn_one_after_the_other(void *number)
{
    for (long i = 0; i < test_scale(2000); i++) {
        STRAND_SCOPE(scope);
        strand child =
            strand_spawn_with(scope, STRAND_ATTR(.stack_size = i % 3 ? STACK : 2 * STACK), add_one, number, 0);
        if (i % 2)
            strand_yield();
        strand_join(child);
    }
    return number;
}

TEST(a_joiner_can_use_the_stack_of_the_joined_strand)
{
    static _Atomic long number;
    number = 0;
    strand_options options = limited_to(3 * STACK);
    strand_run(&options, spawn_one_after_the_other, (void *)&number);
    CHECK_EQ(number, test_scale(2000));
}

TEST_OWN_STACKS(a_joiner_can_use_the_stack_of_the_joined_strand, "strands of shared fibres take none");

static void *compete(void *number)
{
    STRAND_SCOPE(scope);
    strand spawners[3];
    for (int i = 0; i < 3; i++)
        spawners[i] = strand_spawn(scope, spawn_one_after_the_other, number);
    for (int i = 0; i < 3; i++)
        strand_join(spawners[i]);
    return number;
}

TEST(strands_that_spawn_one_at_a_time_each_are_never_refused_where_there_is_room_for_all)
{
    static _Atomic long number;
    number = 0;
    strand_options options = limited_to(4 * STACK + 3 * 2 * STACK);
    test_set_threads(&options, test_threads() > 4 ? test_threads() : 4);
    strand_run(&options, compete, (void *)&number);
    CHECK_EQ(number, 3 * test_scale(2000));
}

TEST_OWN_STACKS(strands_that_spawn_one_at_a_time_each_are_never_refused_where_there_is_room_for_all,
                "those who share stacks take none");

static void *count_begun(void *arg)
{
    CHECK_EQ(how_many_begin(200, 0, "x"), 200);
    return arg;
}

TEST(without_a_limit_nobody_is_refused)
{
    strand_options options = limited_to(0);
    strand_run(&options, count_begun, NULL);
}

/* ---- shared fibres -------------------------------------------------------------------------- */

static void *open_five(void *scope)
{
    strand_fibre_open(*(strand_scope *)scope, STRAND_FIBRE_ATTR(.count = 5));
    return scope;
}

static void *open_too_many(void *arg)
{
    static strand_scope scope;
    for (int i = 0; i < 3; i++) {
        STRAND_SCOPE_OPEN(inner);
        scope = inner;
        strand_exception *e = strand_try(open_five, &scope, NULL);
        CHECK_KIND(e, &STRAND_SYSTEM);
        CHECK_EQ(strand_exception_code(e), -EAGAIN);
        CHECK_CONTAINS(strand_exception_text(e), "the stack of a fibre; options.max_stack_bytes is 327680");
        strand_exception_release(e);
        CHECK_EQ(strand_fibre_count(strand_fibre_open(inner, STRAND_FIBRE_ATTR(.count = 4))), 4);
    }
    return arg;
}

TEST(the_stacks_of_shared_fibres_count)
{
    strand_options options = limited_to(5 * STACK);
    strand_run(&options, open_too_many, NULL);
}

TEST_OWN_STACKS(the_stacks_of_shared_fibres_count, "those that all share are shared fibres too");

/* Frames of so many bytes. */
static NOINLINE void go_deep(size_t bytes)
{
    char frame[4 * 1024];
    memset(frame, 1, sizeof frame);
    __asm__ volatile("" : : "r"(frame) : "memory");
    if (bytes > sizeof frame)
        go_deep(bytes - sizeof frame);
    else
        strand_yield();
    __asm__ volatile("" : : "r"(frame) : "memory");
    CHECK_EQ(frame[0], 1);
}

static _Atomic int gone_deep, over;

static void *begin_deep(void *arg)
{
    gone_deep++;
    while (!over)
        go_deep(32 * KIB);
    return arg;
}

/* On one fibre: each that starts takes the place of one that is 32 KiB deep. */
static void *fill_with_saved_stacks(void *arg)
{
    STRAND_SCOPE_WITH(scope, STRAND_COLLECT);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    int refused = 0;
    gone_deep = over = 0;
    for (int i = 0; i < 100; i++)
        strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre), begin_deep, NULL, 0);
    while (gone_deep + refused < 100) {
        strand_exception *e = strand_scope_failure(scope, NULL);
        if (e) {
            refused++;
            CHECK_EQ(strand_exception_code(e), -EAGAIN);
            CHECK_CONTAINS(strand_exception_text(e), "can't be saved: options.max_stack_bytes is 1179648, ");
            strand_exception_release(e);
        }
        strand_yield();
    }
    CHECK(refused > 60); /* 1 MiB for saved stacks, of 36 KiB and more */
    CHECK(gone_deep > 10);
    over = 1;
    strand_scope_join(scope);
    return arg;
}

TEST(the_saved_stacks_of_strands_on_shared_fibres_count)
{
    strand_options options = limited_to(2 * STACK + 1024 * KIB);
    strand_run(&options, fill_with_saved_stacks, NULL);
}

TEST_OWN_STACKS(the_saved_stacks_of_strands_on_shared_fibres_count, "those that all share are shared fibres too");

static void *grow(void *depth)
{
    strand_yield();
    gone_deep++;
    while (gone_deep < 10)
        strand_yield(); /* all have begun */
    go_deep(*(size_t *)depth);
    return depth;
}

static void *outgrow_the_limit(void *depth)
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    gone_deep = 0;
    for (int i = 0; i < 10; i++)
        strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre), grow, depth, 0);
    strand_scope_join(scope);
    return depth;
}

TEST(strands_that_have_begun_go_on_also_if_their_frames_outgrow_the_limit)
{
    static size_t depth = 32 * KIB;
    strand_options options = limited_to(2 * STACK + 64 * KIB);
    strand_run(&options, outgrow_the_limit, &depth);
}

TEST_OWN_STACKS(strands_that_have_begun_go_on_also_if_their_frames_outgrow_the_limit,
                "those that all share are shared fibres too");

/* ---- the options ---------------------------------------------------------------------------- */

static void check_refused(size_t bytes, size_t stack_size, const char *words)
{
    strand_options options = limited_to(bytes);
    options.stack_size = stack_size;
    test_refused(options, words);
}

TEST(a_limit_below_one_stack_is_refused_by_strand_run)
{
    check_refused(STACK - 1, 0, "options.max_stack_bytes is 65535, which is less than one stack of 65536 bytes");
    check_refused(STACK, STACK + 1, "one stack of 131072 bytes");
}

TEST(a_run_with_room_for_one_stack_has_a_root_strand)
{
    static int x;
    strand_options options = limited_to(STACK);
    CHECK_PTR(strand_run(&options, test_return, &x), &x);
}

static void *fill_outer_and_inner(void *arg)
{
    strand_options inner = limited_to(10 * STACK);
    test_set_own_threads(&inner);
    STRAND_SCOPE(scope);
    begun = 0;
    for (int i = 0; i < 3; i++)
        strand_spawn(scope, begin_and_sleep, NULL);
    test_yield_until(&begun, 3);
    strand_run(&inner, fill_with_usual_stacks, NULL);
    strand_scope_cancel(scope, NULL);
    return arg;
}

/* V-01, contract 1.2 */
TEST_REAL(each_run_has_a_limit_of_its_own)
{
    strand_options options = limited_to(4 * STACK);
    strand_run(&options, fill_outer_and_inner, NULL);
}

TEST_OWN_STACKS(each_run_has_a_limit_of_its_own, "those who share stacks take none");
