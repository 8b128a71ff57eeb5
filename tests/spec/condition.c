/*
 * Conditions: no signal is missed, and the mutex is held again whatever the wait ended by.
 */
#define SUITE condition
#include "test.h"

#include "strand/sync.h"

#include <errno.h>

#define BLOCKED "waits for condition"

static strand_mutex m;
static strand_condition c;
static int ready, awake; /* under m */

static void start(void)
{
    m = (strand_mutex){{0}};
    c = (strand_condition){{0}};
    ready = awake = 0;
}

static void *wait_once_and_log(void *name)
{
    STRAND_LOCKED(&m);
    strand_condition_wait(&c, &m);
    CHECK(strand_mutex_held(&m));
    awake++;
    test_log("%s", (const char *)name);
    return NULL;
}

static strand spawn_waiter(strand_scope s, char *name, int waiters)
{
    strand child = strand_spawn(s, wait_once_and_log, name);
    test_await_blocked(BLOCKED, waiters);
    return child;
}

static void signal_it(void)
{
    STRAND_LOCKED(&m);
    strand_condition_signal(&c);
}

/* ---- signals --------------------------------------------------------------------------------------------- */

/* contract 5.3, 5.6 */
TEST_INSIDE(a_signal_wakes_the_longest_waiting_strand)
{
    STRAND_SCOPE(s);
    start();
    strand a = spawn_waiter(s, "a", 1), b = spawn_waiter(s, "b", 2), d = spawn_waiter(s, "d", 3);
    signal_it();
    strand_join(a);
    CHECK_LOG("a");
    signal_it();
    strand_join(b);
    signal_it();
    strand_join(d);
    CHECK_LOG("a b d");
}

/* In which order they then lock the mutex is the scheduler's business: below it is one that keeps the order. */
TEST_INSIDE(a_broadcast_wakes_all)
{
    STRAND_SCOPE(s);
    start();
    spawn_waiter(s, "a", 1);
    spawn_waiter(s, "b", 2);
    spawn_waiter(s, "d", 3);
    strand_mutex_lock(&m);
    strand_condition_broadcast(&c);
    strand_mutex_unlock(&m);
    strand_scope_join(s);
    CHECK_EQ(awake, 3);
    strand_mutex_lock(&m);
    strand_mutex_unlock(&m);
}

static void *broadcast_to_three(void *arg)
{
    STRAND_SCOPE(s);
    start();
    spawn_waiter(s, "a", 1);
    spawn_waiter(s, "b", 2);
    spawn_waiter(s, "d", 3);
    strand_condition_broadcast(&c);
    strand_scope_join(s);
    return arg;
}

TEST_REAL(a_broadcast_wakes_the_longest_waiting_strand_first)
{
    strand_options options = test_options();
    options.scheduler = "global";
    options.threads = 1;
    strand_run(&options, broadcast_to_three, NULL);
    CHECK_LOG("a b d");
}

TEST_INSIDE(a_signal_that_nobody_waits_for_is_not_kept)
{
    STRAND_SCOPE(s);
    start();
    strand_condition_signal(&c);
    strand_condition_broadcast(&c);
    strand a = spawn_waiter(s, "a", 1);
    for (int i = 0; i < 10; i++)
        strand_yield();
    CHECK(!strand_ended(a));
    signal_it();
    strand_join(a);
}

static void *hand_round(void *arg)
{
    int me = (int)(intptr_t)arg;
    for (long i = 0; i < test_scale(2000); i++) {
        STRAND_LOCKED(&m);
        while (ready % 3 != me)
            strand_condition_wait(&c, &m);
        ready++;
        strand_condition_broadcast(&c);
    }
    return NULL;
}

TEST_RACE(strands_that_wait_for_each_other_s_changes_miss_none)
{
    STRAND_SCOPE(s);
    start();
    for (int i = 0; i < 3; i++)
        strand_spawn(s, hand_round, TEST_PTR(i));
    strand_scope_join(s);
    CHECK_EQ(ready, 3 * test_scale(2000));
}

static void *consume(void *times)
{
    for (intptr_t i = 0; i < (intptr_t)times; i++) {
        STRAND_LOCKED(&m);
        while (!ready)
            strand_condition_wait(&c, &m);
        ready--;
    }
    return NULL;
}

TEST_RACE(a_signal_for_each_item_is_enough)
{
    STRAND_SCOPE(s);
    start();
    long times = test_scale(3000);
    for (int i = 0; i < 3; i++)
        strand_spawn(s, consume, TEST_PTR(times));
    for (long i = 0; i < 3 * times; i++) {
        STRAND_LOCKED(&m);
        ready++;
        strand_condition_signal(&c);
    }
    strand_scope_join(s);
    CHECK_EQ(ready, 0);
}

