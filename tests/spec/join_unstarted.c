/*
 * Joining a child that has not started: it runs in its owner's place. Meanwhile other threads interrupt the owner, wait
 * for the child, look at both, or take their thread away.
 */
#define SUITE join_unstarted
#include "test.h"

#include "strand/pool.h"
#include "strand/select.h"

/* ---- the owner is interrupted ---------------------------------------------------------------- */

struct pair {
    strand_scope scope;
    strand child;
    _Atomic int runs, go_on;
};

static void *compute(void *arg)
{
    struct pair *pair = arg;
    pair->runs = 1;
    while (!pair->go_on)
        ;
    return arg;
}

/* Only the interruption of the owner ends the child. */
static void *join_computing(void *arg)
{
    struct pair *pair = arg;
    STRAND_SCOPE(s);
    strand child = strand_spawn(s, compute, pair);
    strand_exception *e = strand_try(test_join, &child, NULL);
    CHECK_KIND(e, &STRAND_INTERRUPTED);
    strand_exception_release(e);
    pair->go_on = 1;
    strand_cancel(child, NULL);
    return arg;
}

/* contract 4.18 */
TEST_REAL_RACE(a_cancelled_owner_does_not_wait_for_a_child_that_computes)
{
    STRAND_SCOPE(s);
    for (int i = 0; i < 20; i++) {
        struct pair pair = {.runs = 0};
        strand owner = strand_spawn(s, join_computing, &pair);
        test_yield_until(&pair.runs, 1);
        strand_cancel(owner, NULL);
        CHECK_PTR(strand_join(owner), &pair);
    }
}

static void *join_in_time(void *child)
{
    STRAND_DEADLINE(strand_in(STRAND_MS));
    return strand_join(*(strand *)child);
}

/* contract 4.25 */
TEST_REAL_RACE(a_deadline_ends_the_join_of_a_child_that_computes)
{
    struct pair pair = {.runs = 0};
    STRAND_SCOPE(s);
    strand child = strand_spawn(s, compute, &pair);
    strand_exception *e = strand_try(join_in_time, &child, NULL);
    CHECK_KIND(e, &STRAND_TIMED_OUT);
    strand_exception_release(e);
    pair.go_on = 1;
    CHECK_PTR(strand_join(child), &pair);
}

static void *join_yielding(void *times)
{
    STRAND_SCOPE(s);
    return strand_join(strand_spawn(s, test_yield_times, times));
}

TEST_RACE(a_cancel_of_the_owner_races_with_the_end_of_the_child)
{
    STRAND_SCOPE(s);
    for (long i = 0; i < test_scale(5000); i++) {
        void *result = NULL;
        strand owner = strand_spawn(s, join_yielding, TEST_PTR(i % 4));
        for (int n = 0; n < i % 5; n++)
            strand_yield();
        strand_cancel(owner, "race");
        strand_exception *e = strand_try(test_join, &owner, &result);
        if (e)
            CHECK_KIND(e, &STRAND_CHILD_CANCELLED);
        else
            CHECK_PTR(result, TEST_PTR(i % 4));
        strand_exception_release(e);
    }
}

static void *sleep_a_little(void *tens)
{
    strand_sleep((intptr_t)tens * 10 * STRAND_US);
    return tens;
}

static void *join_very_soon(void *child)
{
    STRAND_DEADLINE(strand_in(15 * STRAND_US));
    return strand_join(*(strand *)child);
}

TEST_RACE(a_join_that_was_interrupted_can_be_repeated)
{
    STRAND_SCOPE(s);
    for (long i = 0; i < test_scale(1000); i++) {
        void *result = TEST_PTR(-1);
        strand child = strand_spawn(s, sleep_a_little, TEST_PTR(i % 4));
        strand_exception *e = strand_try(join_very_soon, &child, &result);
        if (e) {
            CHECK_KIND(e, &STRAND_TIMED_OUT);
            result = strand_join(child);
        }
        CHECK_PTR(result, TEST_PTR(i % 4));
        strand_exception_release(e);
    }
}

static void *run_until_told(void *arg)
{
    struct pair *pair = arg;
    STRAND_SHIELD;
    pair->runs = 1;
    test_yield_until(&pair->go_on, 1);
    return arg;
}

static void *join_and_hand_off(void *arg)
{
    struct pair *pair = arg;
    STRAND_SCOPE(s);
    pair->child = strand_spawn(s, run_until_told, pair);
    strand_exception *e = strand_try(test_join, &pair->child, NULL);
    CHECK_KIND(e, &STRAND_INTERRUPTED);
    strand_exception_release(e);
    CHECK_EQ(strand_hand_off(pair->child, pair->scope), 0);
    return arg;
}

/* The control block of the first owner serves another strand when the child ends. */
TEST_RACE(a_child_that_its_joiner_has_handed_off_wakes_nobody)
{
    STRAND_SCOPE_OPEN(s);
    for (long i = 0; i < test_scale(200); i++) {
        struct pair pair = {.scope = s};
        strand owner = strand_spawn(s, join_and_hand_off, &pair);
        test_yield_until(&pair.runs, 1);
        strand_cancel(owner, NULL);
        CHECK_PTR(strand_join(owner), &pair);
        struct test_child sleeper = {0};
        strand next = test_spawn_started(s, test_child_blocks, &sleeper);
        pair.go_on = 1;
        strand_time end = strand_in(STRAND_MS);
        strand_sleep_until(end);
        CHECK(strand_now().ns >= end.ns);
        CHECK_PTR(strand_join(pair.child), &pair);
        CHECK_EQ(sleeper.ended, 0);
        strand_cancel(next, NULL);
        CHECK(test_join_interrupted(next));
    }
}

