/*
 * Events: set, and all who wait go on.
 */
#define SUITE event
#include "test.h"

#include "strand/sync.h"

#include <errno.h>

static strand_event e;

static void *wait_and_log(void *name)
{
    strand_event_wait(&e);
    test_log("%s", (const char *)name);
    return NULL;
}

static strand spawn_waiter(strand_scope s, char *name, int waiters)
{
    strand child = strand_spawn(s, wait_and_log, name);
    test_await_blocked("waits for event", waiters);
    return child;
}

TEST_INSIDE(an_event_that_is_set_is_not_waited_for)
{
    strand_event mine = {{0}};
    CHECK(!strand_event_is_set(&mine));
    strand_event_set(&mine);
    strand_event_set(&mine);
    CHECK(strand_event_is_set(&mine));
    strand_event_wait(&mine);
    strand_event_wait(&mine);
    strand_event_clear(&mine);
    CHECK(!strand_event_is_set(&mine));
}

/* contract 5.6 */
TEST_INSIDE(all_waiters_continue_although_the_event_is_cleared_at_once)
{
    STRAND_SCOPE(s);
    e = (strand_event){{0}};
    strand a = spawn_waiter(s, "go", 1), b = spawn_waiter(s, "go", 2);
    strand_event_set(&e);
    strand_event_clear(&e);
    strand_join(a);
    strand_join(b);
    CHECK_LOG("go go");
    strand d = spawn_waiter(s, "go", 1);
    strand_event_set(&e);
    strand_join(d);
}

TEST_INSIDE(a_cancelled_waiter_leaves_no_trace)
{
    STRAND_SCOPE(s);
    e = (strand_event){{0}};
    strand a = spawn_waiter(s, "a", 1), b = spawn_waiter(s, "b", 2);
    strand_cancel(a, "not needed");
    CHECK(test_join_interrupted(a));
    strand_event_set(&e);
    strand_join(b);
    CHECK_LOG("b");
}

static void *set_it(void *event)
{
    strand_event_set(event);
    strand_event_clear(event);
    strand_event_set(event);
    return NULL;
}

/* contract 4.22 */
TEST_INSIDE(setting_is_not_interrupted_and_waiting_is_although_it_is_set)
{
    e = (strand_event){{0}};
    test_run_cancelled(set_it, &e);
    CHECK(strand_event_is_set(&e));
    test_run_cancelled(wait_and_log, "waited");
    CHECK_LOG("");
}

static void *wait_for_a_moment(void *event)
{
    STRAND_DEADLINE(strand_in(STRAND_MS));
    strand_event_wait(event);
    return NULL;
}

TEST_INSIDE(a_deadline_ends_the_waiting)
{
    strand_event mine = {{0}};
    CHECK_THROWS(wait_for_a_moment, &mine, &STRAND_TIMED_OUT);
    strand_event_set(&mine);
    CHECK_PTR(strand_try(wait_for_a_moment, &mine, NULL), NULL);
}

struct shared {
    strand_event event;
    int value;
};

static void *read_and_free(void *arg)
{
    struct shared *shared = arg;
    strand_event_wait(&shared->event);
    CHECK_EQ(shared->value, 42);
    memset(shared, 0x5a, sizeof *shared);
    free(shared);
    return NULL;
}

/* contract 8.2 */
TEST_RACE(a_waiter_sees_what_was_done_before_and_may_free_the_event)
{
    STRAND_SCOPE(s);
    for (long i = 0; i < test_scale(5000); i++) {
        struct shared *shared = calloc(1, sizeof *shared);
        strand child = strand_spawn(s, read_and_free, shared);
        if (i % 3 == 0)
            strand_yield();
        shared->value = 42;
        strand_event_set(&shared->event);
        strand_join(child);
    }
}

/* contract 5.1 */
TEST_RACE(a_cancel_races_with_the_setting)
{
    for (long i = 0; i < test_scale(3000); i++) {
        STRAND_SCOPE(s);
        e = (strand_event){{0}};
        strand first = strand_spawn(s, wait_and_log, ""), second = strand_spawn(s, wait_and_log, "");
        for (int n = 0; n < i % 5; n++)
            strand_yield();
        if (i % 2)
            strand_cancel(first, "race");
        strand_event_set(&e);
        strand_cancel(first, "race");
        (void)test_join_interrupted(first);
        strand_join(second);
        test_log_clear();
    }
}

/* ---- select ---------------------------------------------------------------------------------------------- */

static void *select_two(void *other)
{
    strand_case cases[] = {strand_on_event(&e), strand_on_event(other), strand_on_time(strand_in(FOREVER))};
    return TEST_PTR(strand_select(cases, 3, 0));
}

TEST_INSIDE(a_select_waits_for_one_of_several_events)
{
    strand_event other = {{0}};
    STRAND_SCOPE(s);
    e = (strand_event){{0}};
    strand child = strand_spawn(s, select_two, &other);
    test_await_blocked("waits for one of", 1);
    strand_event_set(&other);
    CHECK_PTR(strand_join(child), TEST_PTR(1));
    strand_case now[] = {strand_on_event(&e), strand_on_event(&other)};
    CHECK_EQ(strand_select(now, 1, STRAND_SELECT_NOW), -EAGAIN);
    CHECK_EQ(strand_select(now, 2, STRAND_SELECT_NOW), 1);
    CHECK(strand_event_is_set(&other));
}

TEST_INSIDE(a_select_that_ends_otherwise_leaves_no_trace)
{
    strand_event other = {{0}};
    e = (strand_event){{0}};
    strand_case cases[] = {strand_on_event(&e), strand_on_event(&other), strand_on_time(strand_in(STRAND_MS))};
    CHECK_EQ(strand_select(cases, 3, 0), 2);
    STRAND_SCOPE(s);
    strand child = strand_spawn(s, select_two, &other);
    test_await_blocked("waits for one of", 1);
    strand_cancel(child, "not needed");
    CHECK(test_join_interrupted(child));
    strand_event_set(&e);
    strand_event_set(&other);
}

static void *set_both(void *other)
{
    strand_event_set(&e);
    strand_event_set(other);
    return NULL;
}

TEST_RACE(selects_race_with_the_setting)
{
    for (long i = 0; i < test_scale(3000); i++) {
        STRAND_SCOPE(s);
        strand_event other = {{0}};
        e = (strand_event){{0}};
        strand setter = strand_spawn(s, set_both, &other), child = strand_spawn(s, select_two, &other);
        for (int n = 0; n < i % 3; n++)
            strand_yield();
        CHECK((intptr_t)strand_join(child) < 2);
        strand_join(setter);
    }
}