/* ---- interruption ---------------------------------------------------------------------------------------- */

static void *wait_and_see_the_mutex(void *arg)
{
    STRAND_LOCKED(&m);
    STRAND_TRY {
        strand_condition_wait(&c, &m);
    }
    STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        CHECK(strand_mutex_held(&m));
        test_log("interrupted");
        strand_rethrow(strand_exception_keep(e));
    }
    STRAND_END
    return arg;
}

/* contract 5.4, 5.6 */
TEST_INSIDE(an_interrupted_waiter_holds_the_mutex_when_it_throws)
{
    STRAND_SCOPE(s);
    start();
    strand child = strand_spawn(s, wait_and_see_the_mutex, NULL);
    test_await_blocked(BLOCKED, 1);
    strand_mutex_lock(&m);
    strand_cancel(child, "not needed");
    test_await_blocked("waits for mutex", 1); /* it waits on, although it is cancelled */
    CHECK_LOG("");
    strand_mutex_unlock(&m);
    CHECK(test_join_interrupted(child));
    CHECK_LOG("interrupted");
}

TEST_INSIDE(an_interrupted_strand_does_not_let_go_of_the_mutex)
{
    start();
    test_run_cancelled(wait_once_and_log, "woken");
    CHECK_LOG("");
    CHECK_EQ(strand_mutex_try_lock(&m), 0);
    strand_mutex_unlock(&m);
}

static void *wait_for_the_condition(void *arg)
{
    strand_condition_wait(&c, &m);
    return arg;
}

static void *lock_and_log(void *arg)
{
    STRAND_LOCKED(&m);
    test_log("locked");
    return arg;
}

/* Cancelled, with a mutex that somebody else waits for. */
static void *wait_with_the_mutex(void *arg)
{
    CHECK_EQ(strand_mutex_try_lock(&m), 0);
    STRAND_SCOPE(s);
    strand other = strand_spawn(s, lock_and_log, arg);
    {
        STRAND_SHIELD;
        test_await_blocked("waits for mutex", 1);
    }
    CHECK_THROWS(wait_for_the_condition, arg, &STRAND_INTERRUPTED);
    CHECK(strand_mutex_held(&m));
    CHECK_LOG("");
    strand_mutex_unlock(&m);
    STRAND_SHIELD;
    return strand_join(other);
}

/* contract 1.7 */
TEST_INSIDE(a_cancelled_strand_does_not_let_go_of_the_mutex_to_wait)
{
    start();
    test_run_cancelled(wait_with_the_mutex, NULL);
    CHECK_LOG("locked");
}

/* contract 5.4 */
TEST_INSIDE(a_cancelled_waiter_takes_no_signal_with_it)
{
    STRAND_SCOPE(s);
    start();
    strand a = spawn_waiter(s, "a", 1), b = spawn_waiter(s, "b", 2);
    strand_cancel(a, "not needed");
    signal_it();
    CHECK(test_join_interrupted(a));
    strand_join(b);
    CHECK_LOG("b");
}

/* contract 5.1 */
TEST_RACE(a_cancel_races_with_a_signal)
{
    for (long i = 0; i < test_scale(2000); i++) {
        STRAND_SCOPE(s);
        start();
        ready = 0;
        strand first = strand_spawn(s, consume, TEST_PTR(1)), second = strand_spawn(s, consume, TEST_PTR(1));
        for (int n = 0; n < i % 5; n++)
            strand_yield();
        if (i % 2)
            strand_cancel(first, "race");
        {
            STRAND_LOCKED(&m);
            ready++;
            strand_condition_signal(&c);
        }
        strand_cancel(first, "race");
        bool interrupted = test_join_interrupted(first);
        if (!interrupted) {
            STRAND_LOCKED(&m);
            ready++;
            strand_condition_signal(&c);
        }
        strand_join(second);
        CHECK_EQ(ready, 0);
    }
}

static void *wait_for_a_moment(void *arg)
{
    STRAND_LOCKED(&m);
    {
        STRAND_DEADLINE(strand_in(STRAND_MS));
        strand_condition_wait(&c, &m);
    }
    return arg;
}

TEST_INSIDE(a_deadline_ends_the_waiting)
{
    start();
    CHECK_THROWS(wait_for_a_moment, NULL, &STRAND_TIMED_OUT);
    CHECK(!strand_mutex_held(&m));
}
