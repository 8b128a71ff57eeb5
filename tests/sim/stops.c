/*
 * Several parties shut a run down at once: strands of its pools, plain threads, signal handlers at any point, each with
 * its own time to drain. Meanwhile strands of all pools wait for the shut-down in every way, or poll for it. No strand
 * sees it before the first call; every waiter is woken, also in a shield; the root is cancelled when the earliest
 * instant comes, and not before, unless the run is out of work.
 */
#include "sim.h"

#include "strand/select.h"
#include "strand/sim.h"
#include "strand/sync.h"

#include <errno.h>
#include <string.h>

enum { STOPPERS = 4, LISTENERS = 6, POOLS = 3, CALLS = 5 };

struct stop {
    strand_run_handle run;
    int64_t drain;
    bool stays; /* the caller is a strand of the run, so the run can't have ended */
};

static struct {
    strand_pool pools[POOLS];
    int pool_count;
    struct stop stops[STOPPERS + 1];
    _Atomic int64_t least; /* no call asks for an earlier instant, so far */
    _Atomic int asked, notified, in_shields, notified_in_shields;
    bool ticks; /* somebody always has something to do */
    strand_event never;
} world;

static strand_pool somewhere(struct sim_life *me)
{
    return world.pools[sim_draw(&me->chance, (uint32_t)world.pool_count)];
}

/* ---- who stops it ------------------------------------------------------------------------------------------ */

static void call(void *arg)
{
    const struct stop *stop = arg;
    int error = strand_run_stop(stop->run, stop->drain, "stop, says the workload");
    SIM_CHECK(error == 0 || (error == -ESHUTDOWN && !stop->stays));
}

static void *call_from_a_thread(void *stop)
{
    for (int i = 0; i < CALLS; i++)
        call(stop);
    return stop;
}

/* Called before the call itself, so the instant that the call asks for is not earlier. */
static void announce(const struct stop *stop)
{
    int64_t by, least = world.least;
    if (__builtin_add_overflow(strand_now().ns, stop->drain > 0 ? stop->drain : 0, &by))
        by = INT64_MAX;
    while (by < least && !atomic_compare_exchange_weak(&world.least, &least, by))
        continue;
    world.asked++;
}

static void stop_somehow(struct sim_life *me, void *arg)
{
    struct stop *stop = arg;
    SIM_CLEANUP(me);
    strand_sleep((int64_t)sim_draw(&me->chance, 30) * STRAND_US);
    uint32_t way = sim_draw(&me->chance, 3);
    stop->stays = way == 0;
    announce(stop);
    if (way == 0)
        call(stop);
    else if (way == 1)
        (void)strand_sim_thread(call_from_a_thread, stop);
    else
        (void)strand_sim_signal(call, stop);
}

static void draw_stop(struct sim_life *me, struct stop *stop)
{
    static const int64_t drains[] = {-1, 0, 5, 40, INT64_MAX};
    int64_t drain = drains[sim_draw(&me->chance, 5)];
    stop->drain = drain > 0 && drain < INT64_MAX ? (int64_t)sim_draw(&me->chance, (uint32_t)drain) * STRAND_US : drain;
    stop->run = strand_run_self();
}

/* ---- who hears of it --------------------------------------------------------------------------------------- */

static void be_notified(void)
{
    SIM_CHECK(world.asked > 0);
    SIM_CHECK(strand_stopping());
    world.notified++;
}

static void wait_for_it(struct sim_life *me, void *arg)
{
    (void)me, (void)arg;
    strand_wait_stopping();
    be_notified();
}

/* It may be too early, and once more. */
static void wait_until_a_deadline(struct sim_life *me, void *arg)
{
    STRAND_DEADLINE(strand_in((int64_t)sim_draw(&me->chance, 40) * STRAND_US));
    wait_for_it(me, arg);
}

static void wait_in_a_shield(struct sim_life *me, void *arg)
{
    STRAND_SHIELD;
    world.in_shields++;
    wait_for_it(me, arg);
    world.notified_in_shields++;
}

static void look_for_it(struct sim_life *me, void *arg)
{
    (void)arg;
    while (!strand_stopping())
        strand_sleep((1 + (int64_t)sim_draw(&me->chance, 9)) * STRAND_US);
    be_notified();
}

static void select_it(struct sim_life *me, void *arg)
{
    (void)arg;
    for (;;) {
        strand_case cases[] = {strand_on_event(&world.never), strand_on_stopping(),
                               strand_on_time(strand_in((1 + (int64_t)sim_draw(&me->chance, 20)) * STRAND_US))};
        if (strand_select(cases, sim_one_in(&me->chance, 2) ? 2 : 3, 0) != 1)
            continue;
        be_notified();
        return;
    }
}

