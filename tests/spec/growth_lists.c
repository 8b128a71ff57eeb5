/*
 * What a program can make long is not slow when it is long: ten times as many entries take less than forty times as
 * long. Waiting strands share a fibre here, so that a hundred thousand of them need little memory.
 */
#define _GNU_SOURCE
#define SUITE growth_lists
#include "growth.h"
#include "test.h"

#include "strand/chan.h"
#include "strand/io.h"
#include "strand/limit.h"
#include "strand/pool.h"
#include "strand/port.h"
#include "strand/select.h"
#include "strand/sync.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- waiting strands --------------------------------------------------------------------------------------- */

static struct {
    strand_event event;
    strand_mutex mutex, other_mutex;
    strand_rwlock rwlock;
    strand_condition condition;
    strand_semaphore semaphore;
    strand_barrier barrier;
    strand_latch latch;
    strand_once once;
    strand_limit limit;
    strand_chan empty, full;
    strand_port port;
    int pipe[2];
} held;

static _Atomic int waiting;

static void wait_for_event(void)
{
    strand_event_wait(&held.event);
}

static void wait_for_mutex(void)
{
    strand_mutex_lock(&held.mutex);
}

static void wait_for_reading(void)
{
    strand_rwlock_read(&held.rwlock);
}

static void wait_for_writing(void)
{
    strand_rwlock_write(&held.rwlock);
}

static void wait_for_permit(void)
{
    strand_semaphore_acquire(&held.semaphore);
}

static void wait_for_limit(void)
{
    strand_limit_acquire(&held.limit);
}

static void wait_for_condition(void)
{
    STRAND_LOCKED(&held.other_mutex);
    strand_condition_wait(&held.condition, &held.other_mutex);
}

static void wait_at_barrier(void)
{
    strand_barrier_wait(&held.barrier);
}

static void wait_for_latch(void)
{
    strand_latch_wait(&held.latch);
}

static void wait_to_receive(void)
{
    long value;
    (void)!strand_chan_receive(held.empty, &value);
}

static void wait_to_send(void)
{
    long value = 0;
    (void)!strand_chan_send(held.full, &value);
}

static void wait_for_message(void)
{
    char byte;
    (void)!strand_port_receive(held.port, &byte, 1);
}

static void wait_for_any(void)
{
    long value;
    strand_case cases[] = {strand_on_receive(held.empty, &value), strand_on_event(&held.event),
                           strand_on_time(strand_in(FOREVER))};
    strand_select(cases, 3, 0);
}

static void wait_for_bytes(void)
{
    (void)!strand_wait_ready(held.pipe[0], STRAND_READABLE);
}

static void wait_for_time(void)
{
    strand_sleep(FOREVER + waiting);
}

static void wait_for_quiet(void)
{
    strand_wait_quiet((strand_pool){{0}}, STRAND_QUIET_RUN);
}

static void *never_end(void *arg)
{
    strand_event_wait(&held.event);
    return arg;
}

static void wait_for_once(void)
{
    strand_once_run(&held.once, never_end, NULL);
}

/* A pointer to a pointer to a function, which is an object, as an argument. */
static void *how_of(void (*const *how)(void))
{
    union {
        void (*const *in)(void);
        void *out;
    } as = {how};
    return as.out;
}

static void *wait_so(void *how)
{
    waiting++;
    (*(void (*const *)(void))how)();
    return NULL;
}

static void open_all(strand_scope scope)
{
    memset(&held, 0, sizeof held);
    waiting = 0;
    held.semaphore = (strand_semaphore)STRAND_SEMAPHORE_INIT(0);
    held.barrier = (strand_barrier)STRAND_BARRIER_INIT(1 << 20);
    held.latch = (strand_latch)STRAND_LATCH_INIT(1);
    strand_limit_init(&held.limit, 1, NULL);
    strand_limit_acquire(&held.limit);
    strand_mutex_lock(&held.mutex);
    strand_rwlock_write(&held.rwlock);
    held.empty = strand_chan_open(scope, sizeof(long), 0, NULL);
    held.full = strand_chan_open(scope, sizeof(long), 0, NULL);
    held.port = strand_port_open(scope, 1, 1, NULL);
    CHECK_EQ(pipe2(held.pipe, O_CLOEXEC), 0);
}

