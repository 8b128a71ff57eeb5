/*
 * Mutexes: one strand at a time, first come first served, and never lost.
 */
#define SUITE mutex
#include "test.h"

#include "strand/sync.h"

#include <errno.h>

#define BLOCKED "waits for mutex"

static strand_mutex m;
static _Atomic int go_on;

/* ---- exclusion ------------------------------------------------------------------------------------------- */

static long counter;

static void *count_up(void *times)
{
    for (intptr_t i = 0; i < (intptr_t)times; i++) {
        STRAND_LOCKED(&m);
        long was = counter;
        if (i % 16 == 0)
            strand_yield();
        counter = was + 1;
    }
    return NULL;
}

/* contract 5.6 */
TEST_RACE(one_strand_at_a_time_holds_a_mutex)
{
    long times = test_scale(20000);
    STRAND_SCOPE(s);
    counter = 0;
    for (int i = 0; i < 6; i++)
        strand_spawn(s, count_up, TEST_PTR(times));
    strand_scope_join(s);
    CHECK_EQ(counter, 6 * times);
}

TEST_INSIDE(a_zeroed_mutex_can_be_locked_and_unlocked_again_and_again)
{
    strand_mutex mine = {0};
    for (int i = 0; i < 3; i++) {
        strand_mutex_lock(&mine);
        CHECK(strand_mutex_held(&mine));
        strand_mutex_unlock(&mine);
        CHECK(!strand_mutex_held(&mine));
    }
}

TEST_INSIDE(several_mutexes_are_unlocked_in_any_order)
{
    strand_mutex many[3] = {{{0}}};
    for (int i = 0; i < 3; i++)
        strand_mutex_lock(&many[i]);
    strand_mutex_unlock(&many[1]);
    strand_mutex_unlock(&many[0]);
    CHECK(strand_mutex_held(&many[2]));
    strand_mutex_unlock(&many[2]);
}

TEST_INSIDE(a_strand_may_hold_very_many_mutexes_and_unlock_them_in_any_order)
{
    enum { MANY = 200 };
    strand_mutex many[MANY] = {{{0}}};
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < MANY; i++)
            strand_mutex_lock(&many[i]);
        for (int i = 0; i < MANY; i++) /* 7 has no divisor in common with MANY */
            strand_mutex_unlock(&many[i * 7 % MANY]);
    }
    for (int i = 0; i < MANY; i++)
        CHECK(!strand_mutex_held(&many[i]));
}

/* ---- order ----------------------------------------------------------------------------------------------- */

static void *lock_and_log(void *name)
{
    STRAND_LOCKED(&m);
    test_log("%s", (const char *)name);
    return NULL;
}

/* Waits for m, behind all who do already. */
static strand spawn_waiter(strand_scope s, strand_fn *fn, void *arg, int waiters)
{
    strand child = strand_spawn(s, fn, arg);
    test_await_blocked(BLOCKED, waiters);
    return child;
}

/* contract 5.3, 5.6 */
TEST_INSIDE(waiters_are_served_in_fifo_order)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    STRAND_SCOPE(s);
    m = (strand_mutex){{0}};
    strand_mutex_lock(&m);
    for (int i = 0; i < 4; i++)
        spawn_waiter(s, lock_and_log, (void *)(uintptr_t)names[i], i + 1);
    CHECK_LOG("");
    strand_mutex_unlock(&m);
    strand_scope_join(s);
    CHECK_LOG("a b c d");
}

static void *lock_until_released(void *arg)
{
    STRAND_LOCKED(&m);
    test_yield_until(&go_on, 1);
    return arg;
}

/* contract 5.3, 5.6 */
TEST_INSIDE(no_caller_overtakes_a_waiter)
{
    STRAND_SCOPE(s);
    m = (strand_mutex){{0}};
    go_on = 0;
    strand_mutex_lock(&m);
    spawn_waiter(s, lock_until_released, NULL, 1);
    strand_mutex_unlock(&m);
    CHECK_EQ(strand_mutex_try_lock(&m), -EAGAIN);
    go_on = 1;
    strand_mutex_lock(&m);
    strand_mutex_unlock(&m);
    strand_scope_join(s);
}

/* ---- interruption ---------------------------------------------------------------------------------------- */

/* contract 5.4 */
TEST_INSIDE(a_cancelled_waiter_leaves_no_trace)
{
    STRAND_SCOPE(s);
    m = (strand_mutex){{0}};
    strand_mutex_lock(&m);
    (void)spawn_waiter(s, lock_and_log, "a", 1);
    strand second = spawn_waiter(s, lock_and_log, "b", 2);
    (void)spawn_waiter(s, lock_and_log, "c", 3);
    strand_cancel(second, "not needed");
    CHECK(test_join_interrupted(second));
    strand_mutex_unlock(&m);
    strand_scope_join(s);
    CHECK_LOG("a c");
    CHECK_EQ(strand_mutex_try_lock(&m), 0);
    strand_mutex_unlock(&m);
}

static void *lock_it(void *mutex)
{
    strand_mutex_lock(mutex);
    test_log("locked");
    strand_mutex_unlock(mutex);
    return NULL;
}

