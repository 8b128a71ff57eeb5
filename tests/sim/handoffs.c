/*
 * Hand-off against leaving: hosts open scopes, one after the other, and leave them at some time, by whatever way, while
 * guests spawn into them and hand their own children off to them. A child that was refused is still its spawner's, and
 * one that was taken has ended when the scope has been left, and not come into the next one, which may have the record
 * of the last. Nobody is lost in between.
 */
#include "sim.h"

#include <errno.h>

enum { HOSTS = 3, ROUNDS = 2, PLACES = HOSTS * ROUNDS, GUESTS = 4, OFFERS = 3 };

static struct {
    strand_scope scopes[PLACES];    /* each host has every third one */
    _Atomic int place[HOSTS];       /* 1 + the host's last one; its handle is there, and may be stale */
    _Atomic int waits[PLACES];      /* the host joins it, and takes in nobody who does not end */
    _Atomic int went_to[SIM_LIVES]; /* 1 + the place; by the life's number */
    _Atomic int taken_in, refused, spawned, not_spawned;
} world;

static void child(struct sim_life *me, void *arg)
{
    (void)arg;
    SIM_CLEANUP(me);
    if (sim_one_in(&me->chance, 6))
        sim_fail(me);
    strand_sleep(sim_draw(&me->chance, 4) * 10 * STRAND_US);
    if (sim_one_in(&me->chance, 6)) { /* its own subtree goes along */
        STRAND_SCOPE(scope);
        sim_spawn(me, scope, child, arg);
        strand_yield();
        strand_scope_cancel(scope, NULL);
    }
}

/* ---- guests ------------------------------------------------------------------------------------ */

static sim_body *child_for(struct sim_life *me, int place)
{
    return !world.waits[place] && sim_one_in(&me->chance, 3) ? sim_eternal : child;
}

static void spawn_as_a_guest(struct sim_life *me, void *arg)
{
    int place = *(int *)arg;
    struct sim_life *life = sim_spawn(me, world.scopes[place], child_for(me, place), NULL);
    world.went_to[life->number] = 1 + place;
    world.spawned++;
}

static void spawn_or_be_refused(struct sim_life *me, int place)
{
    strand_exception *e = sim_try(me, spawn_as_a_guest, &place);
    if (!e)
        return;
    SIM_CHECK(strand_exception_code(e) == -ECANCELED || sim_no_memory(e));
    world.not_spawned++;
    strand_exception_release(e);
}

static void offer(struct sim_life *me, strand_scope own, int place)
{
    struct sim_life *life = sim_spawn(me, own, child_for(me, place), NULL);
    if (sim_one_in(&me->chance, 3))
        strand_yield();
    if (sim_one_in(&me->chance, 5))
        sim_cancel(life, "on its way");
    int error = strand_hand_off(life->handle, world.scopes[place]);
    if (error) {
        SIM_CHECK_EQ(error, -EINVAL);
        world.refused++;
        if (life->body == sim_eternal)
            sim_cancel(life, "nobody takes it");
        sim_join(life);
    } else {
        world.went_to[life->number] = 1 + place;
        world.taken_in++;
    }
}

static void guest(struct sim_life *me, void *arg)
{
    (void)arg;
    STRAND_SCOPE(scope);
    for (int i = 0; i < OFFERS; i++) {
        uint32_t host = sim_draw(&me->chance, HOSTS);
        strand_sleep(sim_draw(&me->chance, 3) * 10 * STRAND_US);
        int place = world.place[host] - 1;
        if (place < 0)
            continue;
        if (sim_one_in(&me->chance, 3))
            spawn_or_be_refused(me, place);
        else if (sim_one_in(&me->chance, 12))
            strand_scope_cancel(world.scopes[place], "by a guest");
        else
            offer(me, scope, place);
    }
    SIM_CHECK_EQ(strand_scope_count(scope), 0);
}

/* ---- hosts ------------------------------------------------------------------------------------- */

static void fetch_failures(strand_scope scope)
{
    strand_exception *e;
    while ((e = strand_scope_failure(scope, NULL)))
        strand_exception_release(e);
}

static void be_open(struct sim_life *me, void *arg)
{
    static const unsigned flags[] = {0, STRAND_TOGETHER, STRAND_COLLECT};
    int place = *(int *)arg;
    unsigned policy = flags[sim_draw(&me->chance, 3)];
    STRAND_SCOPE_WITH(scope, STRAND_OPEN | policy);
    world.scopes[place] = scope;
    world.waits[place] = sim_one_in(&me->chance, 3);
    world.place[me->tag] = 1 + place;
    for (uint32_t n = sim_draw(&me->chance, 4); n > 0; n--) {
        strand_sleep(sim_draw(&me->chance, 3) * 15 * STRAND_US);
        if (policy == STRAND_COLLECT && sim_one_in(&me->chance, 2))
            fetch_failures(scope);
    }
    if (world.waits[place])
        strand_scope_join(scope);
    else if (sim_one_in(&me->chance, 3))
        sim_fail(me);
    else if (sim_one_in(&me->chance, 2))
        strand_scope_cancel(scope, "closing time");
}

static void check_nobody_is_left(int place)
{
    for (int i = 1; i < SIM_LIVES; i++)
        if (world.went_to[i] == 1 + place)
            SIM_CHECK(sim_ended(sim_life(i)));
}

static void host(struct sim_life *me, void *arg)
{
    (void)arg;
    for (int place = me->tag; place < PLACES; place += HOSTS) {
        strand_exception *e = sim_try(me, be_open, &place);
        check_nobody_is_left(place);
        sim_settle(e);
    }
}

/* Guests may outlive the hosts, and are cancelled at the end, or waited for. */
static void root(struct sim_life *me, void *arg)
{
    struct sim_life *guests[GUESTS];
    STRAND_SCOPE_WITH(scope, STRAND_COLLECT);
    for (int i = 0; i < HOSTS; i++)
        sim_spawn_tagged(me, scope, host, arg, i);
    for (int i = 0; i < GUESTS; i++)
        guests[i] = sim_spawn(me, scope, guest, arg);
    strand_sleep(sim_draw(&me->chance, 100) * STRAND_US);
    if (sim_one_in(&me->chance, 4))
        sim_cancel(guests[sim_draw(&me->chance, GUESTS)], "while it offers");
    strand_exception *e = NULL;
    STRAND_TRY {
        strand_scope_join(scope);
    }
    STRAND_CATCH(&STRAND_ERROR, failure) {
        e = strand_exception_keep(failure);
    }
    STRAND_END
    strand_exception_release(e);
    for (int i = 0; i < PLACES; i++)
        check_nobody_is_left(i);
}

static void oracle(void)
{
    sim_observe((uint64_t)world.taken_in << 16 | (uint64_t)world.refused);
    sim_observe((uint64_t)world.spawned << 16 | (uint64_t)world.not_spawned);
}

SIM_WORKLOAD_THAT(SIM_NO_MEMORY, handoffs, root, oracle, world);
