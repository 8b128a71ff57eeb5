/*
 * Pools that a plain thread drives from its own loop.
 */
#define _GNU_SOURCE
#define SUITE drive
#include "test.h"

#include "strand/chan.h"
#include "strand/io.h"
#include "strand/pool.h"
#include "strand/sim.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

/* A thread with a loop of its own, and what it is to drive. */
struct loop {
    strand_pool pool;
    pthread_t thread;
    pid_t id;
    _Atomic bool started;
    _Atomic long calls, waits;
    bool waits_inside; /* STRAND_DRIVE_WAIT, else it polls the descriptor */
};

static void *loop_main(void *arg)
{
    struct loop *loop = arg;
    loop->id = gettid();
    loop->started = true;
    for (;;) {
        struct pollfd ready = {.fd = strand_pool_fd(loop->pool), .events = POLLIN};
        if (!loop->waits_inside && ready.fd >= 0) {
            poll(&ready, 1, -1);
            loop->waits++;
        }
        loop->calls++;
        int64_t long_enough = loop->waits_inside ? 20 * STRAND_MS : STRAND_MS;
        int result = strand_pool_drive(loop->pool, strand_in(long_enough), loop->waits_inside ? STRAND_DRIVE_WAIT : 0);
        if (!result)
            return NULL;
        CHECK_EQ(result, 1);
    }
}

static void start(struct loop *loop)
{
    CHECK_EQ(pthread_create(&loop->thread, NULL, loop_main, loop), 0);
    while (!loop->started)
        strand_sleep(STRAND_MS);
}

static strand_pool open_driven(strand_scope scope)
{
    return strand_pool_open(scope, STRAND_POOL_ATTR(.scheduler = "current", .name = "main"));
}

/* With all ways of waiting: what is ready, timers, descriptors, channels, posts. */
static void *live_there(void *arg)
{
    struct loop *loop = arg;
    int fds[2];
    char byte;
    CHECK_EQ(gettid(), loop->id);
    strand_sleep(2 * STRAND_MS);
    CHECK_EQ(gettid(), loop->id);
    CHECK_EQ(strand_pipe(fds), 0);
    CHECK_EQ(strand_write(fds[1], "x", 1), 1);
    CHECK_EQ(strand_read(fds[0], &byte, 1), 1);
    for (int i = 0; i < 10; i++)
        strand_yield();
    CHECK_EQ(gettid(), loop->id);
    strand_close(fds[0]);
    strand_close(fds[1]);
    return arg;
}

static void *answer(void *arg)
{
    strand_chan *chans = arg;
    long value;
    while (strand_chan_receive(chans[0], &value) == 0)
        STRAND_IGNORE(strand_chan_send(chans[1], &value));
    return arg;
}

static void use_loop(bool waits_inside)
{
    static struct loop loop;
    static strand_chan chans[2];
    loop = (struct loop){.waits_inside = waits_inside};
    {
        STRAND_SCOPE(scope);
        loop.pool = open_driven(scope);
        start(&loop);
        for (int i = 0; i < 5; i++)
            test_spawn_onto(scope, loop.pool, live_there, &loop);
        chans[0] = strand_chan_open(scope, sizeof(long), 0, NULL);
        chans[1] = strand_chan_open(scope, sizeof(long), 0, NULL);
        test_spawn_onto(scope, loop.pool, answer, chans);
        for (long i = 0, value; i < 50; i++) {
            STRAND_IGNORE(strand_chan_send(chans[0], &i));
            STRAND_IGNORE(strand_chan_receive(chans[1], &value));
            CHECK_EQ(value, i);
        }
        strand_chan_close(chans[0]);
        strand_scope_join(scope);
    }
    CHECK_EQ(pthread_join(loop.thread, NULL), 0);
}

/* S-43, A-11, V-03, contract 2.15 */
TEST_REAL_INSIDE(a_loop_of_the_programs_runs_a_pool_when_its_descriptor_is_readable)
{
    use_loop(false);
}

/* S-43 */
TEST_REAL_INSIDE(a_loop_of_the_programs_may_wait_inside_as_well)
{
    use_loop(true);
}

static void *sleep_long(void *arg)
{
    strand_sleep(100 * STRAND_MS);
    return arg;
}

/* S-51 */
TEST_REAL_INSIDE(a_loop_that_polls_is_not_woken_up_while_there_is_nothing_to_do)
{
    static struct loop loop;
    loop = (struct loop){0};
    {
        STRAND_SCOPE(scope);
        loop.pool = open_driven(scope);
        start(&loop);
        strand child = test_spawn_onto(scope, loop.pool, test_sleep, NULL);
        for (long before = -1; loop.calls != before;) { /* until it waits, on a busy machine after a while */
            before = loop.calls;
            strand_sleep(40 * STRAND_MS);
        }
        strand_cancel(child, NULL);
        strand_wait(child);
    }
    CHECK_EQ(pthread_join(loop.thread, NULL), 0);
}

