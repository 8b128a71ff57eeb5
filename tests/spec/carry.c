/*
 * What an exception carries, its cause and what it has pushed aside, where there is much of that: deep chains, wide
 * lists, the same exception again and again. The cost grows with what is carried, and no faster.
 */
#define SUITE carry
#include "growth.h"
#include "test.h"

#include "printed_lines.h"

#include <fcntl.h>
#include <unistd.h>

enum { RING = 256 }; /* how many an exception carries besides its cause */

static _Atomic int freed;

static void count_freed(void *unused)
{
    (void)unused;
    freed++;
}

/* Takes over the cause. */
static void *throw_counted(void *cause)
{
    const strand_throw_info info = {
        .size = sizeof info, .payload = &freed, .payload_free = count_freed, .cause = cause};
    strand_throw_with(&TEST_ERROR, &info, "counted");
}

static strand_exception *counted(void)
{
    return strand_try(throw_counted, NULL, NULL);
}

/* Checks that strand_exception_print writes so many lines with the words. Only under the first seed, because it looks
 * up the names of functions, which takes long. */
static void check_printed(const strand_exception *e, const char *words, int lines)
{
    if (test_seed() <= 1)
        CHECK_EQ(printed_lines(e, words), lines);
}

static size_t suppressed_count(const strand_exception *e)
{
    size_t count = 0;
    while (strand_exception_suppressed(e, count))
        count++;
    return count;
}

/* ---- deep ------------------------------------------------------------------------------------ */

static void wrap(int levels)
{
    if (levels == 0)
        strand_throw(&TEST_ERROR, "at the bottom");
    STRAND_TRY {
        wrap(levels - 1);
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        const strand_throw_info info = {.size = sizeof info, .cause = strand_exception_keep(e)};
        strand_throw_with(&TEST_ERROR, &info, "level %d", levels);
    }
    STRAND_END
}

static void *wrap_forty_times(void *arg)
{
    wrap(40);
    return arg;
}

/* An edge that is there twice at each level would make 2^40 of them. */
TEST_INSIDE(an_exception_that_wraps_what_was_caught_does_not_carry_it_twice)
{
    int levels = 0;
    strand_exception *top = strand_try(wrap_forty_times, NULL, NULL);
    for (const strand_exception *e = top; e; e = strand_exception_cause(e), levels++)
        CHECK_PTR(strand_exception_suppressed(e, 0), NULL);
    CHECK_EQ(levels, 41);
    check_printed(top, "caused by", 40);
    strand_exception_release(top);
}

/* Each is the cause of the next. */
static strand_exception *chain_of_causes(int length)
{
    strand_exception *last = NULL;
    for (int i = 0; i < length; i++)
        last = strand_try(throw_counted, last, NULL);
    return last;
}

static void *throw_over(void *e)
{
    STRAND_TRY {
        strand_rethrow(e);
    }
    STRAND_CATCH(&TEST_ERROR, caught) {
        throw_counted(NULL);
    }
    STRAND_END
    return NULL;
}

/* Each is suppressed in the next. */
static strand_exception *chain_of_suppressed(int length)
{
    strand_exception *last = counted();
    for (int i = 1; i < length; i++)
        last = strand_try(throw_over, last, NULL);
    return last;
}

static void *print_and_release(void *e)
{
    check_printed(e, "more that those carry", 1);
    strand_exception_release(e);
    return NULL;
}

static void on_a_strand(strand_fn *fn, void *arg)
{
    STRAND_SCOPE(s);
    strand_join(strand_spawn(s, fn, arg));
}

TEST_INSIDE(a_long_chain_of_causes_is_printed_and_given_back_on_any_stack)
{
    freed = 0;
    int length = (int)test_scale(20000) + 100;
    on_a_strand(print_and_release, chain_of_causes(length));
    CHECK_EQ(freed, length);
}

TEST_INSIDE(a_long_chain_of_suppressed_exceptions_is_printed_and_given_back_on_any_stack)
{
    freed = 0;
    int length = (int)test_scale(20000) + 100;
    on_a_strand(print_and_release, chain_of_suppressed(length));
    CHECK_EQ(freed, length);
}

