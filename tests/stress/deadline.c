/*
 * Deadlines race with completion. A block ends by one of the two, and nothing of the deadline is left behind it.
 */
#define SUITE stress_deadline
#include "test.h"

static bool time_is_left(strand_time until)
{
    return strand_now().ns < until.ns;
}

/* ---- a sleep and a deadline that end at about the same time ------------------------------------ */

struct race {
    int64_t sleep, deadline;
    bool completed;
};

static void *sleep_against_a_deadline(void *arg)
{
    struct race *race = arg;
    race->completed = false;
    STRAND_DEADLINE(strand_in(race->deadline));
    strand_sleep(race->sleep);
    race->completed = true;
    return arg;
}

/* A cancel of the caller it passes on. */
static void check_race(struct race *race)
{
    strand_exception *e = strand_try(sleep_against_a_deadline, race, NULL);
    CHECK_EQ(e == NULL, race->completed);
    if (e && strand_exception_is(e, &STRAND_INTERRUPTED))
        strand_rethrow(e);
    if (e)
        CHECK_KIND(e, &STRAND_TIMED_OUT);
    strand_exception_release(e);
    strand_checkpoint();
}

static void *race_for_a_while(void *arg)
{
    strand_time until = strand_in(test_scale(200) * STRAND_MS);
    for (int64_t round = (int64_t)(strand_id(strand_self()) % 100); time_is_left(until); round++) {
        struct race race = {(20 + round % 7) * STRAND_US, (20 + round % 5) * STRAND_US, false};
        check_race(&race);
    }
    return arg;
}

static void *race_in_many_strands(void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 50; i++)
        strand_spawn(scope, race_for_a_while, arg);
    strand_scope_join(scope);
    return arg;
}

/* contract 4.27 */
TEST_REAL(a_sleep_against_a_deadline_completes_or_times_out)
{
    test_run(race_in_many_strands, NULL);
}

/* ---- a join and a deadline ------------------------------------------------------------------------ */

static void *sleep_a_little(void *arg)
{
    strand_sleep((intptr_t)arg * STRAND_US);
    return arg;
}

static void *join_under_a_deadline(void *child)
{
    STRAND_DEADLINE(strand_in(20 * STRAND_US));
    return strand_join(*(strand *)child);
}

static void *join_against_a_deadline(void *arg)
{
    strand_time until = strand_in(test_scale(200) * STRAND_MS);
    for (intptr_t round = 1; time_is_left(until); round++) {
        void *value = NULL, *wanted = (void *)(10 + round % 20);
        STRAND_SCOPE(scope);
        strand child = strand_spawn(scope, sleep_a_little, wanted);
        strand_exception *e = strand_try(join_under_a_deadline, &child, &value);
        if (e) {
            CHECK_KIND(e, &STRAND_TIMED_OUT);
            strand_exception_release(e);
            value = strand_join(child);
        }
        CHECK_PTR(value, wanted);
    }
    return arg;
}

/* contract 5.4 */
TEST_REAL(a_join_that_times_out_leaves_the_child_to_be_joined_again)
{
    test_run(join_against_a_deadline, NULL);
}

/* ---- deadlines inside each other, cancels among them ------------------------------------------------ */

struct nest {
    int depth;
    int64_t step;
    int entered, left;
};

static void note_left(struct nest **nest)
{
    (*nest)->left++;
}

static void sleep_in_nested_deadlines(struct nest *nest, int depth)
{
    struct nest *noted __attribute__((cleanup(note_left), unused)) = nest;
    nest->entered++;
    STRAND_DEADLINE(strand_in(nest->step * (depth % 3 + 1)));
    if (depth == 0)
        strand_sleep(FOREVER);
    else
        sleep_in_nested_deadlines(nest, depth - 1);
}

static void *sleep_in_a_nest(void *nest)
{
    sleep_in_nested_deadlines(nest, ((struct nest *)nest)->depth);
    return nest;
}

static void *nest_for_a_while(void *arg)
{
    strand_time until = strand_in(test_scale(200) * STRAND_MS);
    for (int64_t round = 0; time_is_left(until); round++) {
        struct nest nest = {.depth = 5, .step = (1 + round % 10) * STRAND_US};
        CHECK_THROWS(sleep_in_a_nest, &nest, &STRAND_TIMED_OUT);
        strand_checkpoint();
        CHECK_EQ(nest.entered, 6);
        CHECK_EQ(nest.left, 6);
    }
    return arg;
}

static void *nest_in_many_strands(void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 20; i++)
        strand_spawn(scope, nest_for_a_while, arg);
    strand_scope_join(scope);
    return arg;
}

/* contract 4.27 */
TEST_REAL(nested_deadlines_that_strike_together_unwind_every_block_once)
{
    test_run(nest_in_many_strands, NULL);
}

static void *race_until_cancelled(void *arg)
{
    for (int64_t round = 0;; round++) {
        struct race race = {(5 + round % 3) * STRAND_US, (5 + round % 2) * STRAND_US, false};
        check_race(&race);
    }
    return arg;
}

/* The cancel is further out than the deadlines: it gets through whatever they do. */
static void *cancel_against_deadlines(void *arg)
{
    strand_time until = strand_in(test_scale(200) * STRAND_MS);
    for (int round = 0; time_is_left(until); round++) {
        STRAND_SCOPE(scope);
        strand child = strand_spawn(scope, race_until_cancelled, arg);
        strand_sleep((round % 30) * STRAND_US);
        strand_cancel(child, NULL);
        strand_wait(child);
    }
    return arg;
}

TEST_REAL(a_cancel_gets_through_deadlines_that_strike_at_the_same_time)
{
    test_run(cancel_against_deadlines, NULL);
}
