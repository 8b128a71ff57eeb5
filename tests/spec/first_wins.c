/*
 * The policy first wins: the first child that returns a value cancels the others.
 */
#define SUITE first_wins
#include "test.h"

static void drop_result(void *result)
{
    test_log("dropped-%d", (int)(intptr_t)result);
}

/* contract 4.35 */
TEST_INSIDE(the_first_value_is_returned_and_its_child_named)
{
    struct test_child blocked[3] = {{0}};
    strand winner;
    STRAND_SCOPE_WITH(s, STRAND_FIRST_WINS);
    test_spawn_started(s, test_child_blocks, &blocked[0]);
    test_spawn_started(s, test_child_blocks, &blocked[1]);
    strand quick = strand_spawn(s, test_return, TEST_PTR(5));
    test_spawn_started(s, test_child_blocks, &blocked[2]);
    CHECK_PTR(strand_scope_join_first(s, &winner), TEST_PTR(5));
    CHECK_EQ(strand_id(winner), strand_id(quick));
}

/* contract 4.35 */
TEST_INSIDE(the_others_are_cancelled_waited_for_and_consumed)
{
    struct test_child blocked[3] = {{0}};
    {
        STRAND_SCOPE_WITH(s, STRAND_FIRST_WINS);
        for (int i = 0; i < 3; i++)
            test_spawn_started(s, test_child_blocks, &blocked[i]);
        strand_spawn(s, test_return, NULL);
        CHECK_PTR(strand_scope_join_first(s, NULL), NULL);
        for (int i = 0; i < 3; i++)
            CHECK_EQ(blocked[i].ended, 1);
        CHECK_EQ(strand_scope_count(s), 0);
    }
}

TEST_INSIDE(a_single_child_wins)
{
    STRAND_SCOPE_WITH(s, STRAND_FIRST_WINS);
    strand_spawn(s, test_return, TEST_PTR(1));
    CHECK_PTR(strand_scope_join_first(s, NULL), TEST_PTR(1));
}

TEST_INSIDE(the_others_are_cancelled_as_soon_as_one_returns)
{
    struct test_child blocked = {0};
    strand winner;
    STRAND_SCOPE_WITH(s, STRAND_FIRST_WINS);
    strand slow = test_spawn_started(s, test_child_blocks, &blocked);
    strand quick = strand_spawn(s, test_return, TEST_PTR(2));
    strand_wait(slow);
    CHECK_PTR(strand_scope_join_first(s, &winner), TEST_PTR(2));
    CHECK_EQ(strand_id(winner), strand_id(quick));
}

/* contract 4.35 */
TEST_INSIDE(failures_are_passed_over_as_long_as_one_child_may_win)
{
    struct test_child waiting = {0};
    strand failed[2];
    STRAND_SCOPE_WITH(s, STRAND_FIRST_WINS);
    test_spawn_started(s, test_child_waits, &waiting);
    test_spawn_failed(s, failed, 2);
    waiting.release = 1;
    CHECK_PTR(strand_scope_join_first(s, NULL), &waiting);
}

static void *take_first(void *scope)
{
    return strand_scope_join_first(*(strand_scope *)scope, NULL);
}

/* contract 4.35 */
TEST_INSIDE(if_all_fail_the_first_failure_is_thrown_with_the_others_suppressed)
{
    strand failed[3];
    STRAND_SCOPE_WITH(s, STRAND_FIRST_WINS);
    test_spawn_failed(s, failed, 3);
    strand_exception *e = strand_try(take_first, &s, NULL);
    CHECK_KIND(e, &TEST_ERROR);
    CHECK_STR(strand_exception_text(e), "0");
    CHECK_STR(strand_exception_text(strand_exception_suppressed(e, 0)), "1");
    CHECK_STR(strand_exception_text(strand_exception_suppressed(e, 1)), "2");
    CHECK_EQ(strand_scope_count(s), 0);
    strand_exception_release(e);
}

