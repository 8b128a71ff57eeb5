/*
 * Waits of every kind that only an interruption ends: a cancel, a deadline or the failure of a child, which comes at
 * about the time when the wait begins. Each of them ends the wait, and nothing else does; the object of the wait is
 * unchanged. After a lost interruption a strand would wait for ever.
 */
/* contract 5.1 */
#include "sim.h"

#include "strand/chan.h"
#include "strand/io.h"
#include "strand/limit.h"
#include "strand/port.h"
#include "strand/sim.h"
#include "strand/sync.h"

enum { VICTIMS = 4, TURNS = 3, COMPANY = 3, NEVER = 1000 };

static struct {
    strand_chan silent, deaf; /* nobody sends; nobody receives */
    strand_port port;         /* nobody sends */
    strand_semaphore semaphore;
    strand_mutex mutex, other_mutex; /* the root has the first */
    strand_rwlock rwlock;            /* the root writes */
    strand_condition condition;
    strand_barrier barrier, meeting; /* nobody opens the first */
    strand_event event;
    strand_group group;
    strand_latch latch;
    strand_prio_semaphore prio; /* the root has the permit of both */
    strand_limit limit;
    int pipe[2];
    strand_crew crew; /* its thread is in a call that does not end */
    struct sim_life *eternal, *occupant;
    _Atomic int interrupted;
} world;

/* ---- ways to wait without success --------------------------------------------------------------------------- */

static void wait_for_a_child(struct sim_life *me)
{
    static const unsigned flags[] = {0, STRAND_COLLECT, STRAND_FIRST_WINS};
    uint32_t way = sim_draw(&me->chance, 3);
    STRAND_SCOPE_WITH(scope, flags[way]);
    struct sim_life *child = sim_spawn(me, scope, sim_eternal, NULL);
    if (sim_one_in(&me->chance, 3))
        strand_scope_join(scope);
    else if (way == 1)
        strand_scope_wait_next(scope);
    else if (way == 2)
        strand_scope_join_first(scope, NULL);
    else
        strand_join(child->handle);
}

static void wait_for_somebody(struct sim_life *me)
{
    (void)me;
    strand_wait(world.eternal->handle);
}

static void wait_in_a_channel(struct sim_life *me)
{
    int value = me->number;
    if (sim_one_in(&me->chance, 3))
        strand_port_receive(world.port, &value, sizeof value);
    else if (sim_one_in(&me->chance, 2))
        STRAND_IGNORE(strand_chan_receive(world.silent, &value));
    else
        STRAND_IGNORE(strand_chan_send(world.deaf, &value));
}

static void wait_for_one_of_many(struct sim_life *me)
{
    int value = me->number, other;
    strand_case cases[] = {strand_on_receive(world.silent, &other), strand_on_event(&world.event),
                           strand_on_permit(&world.semaphore), strand_on_send(world.deaf, &value),
                           strand_on_message(world.port, &other, sizeof other)};
    size_t count = 1 + sim_draw(&me->chance, 5);
    strand_select(cases, count, sim_one_in(&me->chance, 2) ? STRAND_SELECT_ORDERED : 0);
}

static void wait_at_a_gate(struct sim_life *me)
{
    switch (sim_draw(&me->chance, 9)) {
    case 0:
        strand_mutex_lock(&world.mutex);
        break;
    case 1:
        strand_rwlock_read(&world.rwlock);
        break;
    case 2:
        strand_rwlock_write(&world.rwlock);
        break;
    case 3:
        strand_barrier_wait(&world.barrier);
        break;
    case 4:
        strand_group_wait(&world.group);
        break;
    case 5:
        strand_latch_wait(&world.latch);
        break;
    case 6: {
        STRAND_LOCKED(&world.other_mutex);
        strand_condition_wait(&world.condition, &world.other_mutex);
        break;
    }
    case 7:
        strand_event_wait(&world.event);
        break;
    default:
        strand_semaphore_acquire_many(&world.semaphore, 1 + sim_draw(&me->chance, 2));
    }
}

static void wait_by_priority(struct sim_life *me)
{
    if (sim_one_in(&me->chance, 2))
        strand_prio_acquire(&world.prio, me);
    else
        strand_limit_acquire(&world.limit);
}

static void wait_for_bytes(struct sim_life *me)
{
    char byte;
    (void)me;
    strand_read(world.pipe[0], &byte, 1);
}

/* Runs until `stop` is called. */
static void *stay(void *arg)
{
    _Atomic int *stopped = arg;
    while (!*stopped)
        strand_sim_sleep(20 * STRAND_US);
    return arg;
}