static void close_all(void)
{
    strand_mutex_unlock(&held.mutex);
    strand_rwlock_write_done(&held.rwlock);
    strand_limit_release(&held.limit);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(strand_close(held.pipe[i]), 0);
}

/* They go in both orders: half of them from the newest on, then the others from the oldest on. */
static void interrupt_one_by_one(void (*const *how)(void), int count)
{
    STRAND_SCOPE(around);
    open_all(around);
    {
        strand *all = malloc((size_t)count * sizeof *all);
        STRAND_SCOPE(scope);
        strand_fibre fibre = strand_fibre_open(scope, NULL);
        for (int i = 0; i < count; i++)
            all[i] = strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre), wait_so, how_of(how), 0);
        test_yield_until(&waiting, count);
        strand_yield();
        for (int i = 0; i < count; i++) {
            strand_cancel(all[i < count / 2 ? count - 1 - i : i - count / 2], NULL);
            if (i % 64 == 0)
                strand_yield();
        }
        free(all);
    }
    close_all();
}

/* ---- children ---------------------------------------------------------------------------------------------- */

static void *sleep_long(void *arg)
{
    waiting++;
    strand_sleep(FOREVER);
    return arg;
}

static strand *spawn_many(strand_scope scope, strand_fn *fn, int count)
{
    strand *all = malloc((size_t)count * sizeof *all);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    waiting = 0;
    for (int i = 0; i < count; i++)
        all[i] = strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre), fn, NULL, 0);
    return all;
}

/* From both ends to the middle. */
static int turn(int i, int count)
{
    return i % 2 ? count - 1 - i / 2 : i / 2;
}

static void join_from_both_ends(int count)
{
    STRAND_SCOPE(scope);
    strand *all = spawn_many(scope, test_return, count);
    for (int i = 0; i < count; i++)
        strand_join(all[turn(i, count)]);
    free(all);
}

static void hand_off_from_both_ends(int count)
{
    STRAND_SCOPE_WITH(to, STRAND_OPEN | STRAND_SERVICE);
    STRAND_SCOPE(from);
    strand *all = spawn_many(from, sleep_long, count);
    for (int i = 0; i < count; i++)
        CHECK_EQ(strand_hand_off(all[turn(i, count)], to), 0);
    free(all);
    strand_scope_cancel(to, NULL);
}

static void leave_them_in_a_cancelled_scope(int count)
{
    STRAND_SCOPE(scope);
    free(spawn_many(scope, sleep_long, count));
    test_yield_until(&waiting, count);
    strand_scope_cancel(scope, NULL);
}

static void take_them_as_they_end(int count)
{
    STRAND_SCOPE_WITH(scope, STRAND_COLLECT);
    free(spawn_many(scope, test_return, count));
    for (int i = 0; i < count; i++)
        strand_join(strand_scope_wait_next(scope));
}

static void *throw_a_few(void *count)
{
    STRAND_SCOPE(scope);
    free(spawn_many(scope, test_throw, *(int *)count));
    STRAND_SHIELD;
    strand_scope_join(scope);
    return NULL;
}

static void let_all_fail(int count)
{
    CHECK_THROWS(throw_a_few, &count, &TEST_ERROR);
}

/* ---- objects with handles ---------------------------------------------------------------------------------- */

static void open_channels(int count)
{
    strand_chan *all = malloc((size_t)count * sizeof *all);
    STRAND_SCOPE(scope);
    for (int i = 0; i < count; i++)
        all[i] = strand_chan_open(scope, sizeof(long), 1, NULL);
    for (int i = 0; i < count / 2; i++)
        strand_chan_close(all[turn(i, count)]);
    free(all);
}

static void open_ports(int count)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < count; i++)
        strand_port_open(scope, 8, 1, NULL);
}

static void open_crews(int count)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < count; i++)
        strand_crew_open(scope, NULL);
}

static void open_fibres(int count)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < count; i++)
        strand_fibre_open(scope, NULL);
}

static void fill_a_group(int count)
{
    STRAND_SCOPE(scope);
    strand_fibre group = strand_fibre_open(scope, STRAND_FIBRE_ATTR(.count = count / 10));
    for (int i = 0; i < count; i++)
        strand_spawn_with(scope, STRAND_ATTR(.fibre = group), test_return, NULL, 0);
    strand_scope_join(scope);
}

/* ---- cases ------------------------------------------------------------------------------------------------- */

