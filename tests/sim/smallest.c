/*
 * The smallest run that is one: a scope, two strands, two joins. It measures what a seed costs by itself, so it goes
 * without the lives of sim.h.
 */
#include "sim.h"

static struct {
    _Atomic int begun, joined;
} world;

static void *child(void *arg)
{
    world.begun++;
    strand_yield();
    return arg;
}

static void root(struct sim_life *me, void *arg)
{
    (void)arg;
    STRAND_SCOPE(scope);
    strand first = strand_spawn(scope, child, me), second = strand_spawn(scope, child, &world);
    SIM_CHECK(strand_join(first) == me);
    world.joined++;
    SIM_CHECK(strand_join(second) == &world);
    world.joined++;
}

static void oracle(void)
{
    SIM_CHECK_EQ(world.begun, 2);
    SIM_CHECK_EQ(world.joined, 2);
}

SIM_WORKLOAD(smallest, root, oracle, world);
