/*
 * Strands pass tokens on over channels: through several pools, which are resized and closed meanwhile; to pinned
 * strands; and by sleeps, children, offloaded calls, plain threads and their messages, and pools that are opened for
 * one pass. Some strands wait for quiescence. All pools together are quiescent only if no token is left; a single pool,
 * or stalled pools, become quiescent at some time. In some runs the root waits for ever in the end: when no token is
 * left, and not before, it gets a deadlock, or the run ends. If a waiter is not woken, the run reports a deadlock.
 */
/* S-35, S-42, S-62, S-63, S-64 */
#include "sim.h"

#include "strand/chan.h"
#include "strand/io.h"
#include "strand/port.h"
#include "strand/select.h"
#include "strand/sim.h"
#include "strand/sync.h"

#include <stdlib.h>

enum { POOLS = 3, HANDS = 5, TOKENS = 3, HOPS = 6, WATCHERS = 2 };

typedef STRAND_CHAN(int) ints;

static struct {
    strand_pool pools[POOLS]; /* the first is the run's own */
    int pool_count;
    bool local; /* no token leaves the only one, and it is what is waited for */
    ints to[HANDS];
    _Atomic int tokens; /* that are on their way */
    _Atomic int none;   /* how often the last of them was put down */
    _Atomic int portions, quiescent_times;
    strand_event never;
} world;

/* ---- a token's way ---------------------------------------------------------------------------------------- */

/* Every channel has room for all tokens, so passing one on does not wait. */
static void pass_on(struct sim_life *me, void *arg)
{
    int hops = (int)(intptr_t)arg;
    SIM_CLEANUP(me);
    SIM_CHECK_EQ(STRAND_SEND(world.to[sim_draw(&me->chance, HANDS)], &hops), 0);
}

static void nap(struct sim_life *me)
{
    strand_sleep((int64_t)sim_draw(&me->chance, 20) * STRAND_US);
}

static void wait_in_vain(struct sim_life *me, void *arg)
{
    (void)arg;
    STRAND_DEADLINE(strand_in((int64_t)sim_draw(&me->chance, 20) * STRAND_US));
    strand_event_wait(&world.never);
}

static void *take_a_while(void *arg)
{
    strand_sim_sleep((int64_t)(intptr_t)arg);
    return arg;
}

static void *send_back(void *arg)
{
    strand_port *port = arg;
    strand_sim_sleep(STRAND_US);
    SIM_CHECK_EQ(strand_port_send(*port, "x", 1), 0);
    free(port);
    return NULL;
}

/* A plain thread has it for a while. */
static void lend(struct sim_life *me)
{
    char byte;
    STRAND_SCOPE(scope);
    strand_port *port = malloc(sizeof *port);
    *port = strand_port_open(scope, 1, 1, NULL);
    strand_port mine = *port;
    SIM_CHECK_EQ(strand_sim_thread(send_back, port), 0);
    strand_case cases[] = {strand_on_message(mine, &byte, 1), strand_on_event(&world.never)};
    if (sim_one_in(&me->chance, 2))
        SIM_CHECK_EQ(strand_select(cases, 2, 0), 0);
    else
        SIM_CHECK_EQ(strand_port_receive(mine, &byte, 1), 1);
}

static void pass_on_by_child(struct sim_life *me, void *token, strand_pool pool)
{
    STRAND_SCOPE(scope);
    int pin = sim_one_in(&me->chance, 2) ? STRAND_PIN(0) : 0;
    (void)sim_join(sim_spawn_at(me, scope, STRAND_ATTR(.pool = pool, .pin = pin), pass_on, token, 0));
}

static void pass_on_by_pool(struct sim_life *me, void *token)
{
    static const char *const schedulers[] = {"stealing", "global", "dedicated", "current"};
    const char *scheduler = schedulers[sim_draw(&me->chance, 4)];
    STRAND_SCOPE(scope);
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1, .scheduler = scheduler));
    pass_on_by_child(me, token, pool);
    if (sim_one_in(&me->chance, 2))
        strand_pool_close(pool, NULL);
}

static void resize(struct sim_life *me)
{
    int which = (int)sim_draw(&me->chance, (uint32_t)world.pool_count);
    if (which)
        (void)strand_pool_resize(world.pools[which], 1 + (int)sim_draw(&me->chance, 3));
}