static void *send_one(void *chan)
{
    long value = 1;
    CHECK_EQ(strand_chan_send(*(strand_chan *)chan, &value), 0);
    return NULL;
}

static void select_with_cases(int count, bool distinct)
{
    strand_case *cases = malloc((size_t)count * sizeof *cases);
    strand_chan *all = malloc((size_t)count * sizeof *all);
    long value;
    STRAND_SCOPE(scope);
    for (int i = 0; i < count; i++) {
        all[i] = distinct || !i ? strand_chan_open(scope, sizeof(long), 0, NULL) : all[0];
        cases[i] = strand_on_receive(all[i], &value);
    }
    strand sender = strand_spawn(scope, send_one, &all[count / 2]);
    CHECK(strand_select(cases, (size_t)count, 0) >= 0);
    strand_join(sender);
    free(all);
    free(cases);
}

static void select_of_many_channels(int count)
{
    select_with_cases(count, true);
}

static void select_of_one_channel(int count)
{
    select_with_cases(count, false);
}

/* ---- comparing --------------------------------------------------------------------------------------------- */

struct measure {
    void (*work)(int count);
    void (*const *how)(void);
    int count;
    int64_t took;
};

static void *measure(void *arg)
{
    struct measure *m = arg;
    int64_t begun = growth_ns();
    if (m->how)
        interrupt_one_by_one(m->how, m->count);
    else
        m->work(m->count);
    m->took = growth_ns() - begun;
    return NULL;
}

static void say_nothing(const char *text, void *arg)
{
    (void)text, (void)arg;
}

static int64_t time_of(const void *what, int count)
{
    struct measure m = *(const struct measure *)what;
    m.count = count;
    strand_run(STRAND_OPTIONS(.threads = 1, .on_log = say_nothing), measure, &m);
    return m.took;
}

static void compare_from(int count, void (*work)(int count))
{
    struct measure m = {.work = work};
    growth_compare(time_of, &m, growth_count(count));
}

/* Many strands wait in each of these ways. */
static void compare_waits(size_t count, void (*const *how)(void))
{
    for (size_t i = 0; i < count; i++) {
        struct measure m = {.how = &how[i]};
        growth_compare(time_of, &m, growth_count(100000));
    }
}

#define COMPARE_WAITS(...)                                                                                             \
    do {                                                                                                               \
        void (*const how[])(void) = {__VA_ARGS__};                                                                     \
        compare_waits(sizeof how / sizeof *how, how);                                                                  \
    } while (0)

TEST_REAL(many_that_wait_for_locks_are_interrupted_one_by_one)
{
    COMPARE_WAITS(wait_for_mutex, wait_for_reading, wait_for_writing, wait_for_permit, wait_for_limit);
}

TEST_REAL(many_that_wait_for_each_other_are_interrupted_one_by_one)
{
    COMPARE_WAITS(wait_for_event, wait_for_condition, wait_at_barrier, wait_for_latch, wait_for_once);
}

TEST_REAL(many_that_wait_for_values_are_interrupted_one_by_one)
{
    COMPARE_WAITS(wait_to_receive, wait_to_send, wait_for_message, wait_for_any);
}

TEST_REAL(many_that_wait_for_bytes_times_and_quiescence_are_interrupted_one_by_one)
{
    COMPARE_WAITS(wait_for_bytes, wait_for_time, wait_for_quiet);
}

static void compare_each(size_t count, void (*const *work)(int count))
{
    for (size_t i = 0; i < count; i++)
        compare_from(100000, work[i]);
}

#define COMPARE(...)                                                                                                   \
    do {                                                                                                               \
        void (*const work[])(int) = {__VA_ARGS__};                                                                     \
        compare_each(sizeof work / sizeof *work, work);                                                                \
    } while (0)

TEST_REAL(many_children_are_joined_handed_off_left_and_taken_and_fail)
{
    COMPARE(join_from_both_ends, hand_off_from_both_ends, leave_them_in_a_cancelled_scope, take_them_as_they_end,
            let_all_fail);
}

TEST_REAL(a_scope_with_many_objects_is_left)
{
    COMPARE(open_channels, open_ports, open_crews);
    compare_from(20000, open_fibres); /* each has a stack */
}

TEST_REAL(a_large_group_has_many_strands_and_a_select_has_many_cases)
{
    COMPARE(fill_a_group, select_of_many_channels, select_of_one_channel);
}
