/*
 * Pools that are opened, resized and closed while strands of all pools spawn onto them, pin strands to their threads,
 * open fibres there, pass values on, hand each other off, and are cancelled at any time. Only the close of their pool
 * ends some of them. A strand always continues on its own pool, and if pinned on its own thread; a closed pool has no
 * strands; closing a pool cancels no strand of another one; threads that must leave do so, and leave no strand behind;
 * a sent value arrives once, or is left in the channel.
 */
/* S-41, S-59, V-10, V-11, contract 2.14 */
#include "sim.h"

#include "strand/chan.h"
#include "strand/sync.h"

#include <errno.h>
#include <string.h>

enum { KEEPERS = 2, USERS = 4, THREADS_MOST = 3, FIBRES = 4, ERRANDS = 8 };

/* A pool, as others know it: they use its handle only while it is open to them. */
struct place {
    strand_pool pool;
    _Atomic int open, users;
};

static struct {
    struct place places[KEEPERS];
    strand_pool first;
    strand_chan chan;
    strand_mutex mutex;
    strand_scope away; /* open for those who are handed off */
    strand_fibre fibres[FIBRES];
    strand_pool fibre_pools[FIBRES];
    _Atomic int fibres_known[FIBRES];
    _Atomic int inside, fibres_made, errands_made;
    _Atomic int sent, received, refused, closed, resized, pinned;
    strand_event errands[ERRANDS];
    strand_pool homes[SIM_LIVES]; /* by the life's number: where it has begun */
} world;

static bool same(strand_pool a, strand_pool b)
{
    return a.bits[0] == b.bits[0] && a.bits[1] == b.bits[1];
}

/* ---- the use of somebody else's pool ------------------------------------------------------------------- */

static void stop_using(struct place **place)
{
    if (*place)
        (*place)->users--;
}

#define USING __attribute__((cleanup(stop_using)))

/* One that is open, or NULL. */
static struct place *use_one(struct sim_life *me)
{
    struct place *place = &world.places[sim_draw(&me->chance, KEEPERS)];
    place->users++;
    if (place->open)
        return place;
    place->users--;
    return NULL;
}

static bool is_refusal(const strand_exception *e)
{
    return strand_exception_is(e, &STRAND_SYSTEM) &&
           (strand_exception_code(e) == -ESHUTDOWN || strand_exception_code(e) == -ECANCELED);
}

/* ---- what a strand does ---------------------------------------------------------------------------------- */

/* The second word of a strand's argument is the remaining depth; the first word of a pinned strand's is the thread. */
static int depth_of(void *arg)
{
    return (int)((uintptr_t)arg & 15);
}

static void *pinned_at(int thread)
{
    return (void *)(uintptr_t)((thread + 1) * 16);
}

static void act(struct sim_life *me, void *arg);

static void begin(const struct sim_life *me)
{
    world.homes[me->number] = strand_pool_self();
    if (me->tag)
        SIM_CHECK(same(world.fibre_pools[me->tag - 1], strand_pool_self()));
}

/* Waits until its pool is closed, or until its owner ends it. */
static void stay(struct sim_life *me, void *arg)
{
    (void)arg;
    SIM_CLEANUP(me);
    begin(me);
    sim_for_ever();
}

/* Whether it was ended by the close of a pool: then of its own. */
static void judge(const struct sim_life *child, const strand_exception *e)
{
    static const char *const closes[] = {"by its keeper", "by somebody else", "its pool's scope was left"};
    for (int i = 0; e && i < 3; i++)
        if (strand_exception_is(e, &STRAND_CHILD_CANCELLED) && strcmp(strand_exception_why(e), closes[i]) == 0)
            SIM_CHECK(!same(world.homes[child->number], world.first));
}

static void take(struct sim_life *me, void *child)
{
    (void)me;
    sim_take(strand_join(((struct sim_life *)child)->handle));
}

static void join(struct sim_life *child)
{
    strand_exception *e = sim_try(NULL, take, child);
    judge(child, e);
    sim_settle(e);
}