/* It takes its time to end, or does not until it is cancelled. */
static void listen(struct sim_life *me, void *arg)
{
    static sim_body *const ways[] = {wait_for_it, wait_until_a_deadline, wait_in_a_shield, look_for_it, select_it};
    SIM_CLEANUP(me);
    strand_exception *e = sim_try(me, ways[sim_draw(&me->chance, 5)], arg);
    SIM_CHECK(!e || strand_exception_is(e, &STRAND_TIMED_OUT) || strand_exception_is(e, &STRAND_INTERRUPTED) ||
              sim_no_memory(e));
    sim_settle(e);
    switch (sim_draw(&me->chance, 3)) {
    case 0:
        sim_for_ever();
    case 1:
        strand_sleep((int64_t)sim_draw(&me->chance, 10) * STRAND_US);
        break;
    default:
        strand_yield();
    }
}

/* Takes references to a pool, as strand_run_stop does. */
static void look_at_a_pool(struct sim_life *me)
{
    strand_pool_info info = {.size = sizeof info};
    strand_pool pool = somewhere(me);
    for (int i = 0; i < CALLS; i++)
        strand_pool_info_get(pool, &info);
    SIM_CHECK(info.threads > 0);
}

static void tick(struct sim_life *me, void *arg)
{
    (void)arg;
    SIM_CLEANUP(me);
    for (;;) {
        look_at_a_pool(me);
        strand_sleep(STRAND_US);
    }
}

/* ---- the run ----------------------------------------------------------------------------------------------- */

static void open_pools(struct sim_life *me, strand_scope scope)
{
    world.pools[0] = strand_pool_self();
    world.pool_count = 1;
    for (uint32_t n = sim_draw(&me->chance, POOLS); n > 0; n--)
        world.pools[world.pool_count++] =
            strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1 + (int)sim_draw(&me->chance, 2)));
}

struct party {
    strand_scope scope;
    struct sim_life *stoppers[STOPPERS];
};

static void invite(struct sim_life *me, void *arg)
{
    struct party *party = arg;
    if (world.ticks)
        (void)sim_spawn_at(me, party->scope, STRAND_ATTR(.pool = somewhere(me)), tick, NULL, 0);
    for (int i = 0; i < LISTENERS; i++)
        (void)sim_spawn_at(me, party->scope, STRAND_ATTR(.pool = somewhere(me)), listen, NULL, 0);
    for (uint32_t i = sim_draw(&me->chance, STOPPERS + 1); i-- > 0;) {
        struct stop *stop = &world.stops[i];
        draw_stop(me, stop);
        party->stoppers[i] = sim_spawn_at(me, party->scope, STRAND_ATTR(.pool = somewhere(me)), stop_somehow, stop, 0);
    }
}

static void join_stoppers(struct sim_life *me, void *arg)
{
    const struct party *party = arg;
    (void)me;
    for (int i = 0; i < STOPPERS; i++)
        if (party->stoppers[i])
            (void)sim_join(party->stoppers[i]);
}

/* Whatever the others have asked for, this asks for the end at once. */
static void stop_at_last(void)
{
    struct stop *last = &world.stops[STOPPERS];
    *last = (struct stop){strand_run_self(), 0, true};
    announce(last);
    call(last);
}

static void check_interruption(const strand_exception *e)
{
    if (sim_no_memory(e)) /* for that very exception */
        return;
    SIM_CHECK(strand_exception_is(e, &STRAND_INTERRUPTED));
    if (sim_refuses_memory() && !*strand_exception_who(e)) /* for the reason */
        return;
    SIM_CHECK(!strcmp(strand_exception_who(e), "the run itself"));
    const char *why =
        strand_exception_why(e); /* the second text: the caller is interrupted before it sets the reason */
    SIM_CHECK(!strcmp(why, "stop, says the workload") || !strcmp(why, "it is shut down"));
    SIM_CHECK(!world.ticks || sim_refuses_memory() || strand_now().ns >= world.least);
}

static void wait_for_the_end(struct sim_life *me, void *arg)
{
    (void)me, (void)arg;
    sim_for_ever();
}

static void root(struct sim_life *me, void *arg)
{
    struct party party = {.stoppers = {NULL}};
    (void)arg;
    world.least = INT64_MAX;
    world.ticks = sim_one_in(&me->chance, 2);
    STRAND_SCOPE(outer);
    open_pools(me, outer);
    STRAND_SCOPE_WITH(scope, STRAND_COLLECT);
    party.scope = scope;
    strand_exception *e = sim_try(me, invite, &party);
    if (!e)
        e = sim_try(me, join_stoppers, &party);
    if (!e || sim_no_memory(e)) {
        strand_exception_release(e);
        stop_at_last();
        e = sim_try(me, wait_for_the_end, NULL);
    }
    check_interruption(e);
    strand_scope_cancel(scope, "it is over");
    sim_settle(e);
}

static void oracle(void)
{
    SIM_CHECK_EQ(world.in_shields, world.notified_in_shields);
    sim_observe((uint64_t)world.asked << 32 | (uint64_t)world.notified);
}

SIM_WORKLOAD_THAT(SIM_NO_MEMORY | SIM_STOPPED, stops, root, oracle, world);
