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
TEST_INSIDE(who_waits_is_served_in_the_order_of_coming)
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

static void *lock_until_told(void *arg)
{
    STRAND_LOCKED(&m);
    test_yield_until(&go_on, 1);
    return arg;
}

/* contract 5.3, 5.6 */
TEST_INSIDE(nobody_overtakes_who_waits)
{
    STRAND_SCOPE(s);
    m = (strand_mutex){{0}};
    go_on = 0;
    strand_mutex_lock(&m);
    spawn_waiter(s, lock_until_told, NULL, 1);
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

static void *hold_for_a_while(void *mutex)
{
    STRAND_LOCKED((strand_mutex *)mutex);
    strand_sleep(20 * STRAND_MS);
    return NULL;
}

TEST_INSIDE(a_deadline_ends_the_waiting)
{
    strand_mutex mine = {0};
    STRAND_SCOPE(s);
    strand_spawn(s, hold_for_a_while, &mine);
    while (strand_mutex_try_lock(&mine) == 0) {
        strand_mutex_unlock(&mine);
        strand_yield();
    }
    strand_exception *e = strand_try(lock_for_a_moment, &mine, NULL);
    CHECK_KIND(e, &STRAND_TIMED_OUT);
    strand_exception_release(e);
    CHECK(!strand_mutex_held(&mine));
    strand_scope_join(s);
    CHECK_EQ(strand_mutex_try_lock(&mine), 0);
    strand_mutex_unlock(&mine);
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
    strand_exception *e = strand_try(throw_while_locked, &mine, NULL);
    CHECK_KIND(e, &TEST_ERROR);
    strand_exception_release(e);
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

TEST_RACE(who_had_the_mutex_last_may_free_it)
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

/* ---- misuse ---------------------------------------------------------------------------------------------- */

static struct test_output o;

static void misuse(const char *name, const char *function, const char *made)
{
    test_program(&o, "locks", name);
    CHECK(strstr(o.out, "still alive") == NULL);
    CHECK(o.signalled);
    CHECK_CONTAINS(o.out, function);
    CHECK_CONTAINS(o.out, made);
}

TEST_PROGRAM(unlocking_what_another_strand_holds_is_misuse_and_tells_who_holds_it)
{
    misuse("unlock_of_another", "function=strand_mutex_unlock", "by strand 'root'");
    CHECK_CONTAINS(o.out, "lock_here");
}

TEST_PROGRAM(unlocking_what_nobody_holds_is_misuse)
{
    misuse("unlock_of_nobody", "function=strand_mutex_unlock", "the mutex is not locked");
}

TEST_PROGRAM(locking_a_mutex_of_ones_own_is_misuse_and_tells_where_it_was_locked)
{
    misuse("lock_twice", "function=strand_mutex_lock", "lock_here");
}

TEST_PROGRAM(ending_with_a_mutex_is_misuse_and_tells_where_it_was_locked)
{
    misuse("end_with_a_mutex", "ends, and still holds a mutex", "lock_here");
    misuse("throw_with_a_mutex", "by the exception 'with a mutex', and still holds a mutex", "lock_here");
    misuse("end_the_root_with_a_mutex", "ends, and still holds a mutex", "lock_here");
}

TEST_PROGRAM(ending_with_a_mutex_whose_memory_is_gone_is_misuse_and_tells_where_it_was_locked)
{
    misuse("end_with_a_lost_mutex", "ends, and still holds a mutex", "was locked in lose_mutexes+");
    CHECK_CONTAINS(o.out, "the mutex at 0x");
    CHECK(strstr(o.out, "it holds") == NULL);
    misuse("end_with_many_lost_mutexes", "ends, and still holds a mutex", "was locked in lose_mutexes+");
    CHECK_CONTAINS(o.out, ", and it holds 39 more");
}

/* contract 4.66 */
TEST_PROGRAM(misuse_tells_which_object_it_is_about)
{
    static const char *const cases[][2] = {
        {"unlock_of_nobody", "the mutex is at 0x"},
        {"wait_without_the_mutex", "the mutex is at 0x"},
        {"read_done_by_nobody", "the lock is at 0x"},
        {"release_too_many", "the semaphore is at 0x"},
        {"acquire_too_many", "the semaphore is at 0x"},
        {"begin_above_the_bound", "the semaphore is at 0x"},
        {"wait_at_a_zeroed_barrier", "the barrier is at 0x"},
        {"once_within_once", "the once is at 0x"},
        {"done_too_often", "the group is at 0x"},
        {"count_down_too_far", "the latch is at 0x"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        misuse(cases[i][0], "function=strand_", cases[i][1]);
}

/* Of every function and case of strand/sync.h: the program's own table. */
TEST_PROGRAM(null_for_an_object_is_misuse_of_the_function)
{
    struct test_output names;
    int count = 0;
    test_program(&names, "locks", "names_with_null");
    for (char *name = names.out, *end; (end = strchr(name, '\n')) && strncmp(name, "still", 5) != 0; name = end + 1) {
        char argument[64], told[80];
        snprintf(argument, sizeof argument, "null:%.*s", (int)(end - name), name);
        snprintf(told, sizeof told, "function=%.*s; what=the ", (int)(end - name), name);
        misuse(argument, told, " is NULL; ");
        count++;
    }
    CHECK_EQ(count, 41);
    misuse("condition_wait_with_no_mutex", "function=strand_condition_wait", "the mutex is NULL");
}

static void misuse_by_two(const char *name, const char *function, const char *how)
{
    misuse(name, function, "is used by two runs of the process, but belongs to one");
    CHECK_CONTAINS(o.out, how);
}

/* V-01 */
TEST_PROGRAM(waiting_with_strands_of_another_run_is_misuse)
{
    misuse_by_two("lock_what_another_run_holds", "function=strand_mutex_lock", "of another run holds it");
    misuse_by_two("once_that_another_run_is_at", "function=strand_once_run", "of another run holds it");
    misuse_by_two("set_what_another_run_waits_for", "function=strand_event_wait", "of another run waits for it");
    misuse_by_two("queue_behind_another_run", "function=strand_semaphore_acquire", "of another run waits for it");
    misuse_by_two("select_behind_another_run", "function=strand_select", "of another run waits for it");
    misuse_by_two("meet_another_run_at_a_barrier", "function=strand_barrier_wait", "of another run waits for it");
}

TEST_PROGRAM(locking_in_a_no_suspend_section_is_misuse)
{
    misuse("lock_in_no_suspend", "function=strand_mutex_lock", "no-suspend section");
}

TEST_PROGRAM(locking_on_a_plain_thread_is_misuse)
{
    test_program(&o, "locks", "lock_on_a_plain_thread");
    CHECK(o.signalled);
    CHECK_CONTAINS(o.err, "strand_mutex_lock");
}