/* Somewhere, as the seed says. Throws if that is refused. */
static struct sim_life *spawn_somewhere(struct sim_life *me, strand_scope scope, void *arg)
{
    void *below = (void *)(uintptr_t)(depth_of(arg) - 1);
    struct place *place USING = use_one(me);
    if (!place || sim_one_in(&me->chance, 4))
        return sim_spawn(me, scope, act, below);
    if (sim_one_in(&me->chance, 8))
        return sim_spawn_at(me, scope, STRAND_ATTR(.pool = world.first), act, below, 0);
    if (sim_one_in(&me->chance, 4))
        return sim_spawn_at(me, scope, STRAND_ATTR(.pool = place->pool), stay, NULL, 0);
    if (sim_one_in(&me->chance, 2))
        return sim_spawn_at(me, scope, STRAND_ATTR(.pool = place->pool), act, below, 0);
    int thread = (int)sim_draw(&me->chance, THREADS_MOST);
    return sim_spawn_at(me, scope, STRAND_ATTR(.pool = place->pool, .pin = STRAND_PIN(thread)), act, pinned_at(thread),
                        0);
}

static struct sim_life *spawn_on_fibre(struct sim_life *me, strand_scope scope)
{
    uint32_t fibre = sim_draw(&me->chance, FIBRES);
    if (!world.fibres_known[fibre])
        return sim_spawn(me, scope, act, NULL);
    return sim_spawn_on(me, scope, world.fibres[fibre], act, NULL, 1 + (int)fibre);
}

static void spawn_and_join(struct sim_life *me, void *arg)
{
    STRAND_SCOPE(scope);
    struct sim_life *child = sim_one_in(&me->chance, 3) ? spawn_on_fibre(me, scope) : spawn_somewhere(me, scope, arg);
    if (sim_one_in(&me->chance, 4))
        sim_cancel(child, "by its parent");
    join(child);
}

static void hand_off(struct sim_life *me, void *arg)
{
    STRAND_SCOPE(scope);
    bool stays = sim_one_in(&me->chance, 3);
    struct sim_life *child = stays ? sim_spawn(me, scope, stay, NULL) : spawn_somewhere(me, scope, arg);
    if (sim_one_in(&me->chance, 3))
        strand_yield();
    if (strand_hand_off(child->handle, world.away) != 0)
        join(child);
}

static void spawn_away(struct sim_life *me, void *arg)
{
    (void)spawn_somewhere(me, world.away, arg);
}

static void send(struct sim_life *me, void *arg)
{
    long value = me->number;
    (void)arg;
    STRAND_DEADLINE(strand_in((int64_t)sim_draw(&me->chance, 30) * STRAND_US));
    if (strand_chan_send(world.chan, &value) == 0)
        world.sent++;
}

static void receive(struct sim_life *me, void *arg)
{
    long value;
    (void)arg;
    STRAND_DEADLINE(strand_in((int64_t)sim_draw(&me->chance, 30) * STRAND_US));
    if (strand_chan_receive(world.chan, &value) == 0)
        world.received++;
}

static void step_out(int *before)
{
    SIM_CHECK_EQ(--world.inside, *before);
}

static void lock(struct sim_life *me, void *arg)
{
    (void)arg;
    STRAND_LOCKED(&world.mutex);
    int before __attribute__((cleanup(step_out))) = world.inside++;
    SIM_CHECK_EQ(before, 0);
    if (sim_one_in(&me->chance, 2))
        strand_sleep(STRAND_US);
}

/* ---- an errand ------------------------------------------------------------------------------------------- */

/* No strand sleeps meanwhile: a strand of another pool wakes the waiter, while the pool of the first two is busy. */
static void wait_for_event(struct sim_life *me, void *event)
{
    SIM_CLEANUP(me);
    begin(me);
    strand_event_wait(event);
}

static void set_event(struct sim_life *me, void *event)
{
    SIM_CLEANUP(me);
    begin(me);
    strand_event_set(event);
}

static void send_on_errand(struct sim_life *me, void *arg)
{
    int number = world.errands_made++;
    (void)arg;
    if (number >= ERRANDS)
        return;
    strand_event *event = &world.errands[number];
    STRAND_SCOPE_WITH(scope, STRAND_COLLECT);
    struct sim_life *waits = sim_spawn(me, scope, wait_for_event, event);
    struct sim_life *sets = sim_spawn_at(me, scope, STRAND_ATTR(.pool = world.first), set_event, event, 0);
    while (!strand_ended(sets->handle))
        strand_yield();
    if (!sets->begun) /* there was no memory for it */
        sim_cancel(waits, "for nothing");
    while (!strand_ended(waits->handle))
        strand_yield();
    join(waits);
    join(sets);
}