TEST_INSIDE(an_interrupted_strand_gets_not_even_a_free_mutex)
{
    strand_mutex mine = {0};
    test_run_cancelled(lock_it, &mine);
    CHECK_LOG("");
    CHECK_EQ(strand_mutex_try_lock(&mine), 0);
    strand_mutex_unlock(&mine);
}

static void *try_and_unlock(void *mutex)
{
    CHECK_EQ(strand_mutex_try_lock(mutex), 0);
    strand_mutex_unlock(mutex);
    test_log("done");
    return NULL;
}

/* contract 4.21, 4.22 */
TEST_INSIDE(trying_and_unlocking_are_not_interrupted)
{
    strand_mutex mine = {0};
    test_run_cancelled(try_and_unlock, &mine);
    CHECK_LOG("done");
}

/* The mutex comes at the same moment: either it was locked, and is unlocked again, or the waiter was interrupted. */
static void *lock_and_note(void *got)
{
    STRAND_LOCKED(&m);
    *(bool *)got = true;
    return NULL;
}

/* contract 5.1 */
TEST_RACE(a_cancel_races_with_the_handing_over)
{
    for (long i = 0; i < test_scale(3000); i++) {
        STRAND_SCOPE(s);
        bool first_got = false, second_got = false;
        m = (strand_mutex){{0}};
        strand_mutex_lock(&m);
        strand first = strand_spawn(s, lock_and_note, &first_got), second = strand_spawn(s, lock_and_note, &second_got);
        for (int n = 0; n < i % 5; n++)
            strand_yield();
        if (i % 2)
            strand_cancel(first, "race");
        strand_mutex_unlock(&m);
        if (i % 2 == 0)
            strand_cancel(first, "race");
        bool interrupted = test_join_interrupted(first);
        CHECK_EQ(interrupted, !first_got);
        strand_join(second);
        CHECK(second_got);
        CHECK_EQ(strand_mutex_try_lock(&m), 0);
        strand_mutex_unlock(&m);
    }
}

static void *lock_for_a_moment(void *mutex)
{
    STRAND_DEADLINE(strand_in(STRAND_MS));
    strand_mutex_lock(mutex);
    return NULL;
}

struct held {
    strand_mutex mutex;
    strand_event is_held, go_on;
};

static void *hold_until_go_on(void *arg)
{
    struct held *held = arg;
    STRAND_LOCKED(&held->mutex);
    strand_event_set(&held->is_held);
    strand_event_wait(&held->go_on);
    return NULL;
}

TEST_INSIDE(a_deadline_ends_the_waiting)
{
    struct held held = {0};
    STRAND_SCOPE(s);
    strand_spawn(s, hold_until_go_on, &held);
    strand_event_wait(&held.is_held);
    CHECK_THROWS(lock_for_a_moment, &held.mutex, &STRAND_TIMED_OUT);
    CHECK(!strand_mutex_held(&held.mutex));
    strand_event_set(&held.go_on);
    strand_scope_join(s);
    CHECK_EQ(strand_mutex_try_lock(&held.mutex), 0);
    strand_mutex_unlock(&held.mutex);
}

TEST_INSIDE(trying_does_not_wait)
{
    strand_mutex mine = {0};
    CHECK_EQ(strand_mutex_try_lock(&mine), 0);
    CHECK_EQ(strand_mutex_try_lock(&mine), -EAGAIN);
    strand_mutex_unlock(&mine);
}

/* ---- blocks ---------------------------------------------------------------------------------------------- */

static void *throw_while_locked(void *mutex)
{
    STRAND_LOCKED((strand_mutex *)mutex);
    CHECK(strand_mutex_held(mutex));
    strand_throw(&TEST_ERROR, "failed");
}

static int return_while_locked(strand_mutex *mutex)
{
    STRAND_LOCKED(mutex);
    return strand_mutex_held(mutex);
}

TEST_INSIDE(a_block_is_locked_until_it_is_left_by_whatever_way)
{
    strand_mutex mine = {0};
    CHECK_THROWS(throw_while_locked, &mine, &TEST_ERROR);
    CHECK(!strand_mutex_held(&mine));
    CHECK_EQ(return_while_locked(&mine), 1);
    CHECK(!strand_mutex_held(&mine));
    for (int i = 0; i < 2; i++) {
        STRAND_LOCKED(&mine);
        CHECK(strand_mutex_held(&mine));
        if (i == 0)
            continue;
        break;
    }
    CHECK(!strand_mutex_held(&mine));
}

/* ---- its memory ------------------------------------------------------------------------------------------ */

struct counted {
    strand_mutex mutex;
    int references;
};

static void *let_go(void *arg)
{
    struct counted *counted = arg;
    strand_mutex_lock(&counted->mutex);
    bool last = --counted->references == 0;
    strand_mutex_unlock(&counted->mutex);
    if (last) {
        memset(counted, 0x5a, sizeof *counted);
        free(counted);
    }
    return NULL;
}

TEST_RACE(the_last_holder_of_a_mutex_may_free_it)
{
    for (long i = 0; i < test_scale(3000); i++) {
        STRAND_SCOPE(s);
        struct counted *counted = calloc(1, sizeof *counted);
        counted->references = 4;
        for (int n = 0; n < 4; n++)
            strand_spawn(s, let_go, counted);
        strand_scope_join(s);
    }
}