/* ---- chains ---------------------------------------------------------------------------------- */

enum { DEPTH = 1000 };
static struct {
    strand strands[DEPTH + 1];
    _Atomic int left;
    struct test_child lowest;
} chain;

static void count_left(char *unused)
{
    (void)unused;
    chain.left++;
}

static void *descend(void *arg)
{
    char mark __attribute__((cleanup(count_left)));
    intptr_t depth = (intptr_t)arg;
    (void)mark;
    chain.strands[depth] = strand_self();
    if (!depth)
        return test_child_blocks(&chain.lowest);
    STRAND_SCOPE(s);
    return strand_join(strand_spawn(s, descend, TEST_PTR(depth - 1)));
}

/* Cancels the strand that is so deep in the chain. */
static void cancel_in_chain(int depth, int at)
{
    chain.left = 0;
    chain.lowest = (struct test_child){0};
    STRAND_SCOPE(s);
    strand top = strand_spawn(s, descend, TEST_PTR(depth));
    test_yield_until(&chain.lowest.started, 1);
    test_await_blocked("joins strand", depth);
    strand_cancel(chain.strands[depth - at], "in the chain");
    strand_exception *e = strand_try(test_join, &top, NULL);
    CHECK_KIND(e, &STRAND_CHILD_CANCELLED);
    CHECK_STR(strand_exception_why(e), "in the chain");
    strand_exception_release(e);
    CHECK_EQ(chain.left, depth + 1);
    CHECK_EQ(chain.lowest.ended, 1);
}

/* contract 4.16 */
TEST_RACE(a_chain_of_joins_is_cancelled_from_its_top)
{
    cancel_in_chain((int)test_scale(DEPTH), 0);
}

TEST_INSIDE(a_chain_of_joins_is_cancelled_from_its_top_on_one_thread)
{
    cancel_in_chain((int)test_scale(DEPTH), 0);
}

TEST_RACE(a_chain_of_joins_is_cancelled_in_its_middle)
{
    int depth = (int)test_scale(DEPTH);
    cancel_in_chain(depth, depth / 2);
}

/* ---- the child ------------------------------------------------------------------------------- */

static void *fail_later(void *times)
{
    test_yield_times(times);
    return test_throw("failed");
}

static void *join_one_of_two(void *number)
{
    intptr_t i = (intptr_t)number;
    STRAND_SCOPE(s);
    strand_spawn(s, fail_later, TEST_PTR(i % 3));
    return strand_join(strand_spawn(s, fail_later, TEST_PTR(i / 3 % 3)));
}

/* Each failure raises the scope that both are anchored to. */
TEST_RACE(the_failure_of_the_child_races_with_that_of_its_sibling)
{
    for (long i = 0; i < test_scale(3000); i++) {
        strand_exception *e = strand_try(join_one_of_two, TEST_PTR(i), NULL);
        CHECK_KIND(e, &TEST_ERROR);
        strand_exception_release(e);
    }
}

struct watched {
    strand child;
    _Atomic int known, seen;
};

static void *spawn_and_join(void *arg)
{
    struct watched *watched = arg;
    STRAND_SCOPE(s);
    watched->child = strand_spawn(s, test_yield_times, TEST_PTR(3));
    watched->known = 1;
    return strand_join(watched->child);
}

static void *watch_by_wait(void *arg)
{
    struct watched *watched = arg;
    test_yield_until(&watched->known, 1);
    strand_wait(watched->child);
    watched->seen++;
    return arg;
}

static void *watch_by_select(void *arg)
{
    struct watched *watched = arg;
    test_yield_until(&watched->known, 1);
    strand_case cases[] = {strand_on_end(watched->child)};
    CHECK_EQ(strand_select(cases, 1, 0), 0);
    watched->seen++;
    return arg;
}

/* contract 4.10 */
TEST_RACE(others_wait_for_a_child_that_its_owner_joins)
{
    STRAND_SCOPE(s);
    for (long i = 0; i < test_scale(500); i++) {
        struct watched watched = {.known = 0};
        strand by_wait = strand_spawn(s, watch_by_wait, &watched);
        strand by_select = strand_spawn(s, watch_by_select, &watched);
        strand owner = strand_spawn(s, spawn_and_join, &watched);
        CHECK_PTR(strand_join(owner), TEST_PTR(3));
        strand_join(by_wait);
        strand_join(by_select);
        CHECK_EQ(watched.seen, 2);
    }
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *fibonacci(void *number)
{
    intptr_t n = (intptr_t)number;
    if (n < 2)
        return number;
    STRAND_SCOPE(s);
    strand other = strand_spawn(s, fibonacci, TEST_PTR(n - 1));
    if (n % 4 == 0)
        strand_yield();
    intptr_t below = (intptr_t)fibonacci(TEST_PTR(n - 2));
    return TEST_PTR(below + (intptr_t)strand_join(other));
}

/* contract 2.14 */
TEST_RACE(threads_leave_a_pool_whose_strands_join_their_children)
{
    STRAND_SCOPE(s);
    strand_pool pool = strand_pool_open(s, STRAND_POOL_ATTR(.threads = 3));
    for (long i = 0; i < test_scale(20) + 2; i++) {
        strand top = test_spawn_onto(s, pool, fibonacci, TEST_PTR(12));
        CHECK_EQ(strand_pool_resize(pool, 1), 0);
        strand_yield();
        CHECK_EQ(strand_pool_resize(pool, 3), 0);
        CHECK_PTR(strand_join(top), TEST_PTR(144));
    }
}