static void stop(void *arg)
{
    *(_Atomic int *)arg = 1;
}

static void wait_for_a_call_that_runs(struct sim_life *me)
{
    _Atomic int stopped = 0;
    bool borrows = sim_one_in(&me->chance, 2);
    strand_offload_with(STRAND_OFFLOAD_ATTR(.stop = stop, .borrows = borrows), stay, (void *)&stopped, sizeof stopped);
    SIM_CHECK(borrows);
    strand_checkpoint();
}

static void wait_for_a_thread(struct sim_life *me)
{
    int value = me->number;
    if (!world.occupant)
        sim_for_ever();
    strand_offload_with(STRAND_OFFLOAD_ATTR(.crew = world.crew, .borrows = sim_one_in(&me->chance, 2)), stay, &value,
                        sizeof value);
}

static void occupant(struct sim_life *me, void *arg)
{
    _Atomic int stopped = 0;
    (void)arg;
    SIM_CLEANUP(me);
    strand_offload_with(STRAND_OFFLOAD_ATTR(.crew = world.crew, .stop = stop), stay, (void *)&stopped, sizeof stopped);
    SIM_CHECK(!"what never ends has ended");
}

static void wait_for_the_end_of_time(struct sim_life *me)
{
    (void)me;
    sim_for_ever();
}

static void wait(struct sim_life *me, void *arg)
{
    static void (*const ways[])(struct sim_life *) = {
        wait_for_a_child,     wait_for_somebody,         wait_in_a_channel, wait_at_a_gate,
        wait_for_one_of_many, wait_by_priority,          wait_for_bytes,    wait_for_the_end_of_time,
        wait_at_a_gate,       wait_for_a_call_that_runs, wait_for_a_thread};
    (void)arg;
    ways[sim_draw(&me->chance, sizeof ways / sizeof *ways)](me);
    SIM_CHECK(!"what never comes has come");
}

/* ---- what ends the wait ------------------------------------------------------------------------------- */

static void pause(struct sim_life *me)
{
    for (uint32_t n = sim_draw(&me->chance, 3); n > 0; n--)
        strand_yield();
}

static void wait_until_it_is_too_late(struct sim_life *me, void *arg)
{
    STRAND_DEADLINE(strand_in(sim_draw(&me->chance, 3) * STRAND_US));
    wait(me, arg);
}

static void fail(struct sim_life *me, void *arg)
{
    (void)arg;
    pause(me);
    sim_fail(me);
}

static void wait_until_a_child_fails(struct sim_life *me, void *arg)
{
    STRAND_SCOPE(scope);
    sim_spawn(me, scope, fail, arg);
    wait(me, arg);
}

/* Nobody cancels it: each of its waits has to end by itself. */
static void survivor(struct sim_life *me, void *arg)
{
    SIM_CLEANUP(me);
    for (int i = 0; i < TURNS; i++) {
        bool late = sim_one_in(&me->chance, 2);
        strand_exception *e = sim_try(me, late ? wait_until_it_is_too_late : wait_until_a_child_fails, arg);
        SIM_CHECK(e && strand_exception_kind(e) == (late ? &STRAND_TIMED_OUT : &SIM_ERROR));
        strand_exception_release(e);
        world.interrupted++;
    }
}

/* Cancelled while it leaves what interrupts it by itself, or later. */
static void doomed(struct sim_life *me, void *arg)
{
    SIM_CLEANUP(me);
    for (uint32_t n = sim_draw(&me->chance, TURNS); n > 0; n--)
        sim_settle(sim_try(me, sim_one_in(&me->chance, 2) ? wait_until_it_is_too_late : wait_until_a_child_fails, arg));
    wait(me, arg);
}

/* Cancelled by a strand of its own, which comes at its own time. */
static void canceller(struct sim_life *me, void *victim)
{
    pause(me);
    if (sim_one_in(&me->chance, 2))
        strand_sleep(sim_draw(&me->chance, 4) * STRAND_US);
    sim_cancel(victim, "in the middle of nothing");
}

static void victims(struct sim_life *me, void *arg)
{
    struct sim_life *lives[VICTIMS];
    bool cancelled[VICTIMS];
    STRAND_SCOPE(scope);
    for (int i = 0; i < VICTIMS; i++) {
        cancelled[i] = sim_one_in(&me->chance, 2);
        lives[i] = sim_spawn(me, scope, cancelled[i] ? doomed : survivor, arg);
        if (cancelled[i])
            sim_spawn(me, scope, canceller, lives[i]);
    }
    for (int i = 0; i < VICTIMS; i++)
        SIM_CHECK_EQ(sim_join(lives[i]), cancelled[i] ? SIM_CANCELLED : SIM_RETURNED);
    strand_scope_join(scope);
}

