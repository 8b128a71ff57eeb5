/*
 * Order: if two operations are called on one thread, the earlier one is served first, even if the thread has to let
 * others run just then.
 */
#define SUITE order
#include "channels.h"

#include "strand/io.h"
#include "strand/limit.h"
#include "strand/pool.h"
#include "strand/port.h"
#include "strand/select.h"
#include "strand/sync.h"

#include <errno.h>

static struct {
    longs chan, other;
    strand_port port;
    strand_mutex mutex;
    strand_rwlock rwlock;
    strand_semaphore semaphore;
    strand_prio_semaphore prio;
    strand_limit limit;
    strand_event go;
    int pipe[2];
    _Atomic int calls, gets, over;
} world;

/* What one of the two has called, and has got: 1 for the first. */
struct turn {
    strand_fn *call;
    long called, got;
};

/* ---- what the two call ------------------------------------------------------------------------- */

static void *receives(void *arg)
{
    struct turn *turn = arg;
    CHECK_EQ(STRAND_RECEIVE(world.chan, &turn->got), 0);
    return arg;
}

static void *sends(void *arg)
{
    struct turn *turn = arg;
    CHECK_EQ(STRAND_SEND(world.chan, &turn->called), 0);
    turn->got = turn->called;
    return arg;
}

static void *selects(struct turn *turn, unsigned flags)
{
    long ignored;
    strand_case cases[] = {STRAND_ON_RECEIVE(world.chan, &turn->got), STRAND_ON_RECEIVE(world.other, &ignored)};
    CHECK_EQ(strand_select(cases, 2, flags), 0);
    return turn;
}

static void *selects_any(void *arg)
{
    return selects(arg, 0);
}

static void *selects_in_order(void *arg)
{
    return selects(arg, STRAND_SELECT_ORDERED);
}

static void *receives_from_port(void *arg)
{
    struct turn *turn = arg;
    CHECK_EQ(strand_port_receive(world.port, &turn->got, sizeof turn->got), sizeof turn->got);
    return arg;
}

static void *reads(void *arg)
{
    char byte;
    CHECK_EQ(strand_read(world.pipe[0], &byte, 1), 1);
    ((struct turn *)arg)->got = byte;
    return arg;
}

static void *locks(void *arg)
{
    STRAND_LOCKED(&world.mutex);
    ((struct turn *)arg)->got = ++world.gets;
    return arg;
}

static void *locks_to_write(void *arg)
{
    STRAND_WRITE_LOCKED(&world.rwlock);
    ((struct turn *)arg)->got = ++world.gets;
    return arg;
}

static void *acquires(void *arg)
{
    STRAND_PERMIT(&world.semaphore);
    ((struct turn *)arg)->got = ++world.gets;
    return arg;
}

static void *acquires_prio(void *arg)
{
    STRAND_PRIO_PERMIT(&world.prio, NULL);
    ((struct turn *)arg)->got = ++world.gets;
    return arg;
}

static void *acquires_limit(void *arg)
{
    STRAND_LIMIT_PERMIT(&world.limit);
    ((struct turn *)arg)->got = ++world.gets;
    return arg;
}

/* ---- what the test does for them: before they call, and then ------------------------------------ */

static void hold_nothing(void) {}

static void hold_mutex(void)
{
    strand_mutex_lock(&world.mutex);
}

static void hold_rwlock(void)
{
    strand_rwlock_write(&world.rwlock);
}

static void hold_permit(void)
{
    strand_semaphore_acquire(&world.semaphore);
}

static void hold_prio(void)
{
    CHECK_EQ(strand_prio_acquire(&world.prio, NULL), 0);
}

static void hold_limit(void)
{
    strand_limit_acquire(&world.limit);
}

static void send_two(void)
{
    for (long i = 1; i <= 2; i++)
        CHECK_EQ(STRAND_SEND(world.chan, &i), 0);
}

static void receive_two(void)
{
    long value;
    for (long i = 1; i <= 2; i++) {
        CHECK_EQ(STRAND_RECEIVE(world.chan, &value), 0);
        CHECK_EQ(value, i);
    }
}