TEST_INSIDE(if_all_were_cancelled_that_is_thrown)
{
    struct test_child children[2] = {{0}};
    STRAND_SCOPE_WITH(s, STRAND_FIRST_WINS);
    for (int i = 0; i < 2; i++)
        strand_cancel(test_spawn_started(s, test_child_blocks, &children[i]), "not wanted");
    strand_exception *e = strand_try(take_first, &s, NULL);
    CHECK_KIND(e, &STRAND_CHILD_CANCELLED);
    CHECK_CONTAINS(strand_exception_text(e), "all children");
    CHECK_EQ(strand_scope_count(s), 0);
    strand_exception_release(e);
}

TEST_INSIDE(a_child_that_its_owner_cancelled_does_not_win_by_ending)
{
    struct test_child blocked = {0}, waiting = {0};
    STRAND_SCOPE_WITH(s, STRAND_FIRST_WINS);
    test_spawn_started(s, test_child_waits, &waiting);
    strand cancelled = test_spawn_started(s, test_child_blocks, &blocked);
    strand_cancel(cancelled, NULL);
    strand_wait(cancelled);
    waiting.release = 1;
    CHECK_PTR(strand_scope_join_first(s, NULL), &waiting);
}

static void *return_from_interruption(void *child)
{
    STRAND_TRY {
        test_child_blocks(child);
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
    }
    STRAND_END
    return TEST_PTR(6);
}

TEST_INSIDE(the_value_of_a_loser_is_dropped_and_the_winners_is_not)
{
    struct test_child loser = {0};
    const strand_attr *attr = STRAND_ATTR(.drop = drop_result);
    {
        STRAND_SCOPE_WITH(s, STRAND_FIRST_WINS);
        strand_spawn_with(s, attr, return_from_interruption, &loser, 0);
        test_yield_until(&loser.started, 1);
        strand_spawn_with(s, attr, test_return, TEST_PTR(5), 0);
        CHECK_PTR(strand_scope_join_first(s, NULL), TEST_PTR(5));
    }
    CHECK_LOG("dropped-6");
}

static void *first_until_interrupted(void *arg)
{
    struct test_child *child = arg;
    STRAND_SCOPE_WITH(s, STRAND_FIRST_WINS);
    test_spawn_started(s, test_child_waits, child);
    STRAND_TRY {
        strand_scope_join_first(s, NULL);
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        test_log("interrupted");
    }
    STRAND_END
    STRAND_SHIELD;
    CHECK_EQ(strand_scope_count(s), 1);
    child->release = 1;
    return strand_scope_join_first(s, NULL);
}

/* contract 5.2 */
TEST_INSIDE(taking_the_first_is_interruptible_and_loses_nobody)
{
    struct test_child child = {0};
    STRAND_SCOPE(s);
    strand owner = strand_spawn(s, first_until_interrupted, &child);
    test_yield_until(&child.started, 1);
    test_await_blocked("blocked: waits for the end of any child", 1);
    strand_cancel(owner, NULL);
    CHECK_PTR(strand_join(owner), &child);
    CHECK_LOG("interrupted");
}

static void count_drop(void *counter)
{
    atomic_fetch_add((_Atomic int *)counter, 1);
}

/* None of them ever blocks, so each returns its value: one is taken, all others are dropped. */
TEST_RACE(one_of_several_children_that_return_at_once_wins)
{
    for (long i = 0; i < test_scale(1000); i++) {
        _Atomic int drops = 0;
        strand children[6], winner;
        bool known = false;
        {
            STRAND_SCOPE_WITH(s, STRAND_FIRST_WINS);
            for (int n = 0; n < 6; n++)
                children[n] = strand_spawn_with(s, STRAND_ATTR(.drop = count_drop), test_return, &drops, 0);
            CHECK_PTR(strand_scope_join_first(s, &winner), &drops);
        }
        CHECK_EQ(drops, 5);
        for (int n = 0; n < 6; n++)
            known = known || strand_id(children[n]) == strand_id(winner);
        CHECK(known);
    }
}

static void *return_when_scheduled(void *times)
{
    for (intptr_t i = 0; i < (intptr_t)times; i++)
        strand_yield();
    return TEST_PTR((intptr_t)times + 1);
}