struct two {
    strand_exception *first, *then;
};

static void *throw_then(void *two)
{
    STRAND_TRY {
        strand_rethrow(((struct two *)two)->first);
    }
    STRAND_CATCH(&TEST_ERROR, e) {
        strand_rethrow(((struct two *)two)->then);
    }
    STRAND_END
    return NULL;
}

/* The one that takes it is kept: it is looked for in the chain first. */
TEST_INSIDE(a_long_chain_is_suppressed_in_an_exception_that_is_kept)
{
    freed = 0;
    int length = (int)test_scale(20000);
    strand_exception *kept = counted();
    struct two two = {chain_of_causes(length), strand_exception_keep(kept)};
    strand_exception_release(strand_try(throw_then, &two, NULL));
    CHECK_EQ(suppressed_count(kept), 1);
    CHECK_EQ(freed, 0);
    strand_exception_release(kept);
    CHECK_EQ(freed, length + 1);
}

static void *wrap_in_a_strand(void *levels)
{
    if (!levels)
        strand_throw(&TEST_ERROR, "at the bottom");
    STRAND_SCOPE(s);
    strand child = strand_spawn(s, wrap_in_a_strand, TEST_PTR((intptr_t)levels - 1));
    STRAND_TRY {
        strand_join(child);
    }
    STRAND_CATCH(&STRAND_ERROR, e) {
        strand_throw(&TEST_ERROR, "level %d", (int)(intptr_t)levels);
    }
    STRAND_END
    return NULL;
}

TEST_INSIDE(strands_that_wrap_each_others_failures_carry_all_of_them)
{
    intptr_t levels = test_scale(1000);
    strand_exception *e = strand_try(wrap_in_a_strand, TEST_PTR(levels), NULL);
    intptr_t carried = 0;
    for (const strand_exception *s = e; (s = strand_exception_suppressed(s, 0)); carried++)
        CHECK_PTR(strand_exception_suppressed(s, 1), NULL);
    CHECK_EQ(carried, levels);
    strand_exception_release(e);
}

/* ---- wide ------------------------------------------------------------------------------------ */

static void *fail_many_times(void *count)
{
    STRAND_SCOPE(s);
    for (int i = 0; i < *(int *)count; i++)
        strand_spawn(s, throw_counted, NULL);
    strand_scope_join(s);
    return NULL;
}

TEST_INSIDE(so_many_suppressed_exceptions_are_kept_and_the_others_counted)
{
    freed = 0;
    int count = RING + 101;
    strand_exception *e = strand_try(fail_many_times, &count, NULL);
    CHECK_EQ(suppressed_count(e), RING);
    CHECK_EQ(freed, 100);
    check_printed(e, "... and 348 more suppressed", 1); /* 8 are printed */
    strand_exception_release(e);
    CHECK_EQ(freed, count);
}

static void suppress_many(int *const *count)
{
    STRAND_SHIELD;
    for (int i = 0; i < **count; i++)
        strand_suppress(counted());
}

static void *be_interrupted_over_many(void *count)
{
    STRAND_SCOPE(s);
    strand_spawn(s, throw_counted, NULL);
    int *many __attribute__((cleanup(suppress_many), unused)) = count;
    strand_sleep(FOREVER);
    return NULL;
}

/* The interruption had pushed them aside, and the failure takes its place. */
TEST_INSIDE(a_failure_takes_over_what_its_interruption_carries_and_the_count_of_the_others)
{
    freed = 0;
    int count = RING + 10;
    strand_exception *e = strand_try(be_interrupted_over_many, &count, NULL);
    CHECK_KIND(e, &TEST_ERROR);
    CHECK_EQ(suppressed_count(e), RING);
    check_printed(e, "... and 258 more suppressed", 1);
    strand_exception_release(e);
    CHECK_EQ(freed, count + 1);
}

struct many {
    int count;
    int64_t ns; /* the time that they took */
};