static void *yield_until(void *arg)
{
    while (!__atomic_load_n((bool *)arg, __ATOMIC_RELAXED))
        strand_yield();
    return arg;
}

static void *spawn_until(void *arg)
{
    STRAND_SCOPE(scope);
    while (!__atomic_load_n((bool *)arg, __ATOMIC_RELAXED))
        strand_join(strand_spawn(scope, test_return, arg));
    return arg;
}

static void check_comes_back(strand_fn *busy)
{
    static struct loop loop;
    static bool stop;
    loop = (struct loop){0};
    __atomic_store_n(&stop, false, __ATOMIC_RELAXED);
    {
        STRAND_SCOPE(scope);
        loop.pool = open_driven(scope);
        start(&loop);
        test_spawn_onto(scope, loop.pool, busy, &stop);
        strand_spawn_with(scope, STRAND_ATTR(.pool = loop.pool, .pin = STRAND_PIN(0)), busy, &stop, 0);
        for (long before = loop.calls; loop.calls < before + 5;)
            strand_sleep(STRAND_MS);
        __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
        strand_scope_join(scope);
    }
    CHECK_EQ(pthread_join(loop.thread, NULL), 0);
}

/* S-44 */
TEST_REAL_INSIDE(a_drive_comes_back_in_time_though_strands_go_on_for_ever)
{
    check_comes_back(yield_until);
    check_comes_back(spawn_until);
}

static _Atomic(void *) last; /* one thread, but nothing that orders what runs on it */

static void *take_turns(void *arg)
{
    for (int i = 0; i < 300; i++) {
        CHECK(last != arg);
        last = arg;
        strand_yield();
    }
    return arg;
}

/* S-43 */
TEST_REAL_INSIDE(first_come_first_served_holds_across_drives)
{
    static struct loop loop;
    loop = (struct loop){0};
    last = NULL;
    {
        STRAND_SCOPE(scope);
        loop.pool = open_driven(scope);
        test_spawn_onto(scope, loop.pool, take_turns, TEST_PTR(1));
        test_spawn_onto(scope, loop.pool, take_turns, TEST_PTR(2));
        start(&loop);
        strand_scope_join(scope);
    }
    CHECK_EQ(pthread_join(loop.thread, NULL), 0);
}

static void *yield_a_few_times(void *arg)
{
    for (int i = 0; i < 10; i++)
        strand_yield();
    return arg;
}

/* The natural call of a loop that has other things to do. */
static void *drive_without_time(void *arg)
{
    struct loop *loop = arg;
    long calls = 0;
    while (strand_pool_drive(loop->pool, strand_in(0), 0) == 1)
        calls++;
    CHECK_EQ(strand_pool_fd(loop->pool), -ESHUTDOWN); /* which may not have been given back yet */
    return (void *)calls;
}