/* ---- pools and fibres ------------------------------------------------------------------------------------ */

static void resize(struct sim_life *me, void *arg)
{
    (void)arg;
    struct place *place USING = use_one(me);
    if (!place)
        return;
    int error = strand_pool_resize(place->pool, 1 + (int)sim_draw(&me->chance, THREADS_MOST));
    SIM_CHECK(error == 0 || error == -EBUSY || error == -ESHUTDOWN || (error == -ENOMEM && sim_refuses_memory()));
    world.resized += error == 0;
}
/* Opens a fibre of the strand's own pool for other strands. */
static void open_fibre(struct sim_life *me, void *arg)
{
    (void)arg;
    int number = world.fibres_made++;
    if (number >= FIBRES)
        return;
    world.fibres[number] = strand_fibre_open(world.away, NULL);
    world.fibre_pools[number] = strand_pool_self();
    world.fibres_known[number] = 1;
    sim_observe((uint64_t)me->number);
}

static void trim_fibre(struct sim_life *me, void *arg)
{
    (void)arg;
    uint32_t fibre = sim_draw(&me->chance, FIBRES);
    if (world.fibres_known[fibre])
        (void)strand_fibre_trim(world.fibres[fibre]);
}

/* A pool of its own, below whatever pool that is. */
static void have_a_pool(struct sim_life *me, void *arg)
{
    static const char *const schedulers[] = {"stealing", "global", "dedicated"};
    const char *scheduler = schedulers[sim_draw(&me->chance, 3)];
    (void)arg;
    STRAND_SCOPE(scope);
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1, .scheduler = scheduler));
    struct sim_life *child = sim_spawn_at(me, scope, STRAND_ATTR(.pool = pool), act, NULL, 0);
    if (sim_one_in(&me->chance, 2))
        strand_yield();
    if (sim_one_in(&me->chance, 3))
        strand_pool_close(pool, "by its keeper");
    join(child);
}

static void do_one(struct sim_life *me, void *arg)
{
    static sim_body *const shallow[] = {send, receive, lock, resize, trim_fibre}, *const deep[] = {
                                                                                      spawn_and_join, hand_off,
                                                                                      spawn_away,     open_fibre,
                                                                                      have_a_pool,    send_on_errand};
    uint32_t what = sim_draw(&me->chance, depth_of(arg) > 0 ? 13 : 7);
    if (what == 0)
        strand_yield();
    else if (what == 1)
        strand_sleep((int64_t)sim_draw(&me->chance, 20) * STRAND_US);
    else if (what < 7)
        shallow[what - 2](me, arg);
    else
        deep[what - 7](me, arg);
}

/* Checks the pool and thread on which the strand continues. */
static void look_where(const struct sim_life *me, void *arg)
{
    int thread = (int)((uintptr_t)arg / 16) - 1;
    SIM_CHECK(same(world.homes[me->number], strand_pool_self()));
    if (thread >= 0)
        SIM_CHECK_EQ(strand_thread_index(), thread);
}

static void act(struct sim_life *me, void *arg)
{
    SIM_CLEANUP(me);
    begin(me);
    world.pinned += (uintptr_t)arg / 16 != 0;
    for (uint32_t n = 1 + sim_draw(&me->chance, 5); n > 0; n--) {
        look_where(me, arg);
        strand_exception *e = sim_try(me, do_one, arg);
        look_where(me, arg);
        world.refused += e && is_refusal(e);
        sim_settle(e);
    }
}

/* ---- who keeps a pool ------------------------------------------------------------------------------------ */

static void check_dry(strand_pool pool)
{
    strand_pool_info info = {.size = sizeof info};
    while (strand_pool_info_get(pool, &info), info.strands) /* one that is being refused counts for a moment */
        strand_yield();
    SIM_CHECK_EQ(info.threads, 0);
    for (int i = 1; i < SIM_LIVES; i++) {
        struct sim_life *life = same(world.homes[i], pool) ? sim_life(i) : NULL;
        SIM_CHECK(!life || sim_ended(life)); /* its spawner may not have gone on yet, and then nobody knows it */
    }
    world.closed++;
}