/* ---- a barrier that may open ---------------------------------------------------------------------------- */

/* Members are cancelled while the last one arrives. A member that is left waiting alone is cancelled in the end. */
static void member(struct sim_life *me, void *arg)
{
    (void)arg;
    SIM_CLEANUP(me);
    pause(me);
    strand_barrier_wait(&world.meeting);
}

static void meeting(struct sim_life *me, void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < COMPANY; i++) {
        struct sim_life *life = sim_spawn(me, scope, member, arg);
        if (i < COMPANY - 1)
            sim_spawn(me, scope, canceller, life);
    }
    strand_sleep(10 * STRAND_US);
    strand_scope_cancel(scope, "it is over");
    strand_scope_join(scope);
}

/* ---- all of it ---------------------------------------------------------------------------------------- */

static void make_world(void)
{
    strand_prio_options options = {.size = sizeof options, .permits = 1};
    world.barrier = (strand_barrier)STRAND_BARRIER_INIT(NEVER);
    world.meeting = (strand_barrier)STRAND_BARRIER_INIT(COMPANY);
    world.latch = (strand_latch)STRAND_LATCH_INIT(1);
    strand_prio_init(&world.prio, &options);
    strand_limit_init(&world.limit, 1, NULL);
    strand_group_add(&world.group, 1);
    SIM_CHECK_EQ(strand_pipe(world.pipe), 0);
    strand_mutex_lock(&world.mutex);
    strand_rwlock_write(&world.rwlock);
    SIM_CHECK_EQ(strand_prio_acquire(&world.prio, NULL), 0);
    strand_limit_acquire(&world.limit);
}

/* Nobody has taken anything, and nobody stands in a queue. */
static void check_world(void)
{
    strand_mutex_unlock(&world.mutex);
    strand_rwlock_write_done(&world.rwlock);
    strand_limit_release(&world.limit);
    strand_prio_release(&world.prio);
    SIM_CHECK_EQ(strand_mutex_try_lock(&world.mutex), 0);
    SIM_CHECK_EQ(strand_mutex_try_lock(&world.other_mutex), 0);
    SIM_CHECK_EQ(strand_rwlock_try_write(&world.rwlock), 0);
    SIM_CHECK_EQ(strand_prio_in_flight(&world.prio) + strand_prio_waiting(&world.prio), 0);
    SIM_CHECK_EQ(strand_limit_in_flight(&world.limit), 0);
    strand_mutex_unlock(&world.mutex);
    strand_mutex_unlock(&world.other_mutex);
    strand_rwlock_write_done(&world.rwlock);
    for (int i = 0; i < 2; i++)
        SIM_CHECK_EQ(strand_close(world.pipe[i]), 0);
}

static void occupy_the_crew(struct sim_life *me, strand_scope scope)
{
    strand_crew_info info = {.size = sizeof info};
    world.crew = strand_crew_open(scope, STRAND_CREW_ATTR(.max_threads = 1));
    world.occupant = sim_spawn(me, scope, occupant, NULL);
    while (!info.running) {
        strand_sleep(STRAND_US);
        strand_crew_info_get(world.crew, &info);
    }
}

static void root(struct sim_life *me, void *arg)
{
    make_world();
    STRAND_SCOPE(scope);
    world.silent = strand_chan_open(scope, sizeof(int), 2, NULL);
    world.deaf = strand_chan_open(scope, sizeof(int), 0, NULL);
    world.port = strand_port_open(scope, sizeof(int), 1, NULL);
    world.eternal = sim_spawn(me, scope, sim_eternal, arg);
    if (sim_one_in(&me->chance, 4))
        occupy_the_crew(me, scope);
    if (sim_one_in(&me->chance, 3))
        meeting(me, arg);
    else
        victims(me, arg);
    sim_cancel(world.eternal, "it is over");
    SIM_CHECK_EQ(sim_join(world.eternal), SIM_CANCELLED);
    if (world.occupant) {
        sim_cancel(world.occupant, "it is over");
        SIM_CHECK_EQ(sim_join(world.occupant), SIM_CANCELLED);
    }
    check_world();
}

static void oracle(void)
{
    sim_observe((uint64_t)world.interrupted);
}

SIM_WORKLOAD(interrupts, root, oracle, world);