/* Most of them are counted and released at once, so that many take no more memory than few. */
static void suppress_some(struct many *const *many)
{
    int64_t before = growth_ns();
    for (int i = 0; i < (*many)->count; i++)
        strand_suppress(counted());
    (*many)->ns = growth_ns() - before;
}

static void *throw_over_some(void *many)
{
    struct many *some __attribute__((cleanup(suppress_some), unused)) = many;
    throw_counted(NULL);
    return NULL;
}

static int64_t time_to_suppress(const void *what, int count)
{
    (void)what;
    struct many many = {.count = count};
    strand_exception_release(strand_try(throw_over_some, &many, NULL));
    return many.ns;
}

TEST_REAL_INSIDE(many_suppressed_exceptions_cost_in_proportion_to_their_number)
{
    growth_compare(time_to_suppress, NULL, growth_count(100000));
}

/* ---- again and again ------------------------------------------------------------------------- */

TEST_INSIDE(an_exception_that_is_thrown_again_and_again_does_not_grow_without_end)
{
    freed = 0;
    int times = RING + 50;
    strand_exception *kept = counted();
    for (int i = 0; i < times; i++) {
        struct two two = {counted(), strand_exception_keep(kept)};
        strand_exception_release(strand_try(throw_then, &two, NULL));
    }
    CHECK_EQ(suppressed_count(kept), RING);
    CHECK_EQ(freed, times - RING);
    strand_exception_release(kept);
    CHECK_EQ(freed, times + 1);
}

/* It is carried by the last one only, since the others are gone. */
TEST_INSIDE(an_exception_is_suppressed_again_after_the_one_that_carried_it_is_gone)
{
    freed = 0;
    strand_exception *kept = counted();
    for (int i = 0; i < 3; i++) {
        struct two two = {strand_exception_keep(kept), counted()};
        strand_exception *e = strand_try(throw_then, &two, NULL);
        CHECK_PTR(strand_exception_suppressed(e, 0), kept);
        CHECK_EQ(suppressed_count(e), 1);
        strand_exception_release(e);
        CHECK_EQ(freed, i + 1);
    }
    strand_exception_release(kept);
    CHECK_EQ(freed, 4);
}

struct others {
    strand_exception *kept;
    int times;
};

/* Counts the new exceptions that carry the kept one. While another strand's does, this strand's do not. */
static void *suppress_again_and_again(void *arg)
{
    struct others *others = arg;
    for (int i = 0; i < 50; i++) {
        struct two two = {strand_exception_keep(others->kept), counted()};
        strand_exception *e = strand_try(throw_then, &two, NULL);
        others->times += strand_exception_suppressed(e, 0) == others->kept;
        strand_yield();
        strand_exception_release(e);
    }
    return NULL;
}

TEST_RACE(an_exception_that_several_strands_suppress_is_carried_by_no_exception_that_is_gone)
{
    for (long i = 0; i < test_scale(100); i++) {
        freed = 0;
        strand_exception *kept = counted();
        struct others others[] = {{kept, 0}, {kept, 0}}, last = {kept, 0};
        {
            STRAND_SCOPE(s);
            strand_spawn(s, suppress_again_and_again, &others[0]);
            strand_spawn(s, suppress_again_and_again, &others[1]);
            strand_scope_join(s);
        }
        CHECK(others[0].times + others[1].times > 0);
        suppress_again_and_again(&last);
        CHECK_EQ(last.times, 50);
        strand_exception_release(kept);
        CHECK_EQ(freed, 151);
    }
}

static void *throw_because_of(void *cause)
{
    const strand_throw_info info = {.size = sizeof info, .cause = strand_exception_keep(cause)};
    strand_throw_with(&TEST_ERROR, &info, "because of it");
}

/* Two ways lead from each level to the one below. */
TEST_INSIDE(an_exception_that_is_carried_in_two_places_is_printed_once)
{
    freed = 0;
    strand_exception *e = counted();
    for (int i = 0; i < 20; i++) {
        struct two two = {strand_try(throw_because_of, e, NULL), strand_try(throw_because_of, e, NULL)};
        strand_exception_release(e);
        e = strand_try(throw_then, &two, NULL);
    }
    check_printed(e, "thrown in strand", 41);
    check_printed(e, "see above", 20);
    strand_exception_release(e);
    CHECK_EQ(freed, 1);
}

