/*
 * Trees of strands that end in every possible way, while any strand cancels any other and waits for any other. The law
 * is that of all workloads: each spawned strand begins and ends once, and every result is taken once.
 */
#include "sim.h"

enum { FANOUT = 4, DEPTH = 3 };

static struct {
    _Atomic int waited;
} world;

static void wait_for(struct sim_life *me, void *other)
{
    (void)me;
    strand_wait(((struct sim_life *)other)->handle);
    SIM_CHECK(strand_ended(((struct sim_life *)other)->handle));
    SIM_CHECK(sim_ended(other));
    world.waited++;
}

/* Waits with a limit, because the other strand may wait for this one. */
static void wait_a_while(struct sim_life *me, void *other)
{
    STRAND_DEADLINE(strand_in(sim_draw(&me->chance, 40) * STRAND_US));
    wait_for(me, other);
}

static void meddle(struct sim_life *me)
{
    struct sim_life *other = sim_somebody(me);
    if (!other || other == me)
        return;
    if (sim_one_in(&me->chance, 2))
        sim_cancel(other, "by anybody");
    else
        sim_settle(sim_try(me, wait_a_while, other));
}

/* Some ways out end all children: then there may be such that don't end by themselves. */
enum way { JOIN_EACH, JOIN_SCOPE, JOIN_SOME, CANCEL_SCOPE, CANCEL_EACH, FAIL, SLEEP, WAYS };

static bool ends_all(enum way way)
{
    return way >= CANCEL_SCOPE;
}

static void end_in_some_way(struct sim_life *me, strand_scope scope, struct sim_life **children, int count,
                            enum way way)
{
    switch (way) {
    case JOIN_SOME: /* one of them is left to the scope */
    case JOIN_EACH:
        for (int i = way == JOIN_SOME; i < count; i++)
            sim_join(children[i]);
        break;
    case CANCEL_SCOPE:
        strand_scope_cancel(scope, "the whole scope");
        break;
    case CANCEL_EACH:
        for (int i = 0; i < count; i++)
            sim_cancel(children[i], "one by one");
        break;
    case FAIL:
        sim_fail(me);
    case SLEEP:
        strand_sleep(sim_draw(&me->chance, 100) * STRAND_US);
        break;
    default:
        strand_scope_join(scope);
        SIM_CHECK_EQ(strand_scope_count(scope), 0);
    }
}

static void grow(struct sim_life *me, void *arg);

static struct sim_life *grow_child(struct sim_life *me, strand_scope scope, enum way way)
{
    sim_body *body = ends_all(way) && sim_one_in(&me->chance, 4) ? sim_eternal : grow;
    struct sim_life *child = sim_spawn_tagged(me, scope, body, NULL, me->tag + 1);
    if (sim_one_in(&me->chance, 8))
        sim_cancel(child, "at birth");
    if (sim_one_in(&me->chance, 4))
        strand_yield();
    return child;
}

static void grow(struct sim_life *me, void *arg)
{
    static const unsigned flags[] = {0, 0, STRAND_TOGETHER, STRAND_COLLECT, STRAND_OPEN};
    struct sim_life *children[FANOUT];
    (void)arg;
    SIM_CLEANUP(me);
    if (me->tag == DEPTH || sim_one_in(&me->chance, 4)) {
        if (sim_one_in(&me->chance, 4))
            sim_fail(me);
        strand_sleep(sim_draw(&me->chance, 3) * 20 * STRAND_US);
        return;
    }
    int count = 1 + (int)sim_draw(&me->chance, FANOUT);
    enum way way = sim_draw(&me->chance, WAYS);
    STRAND_SCOPE_WITH(scope, flags[sim_draw(&me->chance, 5)]);
    SIM_CLEANUP(me);
    for (int i = 0; i < count; i++)
        children[i] = grow_child(me, scope, way);
    if (sim_one_in(&me->chance, 3))
        meddle(me);
    end_in_some_way(me, scope, children, count, way);
}

static void root(struct sim_life *me, void *arg)
{
    strand_exception_release(sim_try(me, grow, arg));
}

static void oracle(void)
{
    sim_observe((uint64_t)world.waited);
}

SIM_WORKLOAD_THAT(SIM_NO_MEMORY, trees, root, oracle, world);