static void send_two_messages(void)
{
    for (long i = 1; i <= 2; i++)
        CHECK_EQ(strand_port_send(world.port, &i, sizeof i), 0);
}

/* While the first caller, which has not begun to wait, yields, the second may take what is free. So both have to wait
 * before it is released. */
static void await_both(const char *how)
{
    test_yield_until(&world.calls, 2);
    await_blocked(how, 2);
}

static void write_two(void)
{
    await_both("blocked: waits for descriptor");
    CHECK_EQ(strand_write_all(world.pipe[1], "\1\2", 2), 2);
}

static void unlock(void)
{
    await_both("blocked: waits for mutex");
    strand_mutex_unlock(&world.mutex);
}

static void unlock_writer(void)
{
    await_both("blocked: waits to write");
    strand_rwlock_write_done(&world.rwlock);
}

static void release(void)
{
    await_both("blocked: waits for semaphore");
    strand_semaphore_release(&world.semaphore);
}

static void release_prio(void)
{
    await_both("blocked: waits for semaphore");
    strand_prio_release(&world.prio);
}

static void release_limit(void)
{
    await_both("blocked: waits for semaphore");
    strand_limit_release(&world.limit);
}

static const struct {
    strand_fn *call;
    void (*hold)(void);
    void (*serve)(void);
} operations[] = {
    {receives, hold_nothing, send_two},
    {sends, hold_nothing, receive_two},
    {selects_any, hold_nothing, send_two},
    {selects_in_order, hold_nothing, send_two},
    {receives_from_port, hold_nothing, send_two_messages},
    {reads, hold_nothing, write_two},
    {locks, hold_mutex, unlock},
    {locks_to_write, hold_rwlock, unlock_writer},
    {acquires, hold_permit, release},
    {acquires_prio, hold_prio, release_prio},
    {acquires_limit, hold_limit, release_limit},
};

/* ---- the two ------------------------------------------------------------------------------------ */

static void *yield_until_over(void *arg)
{
    while (!world.over)
        strand_yield();
    return arg;
}

static void *call_now(void *arg)
{
    struct turn *turn = arg;
    turn->called = ++world.calls;
    return turn->call(arg);
}

/* After so many switches its thread makes a pass, and the strand yields at its next operation. */
static void *switch_often_and_call(void *arg)
{
    for (int i = 0; i < 300; i++)
        strand_yield();
    strand_event_set(&world.go);
    return call_now(arg);
}

static void *await_the_other_and_call(void *arg)
{
    strand_event_wait(&world.go);
    return call_now(arg);
}

static void open_world(strand_scope scope)
{
    memset((void *)&world, 0, sizeof world);
    world.chan = STRAND_CHAN_OPEN(longs, scope, 0);
    world.other = STRAND_CHAN_OPEN(longs, scope, 0);
    world.port = strand_port_open(scope, sizeof(long), 4, NULL);
    world.semaphore = (strand_semaphore)STRAND_SEMAPHORE_INIT(1);
    strand_prio_options options = {.size = sizeof options, .permits = 1};
    strand_prio_init(&world.prio, &options);
    strand_limit_init(&world.limit, 1, "limit");
    CHECK_EQ(strand_pipe(world.pipe), 0);
}

static void close_world(void)
{
    for (int i = 0; i < 2; i++)
        CHECK_EQ(strand_close(world.pipe[i]), 0);
}

TEST_INSIDE(an_operation_that_has_to_wait_takes_its_place_before_others_run)
{
    static struct turn turns[2];
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        STRAND_SCOPE(scope);
        open_world(scope);
        operations[i].hold();
        strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1));
        strand restless = test_spawn_onto(scope, pool, yield_until_over, NULL);
        turns[0] = turns[1] = (struct turn){operations[i].call, 0, 0};
        strand second = test_spawn_onto(scope, pool, await_the_other_and_call, &turns[0]);
        strand first = test_spawn_onto(scope, pool, switch_often_and_call, &turns[1]);
        operations[i].serve();
        strand_join(first);
        strand_join(second);
        world.over = 1;
        strand_join(restless);
        for (int n = 0; n < 2; n++)
            CHECK_EQ(turns[n].got, turns[n].called);
        close_world();
    }
}