static void work_on(struct sim_life *me, int hops)
{
    void *token = (void *)(intptr_t)hops;
    switch (sim_draw(&me->chance, 14)) {
    case 0:
        nap(me);
        break;
    case 1:
        strand_exception_release(sim_try(me, wait_in_vain, NULL));
        break;
    case 2:
        strand_offload(take_a_while, (void *)(intptr_t)sim_draw(&me->chance, 3000));
        break;
    case 3:
        lend(me);
        break;
    case 4:
        resize(me);
        break;
    case 5:
        strand_yield();
        break;
    case 6:
        pass_on_by_child(me, token, world.pools[sim_draw(&me->chance, (uint32_t)world.pool_count)]);
        return;
    case 7:
    case 8:
        SIM_CHECK_EQ(STRAND_POST(world.to[sim_draw(&me->chance, HANDS)], &hops), 0);
        return;
    case 9:
        if (world.local)
            break;
        pass_on_by_pool(me, token);
        return;
    }
    SIM_CHECK_EQ(STRAND_SEND(world.to[sim_draw(&me->chance, HANDS)], &hops), 0);
}

static void put_down(void)
{
    if (--world.tokens == 0)
        world.none++;
}

static void take_part(struct sim_life *me, void *arg)
{
    int hops;
    SIM_CLEANUP(me);
    while (STRAND_RECEIVE(world.to[(intptr_t)arg], &hops) == 0)
        if (hops == 0)
            put_down();
        else
            work_on(me, hops - 1);
}

/* ---- strands that wait for quiescence ---------------------------------------------------------------------- */

static void wait_for_all(void)
{
    int before = world.none;
    bool none = !world.tokens;
    strand_wait_quiet((strand_pool){{0}}, world.local ? 0 : STRAND_QUIET_RUN);
    SIM_CHECK(none || world.none != before);
    world.quiescent_times++;
}

/* Of any of them, in any way; a deadline may end it, if it is not a long one. */
static void watch_one(struct sim_life *me, void *arg)
{
    static const int64_t patience[] = {0, 10 * STRAND_US, 3600 * STRAND_S};
    strand_pool pool = world.pools[sim_draw(&me->chance, (uint32_t)world.pool_count)];
    unsigned flags = sim_one_in(&me->chance, 2) ? STRAND_QUIET_STALLED : 0;
    me->tag = (int)sim_draw(&me->chance, 3);
    (void)arg;
    STRAND_DEADLINE(me->tag ? strand_in(patience[me->tag]) : (strand_time){0});
    if (sim_one_in(&me->chance, 3))
        wait_for_all();
    else
        strand_wait_quiet(pool, flags);
}

static void watch(struct sim_life *me, void *arg)
{
    SIM_CLEANUP(me);
    for (uint32_t n = 1 + sim_draw(&me->chance, 3); n > 0; n--) {
        strand_exception *e = sim_try(me, watch_one, arg);
        SIM_CHECK(!e || (me->tag == 1 && strand_exception_is(e, &STRAND_TIMED_OUT)));
        strand_exception_release(e);
    }
}

/* ---- the run ------------------------------------------------------------------------------------------------- */

static void hand_out(struct sim_life *me)
{
    uint32_t count = 1 + sim_draw(&me->chance, TOKENS);
    world.tokens += (int)count;
    for (uint32_t i = 0; i < count; i++) {
        int hops = (int)sim_draw(&me->chance, HOPS);
        SIM_CHECK_EQ(STRAND_SEND(world.to[sim_draw(&me->chance, HANDS)], &hops), 0);
    }
    world.portions++;
}

static void for_ever(struct sim_life *me, void *arg)
{
    (void)me, (void)arg;
    strand_event_wait(&world.never);
}

/* The root waits for ever while tokens are on their way: the deadlock comes after they have come to rest. */
static void get_stuck(struct sim_life *me)
{
    strand_exception *e = sim_try(me, for_ever, NULL);
    SIM_CHECK_EQ(world.tokens, 0);
    if (sim_out_of_work() == STRAND_OUT_OF_WORK_END)
        SIM_CHECK(strand_exception_is(e, &STRAND_INTERRUPTED));
    else
        SIM_CHECK(strand_exception_is(e, &STRAND_DEADLOCK) && sim_logged() > 0);
    sim_settle(e); /* an interruption goes on */
}