TEST_REAL_INSIDE(driving_with_no_time_makes_progress_too)
{
    static struct loop loop;
    pthread_t thread;
    loop = (struct loop){0};
    {
        STRAND_SCOPE(scope);
        loop.pool = open_driven(scope);
        CHECK_EQ(pthread_create(&thread, NULL, drive_without_time, &loop), 0);
        for (int i = 0; i < 3; i++)
            test_spawn_onto(scope, loop.pool, yield_a_few_times, NULL);
        strand_scope_join(scope);
    }
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void *drive_for_good(void *arg)
{
    struct loop *loop = arg;
    return (void *)(intptr_t)strand_pool_drive(loop->pool, (strand_time){0}, STRAND_DRIVE_WAIT);
}

TEST_REAL_INSIDE(driving_without_an_instant_lasts_until_the_pool_has_ended)
{
    static struct loop loop;
    pthread_t thread;
    void *result = &loop;
    loop = (struct loop){0};
    {
        STRAND_SCOPE(scope);
        loop.pool = open_driven(scope);
        CHECK_EQ(pthread_create(&thread, NULL, drive_for_good, &loop), 0);
        for (int i = 0; i < 3; i++) {
            strand_join(test_spawn_onto(scope, loop.pool, yield_a_few_times, NULL));
            strand_sleep(STRAND_MS);
        }
    }
    CHECK_EQ(pthread_join(thread, &result), 0);
    CHECK_PTR(result, NULL);
}

static void *drive_once(void *arg)
{
    return (void *)(intptr_t)strand_pool_drive(*(strand_pool *)arg, strand_in(0), 0);
}

static intptr_t drive_by_another(strand_pool *pool)
{
    pthread_t other;
    void *result;
    CHECK_EQ(pthread_create(&other, NULL, drive_once, pool), 0);
    CHECK_EQ(pthread_join(other, &result), 0);
    return (intptr_t)result;
}

static _Atomic int inside, let_out;

/* Comes to no switch. */
static void *stay_inside(void *arg)
{
    inside = 1;
    while (!let_out)
        usleep(1000);
    return arg;
}

TEST_REAL_INSIDE(driving_fails_at_once_while_another_thread_drives)
{
    static struct loop loop;
    loop = (struct loop){.waits_inside = true};
    inside = let_out = 0;
    {
        STRAND_SCOPE(scope);
        loop.pool = open_driven(scope);
        start(&loop);
        test_spawn_onto(scope, loop.pool, stay_inside, NULL);
        test_yield_until(&inside, 1);
        for (int i = 0; i < 3; i++)
            CHECK_EQ(drive_by_another(&loop.pool), -EBUSY);
        let_out = 1;
        strand_scope_join(scope);
    }
    CHECK_EQ(pthread_join(loop.thread, NULL), 0);
}

static strand_pool ended;

static void *ask_what_has_ended(void *arg)
{
    for (int i = 0; i < 2; i++)
        CHECK_EQ(strand_pool_drive(ended, strand_in(STRAND_S), STRAND_DRIVE_WAIT), 0);
    CHECK_EQ(strand_pool_fd(ended), -ESHUTDOWN);
    return arg;
}

static void ask_on_a_thread(void)
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, ask_what_has_ended, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void *drive_to_the_end(void *arg)
{
    static struct loop loop;
    loop = (struct loop){0};
    {
        STRAND_SCOPE(scope);
        ended = loop.pool = open_driven(scope);
        start(&loop);
        strand_pool_close(ended, NULL);
        CHECK_EQ(pthread_join(loop.thread, NULL), 0);
        ask_on_a_thread();
    }
    ask_on_a_thread();
    return arg;
}

/* S-44 */
TEST_REAL(a_pool_that_has_ended_is_driven_no_more_and_has_no_descriptor)
{
    strand_options options = test_options();
    strand_run(&options, drive_to_the_end, NULL);
    ask_what_has_ended(NULL);
}

TEST_REAL_INSIDE(only_one_thread_may_drive_a_pool)
{
    static struct loop loop;
    pthread_t other;
    void *result;
    loop = (struct loop){0};
    {
        STRAND_SCOPE(scope);
        loop.pool = open_driven(scope);
        start(&loop);
        strand_join(test_spawn_onto(scope, loop.pool, test_return, NULL));
        do {
            CHECK_EQ(pthread_create(&other, NULL, drive_once, &loop.pool), 0);
            CHECK_EQ(pthread_join(other, &result), 0);
        } while ((intptr_t)result == -EBUSY);
        CHECK_EQ((intptr_t)result, -EPERM);
    }
    CHECK_EQ(pthread_join(loop.thread, NULL), 0);
}

/* ---- the end --------------------------------------------------------------------------------- */

static _Atomic bool told;

static void *drive_to_its_end(void *pool)
{
    int result;
    while ((result = strand_pool_drive(*(strand_pool *)pool, strand_in(STRAND_MS), STRAND_DRIVE_WAIT)) != 0) {
        int fd = strand_pool_fd(*(strand_pool *)pool);
        CHECK_EQ(result, 1);
        CHECK(fd == -ESHUTDOWN || (test_seed() ? fd == -ENOTSUP : fd >= 0));
    }
    told = true;
    return pool;
}

TEST_INSIDE(driving_a_pool_returns_its_end_while_its_scope_exists)
{
    static strand_pool pool;
    told = false;
    STRAND_SCOPE(scope);
    pool = open_driven(scope);
    CHECK_EQ(strand_sim_thread(drive_to_its_end, &pool), 0);
    CHECK_PTR(strand_join(test_spawn_onto(scope, pool, test_return, TEST_PTR(1))), TEST_PTR(1));
    strand_pool_close(pool, NULL);
    while (!told)
        strand_sleep(STRAND_MS);
}

/* ---- what comes after it --------------------------------------------------------------------- */

TEST_REAL_INSIDE(a_pool_with_a_thread_of_its_own_comes_after_one_that_was_driven)
{
    static struct loop loop;
    for (int i = 0; i < 4; i++) {
        loop = (struct loop){.waits_inside = i & 1};
        {
            STRAND_SCOPE(scope);
            loop.pool = open_driven(scope);
            start(&loop);
            strand_join(test_spawn_onto(scope, loop.pool, live_there, &loop));
        }
        CHECK_EQ(pthread_join(loop.thread, NULL), 0);
        STRAND_SCOPE(scope);
        strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.scheduler = "dedicated"));
        strand child = test_spawn_onto(scope, pool, sleep_long, TEST_PTR(1));
        CHECK_PTR(strand_join(child), TEST_PTR(1));
    }
}