/* ---- no cycle -------------------------------------------------------------------------------- */

TEST_INSIDE(of_two_exceptions_thrown_in_the_wake_of_each_other_one_carries_the_other)
{
    freed = 0;
    strand_exception *a = counted(), *b = counted();
    struct two one_way = {strand_exception_keep(a), strand_exception_keep(b)};
    strand_exception_release(strand_try(throw_then, &one_way, NULL));
    struct two other_way = {strand_exception_keep(b), strand_exception_keep(a)};
    strand_exception_release(strand_try(throw_then, &other_way, NULL));
    CHECK_PTR(strand_exception_suppressed(b, 0), a);
    CHECK_PTR(strand_exception_suppressed(a, 0), NULL);
    strand_exception_release(a);
    CHECK_EQ(freed, 0);
    strand_exception_release(b);
    CHECK_EQ(freed, 2);
}

/* The one that is in flight is the cause of the one that it pushes aside, and which is kept. */
TEST_INSIDE(an_exception_that_is_refused_because_it_would_close_a_cycle_is_counted)
{
    freed = 0;
    strand_exception *e = counted(), *because = strand_try(throw_because_of, e, NULL);
    struct two two = {strand_exception_keep(because), e};
    e = strand_try(throw_then, &two, NULL);
    CHECK_PTR(strand_exception_suppressed(e, 0), NULL);
    check_printed(e, "... and 1 more suppressed", 1);
    strand_exception_release(because);
    strand_exception_release(e);
    CHECK_EQ(freed, 1);
}

static void *cross(void *two)
{
    strand_exception_release(strand_try(throw_then, two, NULL));
    return NULL;
}

static void cross_both_ways(strand_exception *a, strand_exception *b)
{
    struct two ways[] = {{strand_exception_keep(a), strand_exception_keep(b)},
                         {strand_exception_keep(b), strand_exception_keep(a)}};
    STRAND_SCOPE(s);
    strand_spawn(s, cross, &ways[0]);
    strand_spawn(s, cross, &ways[1]);
    strand_scope_join(s);
}

TEST_RACE(two_strands_that_suppress_two_exceptions_in_each_other_close_no_cycle)
{
    for (long i = 0; i < test_scale(30000); i++) {
        strand_exception *a = counted(), *b = counted();
        freed = 0;
        cross_both_ways(a, b);
        CHECK_EQ(suppressed_count(a) + suppressed_count(b), 1);
        strand_exception_release(a);
        strand_exception_release(b);
        CHECK_EQ(freed, 2);
    }
}

/* ---- printing what grows --------------------------------------------------------------------- */

static void *rethrow(void *e)
{
    strand_rethrow(e);
}

static void *join_a_rethrower(void *e)
{
    STRAND_SCOPE(s);
    return strand_join(strand_spawn(s, rethrow, strand_exception_keep(e)));
}

/* The trace grows also where these are a few. */
static void *throw_on(void *e)
{
    int times = test_seed() > 1 ? 6 : 40;
    for (int i = 0; i < times; i++)
        strand_exception_release(strand_try(join_a_rethrower, e, NULL));
    return NULL;
}

static void *print_on(void *e)
{
    int fd = open("/dev/null", O_WRONLY);
    CHECK(fd >= 0);
    for (int i = 0; i < 2; i++) {
        strand_exception_print(e, fd);
        strand_yield();
    }
    close(fd);
    return NULL;
}

/* Its trace is moved to larger memory meanwhile. */
TEST_RACE(an_exception_is_printed_while_its_trace_grows)
{
    for (long i = 0; i < test_scale(20); i++) {
        strand_exception *e = counted();
        {
            STRAND_SCOPE(s);
            strand_spawn(s, throw_on, e);
            strand_spawn(s, print_on, e);
            strand_scope_join(s);
        }
        strand_exception_release(e);
    }
}