static void close_to_others(struct place **place)
{
    STRAND_SHIELD;
    (*place)->open = 0;
    while ((*place)->users)
        strand_yield();
}

/* Threads that must leave do so, whatever the strands do. */
static void check_threads(strand_pool pool)
{
    strand_pool_info info = {.size = sizeof info};
    do {
        strand_yield();
        strand_pool_info_get(pool, &info);
    } while (info.threads != info.wanted);
}

static void let_others_close(struct sim_life *me, void *arg)
{
    struct place *place = arg;
    (void)me;
    strand_pool_close(place->pool, "by somebody else");
    check_dry(place->pool);
}

static void keep(struct sim_life *me, void *arg)
{
    static const char *const schedulers[] = {"stealing", "stealing", "global"};
    struct place *place = &world.places[me->tag];
    const char *scheduler = schedulers[sim_draw(&me->chance, 3)];
    (void)arg;
    STRAND_SCOPE(scope);
    place->pool = strand_pool_open(
        scope, STRAND_POOL_ATTR(.threads = 1 + (int)sim_draw(&me->chance, THREADS_MOST), .scheduler = scheduler));
    struct place *open __attribute__((cleanup(close_to_others), unused)) = place;
    place->open = 1;
    STRAND_SCOPE(closers);
    for (uint32_t n = sim_draw(&me->chance, 12); n > 0; n--) {
        strand_sleep((int64_t)sim_draw(&me->chance, 40) * STRAND_US);
        if (sim_one_in(&me->chance, 2))
            resize(me, NULL);
        if (sim_one_in(&me->chance, 4))
            check_threads(place->pool);
    }
    if (sim_one_in(&me->chance, 3))
        sim_spawn(me, closers, let_others_close, place);
    if (sim_one_in(&me->chance, 2)) {
        strand_pool_close(place->pool, "by its keeper");
        check_dry(place->pool);
    }
    strand_scope_join(closers);
}

/* Once more in the same place: the handle is another one, though the pool may get the memory of the last. */
static void keeper(struct sim_life *me, void *arg)
{
    SIM_CLEANUP(me);
    for (uint32_t n = 1 + sim_draw(&me->chance, 3); n > 0; n--) {
        strand_exception *e = sim_try(me, keep, arg);
        sim_settle(e);
    }
}

/* ---- the run ---------------------------------------------------------------------------------------------- */

static void drain(void)
{
    long value;
    strand_chan_close(world.chan);
    while (strand_chan_receive(world.chan, &value) == 0)
        world.received++;
    SIM_CHECK_EQ(world.sent, world.received);
}

static void live(struct sim_life *me, void *arg)
{
    struct sim_life *others[KEEPERS + USERS];
    (void)arg;
    STRAND_SCOPE_WITH(away, STRAND_OPEN | STRAND_COLLECT);
    world.away = away;
    STRAND_SCOPE_WITH(scope, STRAND_COLLECT);
    for (int i = 0; i < KEEPERS; i++)
        others[i] = sim_spawn_tagged(me, scope, keeper, NULL, i);
    for (int i = 0; i < USERS; i++)
        others[KEEPERS + i] = sim_spawn(me, scope, act, (void *)3);
    for (uint32_t n = sim_draw(&me->chance, 4); n > 0; n--) {
        struct sim_life *somebody = sim_somebody(me);
        strand_sleep((int64_t)sim_draw(&me->chance, 40) * STRAND_US);
        if (somebody && somebody->number)
            sim_cancel(somebody, "by the root");
    }
    for (int i = 0; i < KEEPERS + USERS; i++)
        (void)sim_join(others[i]);
    strand_scope_cancel(away, "it is late");
}

static void root(struct sim_life *me, void *arg)
{
    STRAND_SCOPE(scope);
    world.first = strand_pool_self();
    world.chan = strand_chan_open(scope, sizeof(long), sim_draw(&me->chance, 3), NULL);
    live(me, arg);
    drain();
}

static void oracle(void)
{
    sim_observe((uint64_t)world.sent << 32 | (uint64_t)world.refused << 16 | (uint64_t)world.closed);
    sim_observe((uint64_t)world.resized << 16 | (uint64_t)world.pinned);
}

SIM_WORKLOAD_THAT(SIM_NO_MEMORY, pools, root, oracle, world);
