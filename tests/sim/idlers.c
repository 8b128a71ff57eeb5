/*
 * Actors that set their receive timeout again at about the time when it fires, and get messages then. In the end the
 * messages stop. Then each actor gets the message that it was idle, and never before it was idle for that long.
 */
#include "sim.h"

#include "strand/actor.h"

enum { IDLERS = 2, TURNS = 6 };

static struct {
    _Atomic int idle; /* how many have heard it, at the end */
    strand_actor actors[IDLERS];
} world;

STRAND_MESSAGE(order, {
    int64_t patience;
    bool last;
});

struct state {
    int64_t patience, since;
    bool last;
};

static void be_idler(void *state, strand_message *message)
{
    struct state *me = state;
    const order *o = STRAND_IS(message, order);
    if (!o) {
        SIM_CHECK(message->type == &strand_receive_timeout_message);
        SIM_CHECK(strand_now().ns - me->since >= me->patience);
        if (me->last && strand_actor_receive_timeout(0) == 0)
            world.idle++;
        return;
    }
    me->last = o->last;
    me->patience = o->patience;
    SIM_CHECK_EQ(strand_actor_receive_timeout(o->patience), 0);
    me->since = strand_now().ns;
}

static const strand_actor_class idler = {
    .size = sizeof idler, .name = "idler", .state_size = sizeof(struct state), .receive = be_idler};

static void disturb(struct sim_life *me, void *arg)
{
    (void)arg;
    int64_t patience = 0;
    for (int i = 0; i < TURNS; i++) {
        if (patience)
            strand_sleep(patience - (int64_t)sim_draw(&me->chance, 3) * 100);
        patience = (int64_t)(1 + sim_draw(&me->chance, 4)) * STRAND_US;
        SIM_CHECK_EQ(strand_tell(world.actors[me->tag], STRAND_MSG(order, patience, i == TURNS - 1)), 0);
    }
}

static void root(struct sim_life *me, void *arg)
{
    (void)arg;
    STRAND_ACTORS(system, NULL);
    for (int i = 0; i < IDLERS; i++)
        world.actors[i] = strand_actor_spawn(system, NULL, &idler, NULL, 0);
    STRAND_SCOPE(scope);
    for (int i = 0; i < IDLERS; i++)
        (void)sim_spawn_tagged(me, scope, disturb, NULL, i);
    strand_scope_join(scope);
    for (int i = 0; i < 100 && world.idle < IDLERS; i++)
        strand_sleep(100 * STRAND_US);
}

static void oracle(void)
{
    SIM_CHECK_EQ(world.idle, IDLERS);
}

SIM_WORKLOAD(idlers, root, oracle, world);