static void *take_first_of_four(void *i)
{
    STRAND_SCOPE_WITH(s, STRAND_FIRST_WINS);
    for (int n = 0; n < 4; n++)
        strand_spawn(s, return_when_scheduled, TEST_PTR(((intptr_t)i + n) % 5));
    return strand_scope_join_first(s, NULL);
}

/* Either somebody won or the owner was interrupted; its scope is empty after it in both cases. */
TEST_RACE(winning_races_with_a_cancel_of_the_owner)
{
    STRAND_SCOPE(s);
    for (long i = 0; i < test_scale(1000); i++) {
        strand owner = strand_spawn(s, take_first_of_four, TEST_PTR(i));
        for (int n = 0; n < i % 7; n++)
            strand_yield();
        strand_cancel(owner, NULL);
        STRAND_TRY {
            intptr_t value = (intptr_t)strand_join(owner);
            CHECK(value >= 1 && value <= 5);
        }
        STRAND_CATCH(&STRAND_CHILD_CANCELLED, e) {
        }
        STRAND_END
    }
}

/* ---- open to unrelated strands ---------------------------------------------------------------------- */

enum { ROUNDS = 5000 };

struct rounds {
    _Atomic long now; /* which round it is, from 1; -1 in the end */
    _Atomic bool over[ROUNDS + 1];
    strand_scope scopes[ROUNDS + 1];
};

/* Like test_yield_until: with priorities, a strand that never sleeps keeps strands whose fibre another thread has from
 * ending. */
static void yield_or_sleep(int turn)
{
    if (turn % 32 == 0)
        strand_sleep(20 * STRAND_US);
    else
        strand_yield();
}

static void *spawn_losers(void *arg)
{
    struct rounds *rounds = arg;
    int turn = 1;
    for (long now; (now = rounds->now) >= 0; yield_or_sleep(turn++)) {
        STRAND_TRY {
            if (now && !rounds->over[now])
                strand_spawn(rounds->scopes[now], test_return, TEST_PTR(2));
        }
        STRAND_CATCH(&STRAND_SYSTEM, e) {
            /* it was left meanwhile */
        }
        STRAND_END
    }
    return arg;
}

static void take_the_first(struct rounds *rounds, long round)
{
    STRAND_SCOPE_WITH(s, STRAND_OPEN | STRAND_FIRST_WINS);
    for (int n = 0; n < 3; n++)
        strand_spawn(s, test_return, TEST_PTR(2));
    rounds->scopes[round] = s;
    rounds->now = round;
    CHECK_PTR(strand_scope_join_first(s, NULL), TEST_PTR(2));
    rounds->over[round] = true;
    while (strand_scope_count(s))
        strand_scope_join(s);
    strand_scope_cancel(s, NULL); /* a strand that comes even later is then no surprise */
}

/* The owner takes the losers away while an unrelated strand puts new ones in; those that came too late are left to the
 * join. */
TEST_RACE(the_first_is_taken_while_an_unrelated_strand_spawns_into_the_scope)
{
    static struct rounds rounds;
    memset(&rounds, 0, sizeof rounds);
    STRAND_SCOPE(unrelated);
    strand_spawn(unrelated, spawn_losers, &rounds);
    long most = test_scale(ROUNDS);
    for (long round = 1; round <= most; round++)
        take_the_first(&rounds, round);
    rounds.now = -1;
    strand_scope_join(unrelated);
}

TEST_INSIDE(once_the_winner_was_joined_the_next_that_returned_is_the_first)
{
    strand winner;
    STRAND_SCOPE_WITH(s, STRAND_FIRST_WINS);
    strand one = strand_spawn(s, test_return, TEST_PTR(1)), other = strand_spawn(s, test_return, TEST_PTR(2));
    strand_wait(one);
    strand_wait(other); /* cancelled, and returned all the same */
    strand first = strand_scope_wait_next(s);
    bool one_won = strand_id(first) == strand_id(one);
    CHECK_PTR(strand_join(first), TEST_PTR(one_won ? 1 : 2));
    CHECK_PTR(strand_scope_join_first(s, &winner), TEST_PTR(one_won ? 2 : 1));
    CHECK_EQ(strand_id(winner), strand_id(one_won ? other : one));
}
