/*
 * Monitors: a structure that is reached only through functions in which nothing suspends.
 */
#define SUITE monitor
#include "test.h"

#include "strand/monitor.h"

/* An account: in a header there would be nothing but struct account and the two functions. */
STRAND_MONITOR(account, {
    int balance, movements;
    int highest;
});

static int account_move(struct account *account, int sum)
{
    STRAND_MONITOR_ENTER(account, in, account);
    if (in->balance + sum < 0)
        return -1;
    in->balance += sum;
    in->movements++;
    if (in->balance > in->highest)
        in->highest = in->balance;
    return in->balance;
}

static int account_movements(struct account *account)
{
    STRAND_MONITOR_ENTER(account, in, account);
    return in->movements;
}

/* N-02 */
TEST_INSIDE(a_monitor_is_used_through_its_functions)
{
    struct account account = {0};
    CHECK_EQ(account_move(&account, 5), 5);
    CHECK_EQ(account_move(&account, -7), -1);
    CHECK_EQ(account_move(&account, -2), 3);
    CHECK_EQ(account_movements(&account), 2);
    strand_yield();
}

static void *move_back_and_forth(void *arg)
{
    struct account *account = arg;
    for (int i = 0; i < 100; i++) {
        CHECK(account_move(account, 3) >= 3);
        strand_yield();
        CHECK(account_move(account, -3) >= 0);
    }
    return NULL;
}

/* N-02 */
TEST_RACE(a_monitor_makes_one_step_on_several_threads_too)
{
    for (long round = 0; round < test_scale(20); round++) {
        struct account account = {0};
        STRAND_SCOPE(s);
        for (int i = 0; i < 10; i++)
            strand_spawn(s, move_back_and_forth, &account);
        strand_scope_join(s);
        CHECK_EQ(account_move(&account, 0), 0);
        CHECK_EQ(account_movements(&account), 2001);
    }
}

static void *move_without_a_break(void *account)
{
    for (long i = 0; i < test_scale(200000); i++)
        account_move(account, 1);
    return NULL;
}

TEST_RACE(strands_on_several_threads_wait_for_each_other_at_a_monitor)
{
    struct account account = {0};
    STRAND_SCOPE(s);
    for (int i = 0; i < 8; i++)
        strand_spawn(s, move_without_a_break, &account);
    strand_scope_join(s);
    CHECK_EQ(account_movements(&account), 8 * test_scale(200000));
    CHECK_EQ(account_move(&account, 0), 8 * test_scale(200000));
}

/* Without an interruption point there is nothing to interrupt. */
static void *move_interrupted(void *account)
{
    CHECK_EQ(account_move(account, 1), 1);
    test_log("moved");
    strand_checkpoint();
    return NULL;
}

TEST_INSIDE(a_cancelled_strand_may_still_enter_a_monitor)
{
    struct account account = {0};
    test_run_cancelled(move_interrupted, &account);
    CHECK_LOG("moved");
}

STRAND_MONITOR(limited, { int value; });

static void limited_set(struct limited *limited, int value)
{
    STRAND_MONITOR_ENTER(limited, in, limited);
    if (value < 0)
        strand_throw(&TEST_ERROR, "%d", value);
    in->value = value;
}

static void *set_too_low(void *limited)
{
    limited_set(limited, -1);
    return NULL;
}

TEST_INSIDE(an_exception_leaves_the_monitor_open_to_others)
{
    struct limited limited = {0};
    CHECK_THROWS(set_too_low, &limited, &TEST_ERROR);
    limited_set(&limited, 1);
    strand_yield();
}

static int move_between(struct account *from, struct account *to, int sum)
{
    STRAND_MONITOR_ENTER(account, out, from);
    {
        STRAND_MONITOR_ENTER(account, in, to);
        in->balance += sum;
    }
    out->balance -= sum;
    return out->balance;
}

TEST_INSIDE(two_monitors_can_be_entered_one_inside_the_other)
{
    struct account from = {0}, to = {0};
    account_move(&from, 10);
    CHECK_EQ(move_between(&from, &to, 4), 6);
    CHECK_EQ(account_move(&to, 0), 4);
    strand_yield();
}
