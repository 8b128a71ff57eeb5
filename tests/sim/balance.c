/*
 * A pool whose threads take strands over from each other all the time, while the strands yield, sleep, wake each other,
 * spawn and join. Some strands are pinned, some are cancelled, and threads come and go. Every runnable strand runs: all
 * end, otherwise the run reports a deadlock. Each strand gets all its turns; a pinned strand stays on its thread; each
 * sent value arrives once.
 */
#include "sim.h"

#include "strand/chan.h"

enum { ACTORS = 6, THREADS_MOST = 4, TURNS = 6 };

typedef STRAND_CHAN(long) numbers;

static struct {
    strand_pool pool;
    numbers chan;
    _Atomic int turns, sent, received, moved, pinned;
} world;

/* ---- what a strand does ---------------------------------------------------------------------------------- */

struct spell {
    int depth, thread; /* -1: it is not pinned */
};

static void act(struct sim_life *me, void *arg);

static void yield_often(struct sim_life *me, const struct spell *spell)
{
    int at = strand_thread_index();
    for (uint32_t n = sim_draw(&me->chance, TURNS); n > 0; n--) {
        strand_yield();
        world.turns++;
    }
    world.moved += spell->thread < 0 && strand_thread_index() != at;
}

static void doze(struct sim_life *me, const struct spell *spell)
{
    (void)spell;
    strand_sleep((int64_t)sim_draw(&me->chance, 30) * STRAND_US);
}

static void send(struct sim_life *me, const struct spell *spell)
{
    long value = me->number;
    (void)spell;
    world.sent += STRAND_TRY_SEND(world.chan, &value) == 0;
}

static void receive(struct sim_life *me, const struct spell *spell)
{
    long value;
    (void)me;
    (void)spell;
    world.received += STRAND_TRY_RECEIVE(world.chan, &value) == 0;
}

static struct sim_life *spawn_here(struct sim_life *me, strand_scope scope, struct spell *spell)
{
    struct strand_attr attr = {.size = sizeof attr, .pool = world.pool};
    if (spell->thread >= 0)
        attr.pin = STRAND_PIN(spell->thread);
    return sim_spawn_at(me, scope, &attr, act, spell, 0);
}

static void have_children(struct sim_life *me, const struct spell *spell)
{
    enum { MOST = 3 };
    struct sim_life *children[MOST];
    struct spell theirs[MOST];
    uint32_t count = spell->depth ? 1 + sim_draw(&me->chance, MOST) : 0;
    STRAND_SCOPE(scope);
    for (uint32_t i = 0; i < count; i++) {
        theirs[i] = (struct spell){spell->depth - 1, sim_one_in(&me->chance, 4) ? 0 : -1};
        children[i] = spawn_here(me, scope, &theirs[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (sim_one_in(&me->chance, 4))
            sim_cancel(children[i], NULL);
        sim_join(children[i]);
    }
}

static void act(struct sim_life *me, void *arg)
{
    static void (*const ways[])(struct sim_life * me, const struct spell *spell) = {
        yield_often, yield_often, doze, send, receive, have_children};
    const struct spell *spell = arg;
    SIM_CLEANUP(me);
    world.pinned += spell->thread >= 0;
    for (uint32_t n = 1 + sim_draw(&me->chance, 4); n > 0; n--) {
        ways[sim_draw(&me->chance, sizeof ways / sizeof *ways)](me, spell);
        if (spell->thread >= 0)
            SIM_CHECK_EQ(strand_thread_index(), spell->thread);
    }
}

/* ---- the run ---------------------------------------------------------------------------------------------- */

/* Threads come and go meanwhile; the one to which strands are pinned stays. */
static void resize(struct sim_life *me, void *arg)
{
    (void)arg;
    SIM_CLEANUP(me);
    for (uint32_t n = sim_draw(&me->chance, 4); n > 0; n--) {
        strand_sleep((int64_t)sim_draw(&me->chance, 20) * STRAND_US);
        SIM_CHECK_EQ(strand_pool_resize(world.pool, 1 + (int)sim_draw(&me->chance, THREADS_MOST)), 0);
    }
}

static void look_at_figures(void)
{
    strand_pool_info info = {.size = sizeof info};
    strand_pool_info_get(world.pool, &info);
    SIM_CHECK(info.unequal >= 1 && info.wait_ns >= 0);
}

static void root(struct sim_life *me, void *arg)
{
    static const enum strand_balance ways[] = {STRAND_BALANCE_STIR, STRAND_BALANCE_STIR, STRAND_BALANCE_EVEN};
    struct sim_life *lives[ACTORS + 1];
    struct spell spells[ACTORS];
    int threads = 2 + (int)sim_draw(&me->chance, THREADS_MOST - 1);
    (void)arg;
    STRAND_SCOPE(pools);
    world.pool =
        strand_pool_open(pools, STRAND_POOL_ATTR(.threads = threads, .balance = ways[sim_draw(&me->chance, 3)]));
    STRAND_SCOPE(scope);
    world.chan = STRAND_CHAN_OPEN(numbers, scope, 4);
    for (int i = 0; i < ACTORS; i++) {
        spells[i] = (struct spell){2, sim_one_in(&me->chance, 4) ? 0 : -1};
        lives[i] = spawn_here(me, scope, &spells[i]);
    }
    lives[ACTORS] = sim_spawn(me, scope, resize, NULL);
    look_at_figures();
    for (int i = 0; i <= ACTORS; i++)
        sim_join(lives[i]);
    for (long value; STRAND_TRY_RECEIVE(world.chan, &value) == 0;)
        world.received++;
    look_at_figures();
}

static void oracle(void)
{
    SIM_CHECK_EQ(world.sent, world.received);
    sim_observe((uint64_t)world.turns);
    sim_observe((uint64_t)world.moved);
    sim_observe((uint64_t)world.pinned);
}

SIM_WORKLOAD(balance, root, oracle, world);
