/*
 * Wait groups and latches: waiting until all is done.
 */
#define SUITE group
#include "test.h"

#include "strand/sync.h"

#include <errno.h>

static strand_group g;

static void *wait_and_log(void *name)
{
    strand_group_wait(&g);
    test_log("%s", (const char *)name);
    return NULL;
}

static strand spawn_waiter(strand_scope s, char *name, int waiters)
{
    strand child = strand_spawn(s, wait_and_log, name);
    test_await_blocked("waits for group", waiters);
    return child;
}

/* ---- wait groups ----------------------------------------------------------------------------------------- */

TEST_INSIDE(nothing_under_way_is_not_waited_for)
{
    strand_group mine = {{0}};
    strand_group_wait(&mine);
    strand_group_add(&mine, 2);
    CHECK_EQ(strand_group_count(&mine), 2);
    strand_group_done(&mine);
    strand_group_done(&mine);
    strand_group_wait(&mine);
}

/* contract 5.6 */
TEST_INSIDE(all_waiters_continue_when_the_last_one_is_done)
{
    STRAND_SCOPE(s);
    g = (strand_group){{0}};
    strand_group_add(&g, 2);
    strand a = spawn_waiter(s, "go", 1), b = spawn_waiter(s, "go", 2);
    strand_group_done(&g);
    strand_group_add(&g, 1);
    strand_group_done(&g);
    CHECK(!strand_ended(a) && !strand_ended(b));
    CHECK_LOG("");
    strand_group_done(&g);
    strand_join(a);
    strand_join(b);
    CHECK_LOG("go go");
}

struct task {
    strand_group *group;
    int value;
};

static void *do_task(void *arg)
{
    struct task *task = arg;
    if (task->value % 2)
        strand_yield();
    task->value = -1;
    strand_group_done(task->group);
    return NULL;
}

/* The group is on the waiter's stack, and gone when it has waited. */
static void run_tasks(strand_scope s, struct task *tasks, int n)
{
    strand_group mine = {{0}};
    strand_group_add(&mine, (uint32_t)n);
    for (int i = 0; i < n; i++) {
        tasks[i] = (struct task){&mine, i};
        strand_spawn(s, do_task, &tasks[i]);
    }
    strand_group_wait(&mine);
    memset(&mine, 0x5a, sizeof mine);
    for (int i = 0; i < n; i++)
        CHECK_EQ(tasks[i].value, -1);
}

/* contract 8.2 */
TEST_RACE(a_waiter_sees_what_was_done_and_may_free_the_group)
{
    for (long i = 0; i < test_scale(2000); i++) {
        struct task tasks[5];
        STRAND_SCOPE(s);
        run_tasks(s, tasks, 5);
        strand_scope_join(s);
    }
}

TEST_INSIDE(a_cancelled_waiter_leaves_no_trace)
{
    STRAND_SCOPE(s);
    g = (strand_group){{0}};
    strand_group_add(&g, 1);
    strand a = spawn_waiter(s, "a", 1), b = spawn_waiter(s, "b", 2);
    strand_cancel(a, "not needed");
    CHECK(test_join_interrupted(a));
    strand_group_done(&g);
    strand_join(b);
    CHECK_LOG("b");
}

static void *add_and_done(void *group)
{
    strand_group_add(group, 1);
    strand_group_done(group);
    test_log("done");
    strand_group_wait(group);
    test_log("waited");
    return NULL;
}

/* contract 4.22 */
TEST_INSIDE(counting_is_not_interrupted_and_waiting_is)
{
    strand_group mine = {{0}};
    test_run_cancelled(add_and_done, &mine);
    CHECK_LOG("done");
}

static void *wait_for_a_moment(void *group)
{
    STRAND_DEADLINE(strand_in(STRAND_MS));
    strand_group_wait(group);
    return NULL;
}

TEST_INSIDE(a_deadline_ends_the_waiting)
{
    strand_group mine = {{0}};
    strand_group_add(&mine, 1);
    CHECK_THROWS(wait_for_a_moment, &mine, &STRAND_TIMED_OUT);
    strand_group_done(&mine);
}

/* ---- latches --------------------------------------------------------------------------------------------- */

static void *wait_for_latch(void *latch)
{
    strand_latch_wait(latch);
    test_log("open");
    return NULL;
}

/* contract 5.6 */
TEST_INSIDE(a_latch_opens_at_zero_and_stays_open)
{
    strand_latch latch = STRAND_LATCH_INIT(3);
    STRAND_SCOPE(s);
    strand child = strand_spawn(s, wait_for_latch, &latch);
    test_await_blocked("waits for group", 1);
    strand_latch_count_down(&latch, 2);
    CHECK(!strand_ended(child));
    strand_latch_count_down(&latch, 1);
    strand_join(child);
    strand_latch_wait(&latch);
    CHECK_LOG("open");
}

/* ---- select ---------------------------------------------------------------------------------------------- */

static void *select_both(void *latch)
{
    strand_case cases[] = {strand_on_group(&g), strand_on_latch(latch)};
    return TEST_PTR(strand_select(cases, 2, 0));
}

TEST_INSIDE(a_select_waits_for_a_group_or_a_latch)
{
    strand_latch latch = STRAND_LATCH_INIT(1);
    STRAND_SCOPE(s);
    g = (strand_group){{0}};
    strand_group_add(&g, 1);
    strand child = strand_spawn(s, select_both, &latch);
    test_await_blocked("waits for one of", 1);
    strand_latch_count_down(&latch, 1);
    CHECK_PTR(strand_join(child), TEST_PTR(1));
    latch = (strand_latch)STRAND_LATCH_INIT(1);
    child = strand_spawn(s, select_both, &latch);
    test_await_blocked("waits for one of", 1);
    strand_group_done(&g);
    CHECK_PTR(strand_join(child), TEST_PTR(0));
}