static void open_pools(struct sim_life *me, strand_scope scope)
{
    static const char *const schedulers[] = {"stealing", "stealing", "global"};
    world.pools[0] = strand_pool_self();
    world.pool_count = 1 + (int)sim_draw(&me->chance, POOLS);
    world.local = world.pool_count == 1 && sim_one_in(&me->chance, 2);
    for (int i = 1; i < world.pool_count; i++)
        world.pools[i] = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1 + (int)sim_draw(&me->chance, 2),
                                                                  .scheduler = schedulers[sim_draw(&me->chance, 3)]));
}

/* To any of its threads. */
static int pin_on(struct sim_life *me, strand_pool pool)
{
    strand_pool_info info = {.size = sizeof info};
    strand_pool_info_get(pool, &info);
    return STRAND_PIN((int)sim_draw(&me->chance, (uint32_t)info.threads));
}

static void spawn_all(struct sim_life *me, strand_scope scope)
{
    for (intptr_t i = 0; i < HANDS; i++) {
        strand_pool pool = world.pools[sim_draw(&me->chance, (uint32_t)world.pool_count)];
        int pin = sim_one_in(&me->chance, 2) ? pin_on(me, pool) : 0;
        sim_spawn_at(me, scope, STRAND_ATTR(.pool = pool, .pin = pin), take_part, (void *)i, 0);
    }
    for (uint32_t n = sim_draw(&me->chance, WATCHERS + 1); n > 0; n--)
        sim_spawn_at(me, scope, STRAND_ATTR(.pool = world.pools[sim_draw(&me->chance, (uint32_t)world.pool_count)]),
                     watch, NULL, 0);
}

static void wait_for_the_second(struct sim_life *me, void *arg)
{
    (void)arg;
    SIM_CLEANUP(me);
    strand_wait_quiet(world.pools[1], 0);
}

/* Somebody sleeps there until it is closed: then nobody waits for it any longer. */
static void close_one(struct sim_life *me)
{
    if (world.pool_count == 1)
        return;
    STRAND_SCOPE_WITH(scope, STRAND_COLLECT);
    struct sim_life *sleeps = sim_spawn_at(me, scope, STRAND_ATTR(.pool = world.pools[1]), sim_eternal, NULL, 0);
    struct sim_life *waits = sim_spawn(me, scope, wait_for_the_second, NULL);
    for (uint32_t n = sim_draw(&me->chance, 8); n > 0; n--)
        strand_yield();
    strand_pool_close(world.pools[1], NULL);
    SIM_CHECK_EQ(sim_join(sleeps), SIM_CANCELLED);
    SIM_CHECK_EQ(sim_join(waits), SIM_RETURNED);
}

static void play(struct sim_life *me)
{
    STRAND_SCOPE(outer);
    for (int i = 0; i < HANDS; i++)
        world.to[i] = STRAND_CHAN_OPEN(ints, outer, TOKENS);
    open_pools(me, outer);
    STRAND_SCOPE_WITH(scope, STRAND_COLLECT);
    spawn_all(me, scope);
    for (uint32_t n = 1 + sim_draw(&me->chance, 3); n > 0; n--) {
        hand_out(me);
        wait_for_all();
        SIM_CHECK_EQ(world.tokens, 0);
    }
    if (sim_out_of_work() != STRAND_OUT_OF_WORK_WAIT && sim_one_in(&me->chance, 2)) {
        hand_out(me);
        get_stuck(me);
    }
    for (int i = 0; i < HANDS; i++)
        STRAND_CHAN_CLOSE(world.to[i]);
    strand_scope_join(scope);
    close_one(me);
}

static void root(struct sim_life *me, void *arg)
{
    (void)arg;
    for (uint32_t n = 1 + sim_draw(&me->chance, 2); n > 0; n--)
        play(me);
    SIM_CHECK_EQ(world.tokens, 0);
}

static void oracle(void)
{
    sim_observe((uint64_t)world.portions << 32 | (uint64_t)world.quiescent_times);
}

SIM_WORKLOAD_THAT(SIM_OUT_OF_WORK, quiescence, root, oracle, world);
