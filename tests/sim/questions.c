/*
 * Questions to all actors of a router, at times through routers below it. Strands outside answer them, while the actors
 * end the handling, forget other questions, fail, and end; some askers give up early. Each question comes to an end.
 * An answer is that to its own question. There is one wherever an actor that goes on has seen to it.
 */
#include "sim.h"

#include "strand/actor.h"
#include "strand/chan.h"

#include <errno.h>

enum { ASKERS = 3, HELPERS = 2, TURNS = 4, WIDTH = 2, ANSWERS = ASKERS * TURNS * WIDTH * WIDTH * 2 };

static struct {
    strand_actor all;
    bool deep, fails; /* there are routers below; actors fail, and end */
    strand_chan kept; /* a struct kept for each answer that a helper must give */
    _Atomic int actors, over;
} world;

STRAND_MESSAGE(question, {
    struct sim_chance chance;
    int number;
});
STRAND_MESSAGE(answer, { int number; });

/* ---- helpers ----------------------------------------------------------------------------------------------- */

struct kept {
    strand_actor asker;
    int number;
};

static void keep(strand_actor asker, int number)
{
    int error = strand_chan_try_send(world.kept, &(struct kept){asker, number});
    SIM_CHECK(!error || error == -EPIPE); /* it is closed when nobody asks any more */
}

static void be_helper(struct sim_life *me, void *arg)
{
    struct kept kept;
    (void)me, (void)arg;
    while (!strand_chan_receive(world.kept, &kept))
        (void)strand_tell(kept.asker, STRAND_MSG(answer, kept.number + 1));
}

/* ---- actors ------------------------------------------------------------------------------------------------ */

static void start(void *state, const void *args)
{
    (void)args;
    *(int *)state = world.actors++;
}

static void be_worker(void *state, strand_message *message)
{
    const question *q = STRAND_IS(message, question);
    int me = *(int *)state;
    struct sim_chance chance = {q->chance.state + (uint64_t)me * UINT64_C(0x9e3779b97f4a7c15)};
    uint32_t draw = sim_draw(&chance, 8);
    if (world.fails && draw == 0) {
        static const strand_kind quiet = STRAND_KIND("sim-failure", &STRAND_ERROR);
        strand_throw(&quiet, "on purpose");
    }
    if (world.fails && draw == 1)
        (void)strand_actor_stop(strand_actor_self(), STRAND_STOP_NEXT);
    if (me % WIDTH == q->number % WIDTH || draw < 5)
        keep(message->sender, q->number);
    if (draw == 2) /* two answers at once */
        keep(message->sender, q->number);
    if (draw == 6)
        STRAND_IGNORE(strand_reply(message, STRAND_MSG(answer, q->number + 1)));
}

static enum strand_directive decide(void *none, strand_actor child, const strand_exception *why)
{
    (void)none, (void)child, (void)why;
    return STRAND_RESUME;
}

static const strand_actor_class worker = {
    .size = sizeof worker, .name = "worker", .state_size = sizeof(int), .receive = be_worker, .start = start};

/* It has a router of its own. */
static void start_above(void *state, const void *args)
{
    (void)args;
    *(strand_actor *)state = strand_router_spawn(
        strand_actor_system(), NULL,
        STRAND_ROUTER(.route = STRAND_ROUTE_ALL, .count = WIDTH, .class_ = &worker, .decide = decide));
}

static void pass_down(void *state, strand_message *message)
{
    int error = strand_message_forward(message, *(strand_actor *)state);
    SIM_CHECK(!error || error == -EPIPE); /* it has ended, or the system is about to */
}

static const strand_actor_class above = {.size = sizeof above,
                                         .name = "above",
                                         .state_size = sizeof(strand_actor),
                                         .receive = pass_down,
                                         .start = start_above};

/* ---- askers ------------------------------------------------------------------------------------------------ */

static void ask(struct sim_life *me, void *hasty)
{
    answer got = {0};
    int number = (int)sim_draw(&me->chance, 1000);
    int64_t patience = hasty ? (int64_t)sim_draw(&me->chance, 8) * STRAND_US : STRAND_S;
    STRAND_DEADLINE(strand_in(patience));
    int error = strand_ask(world.all, STRAND_MSG(question, me->chance, number), STRAND_INTO(answer, &got));
    if (!error)
        SIM_CHECK_EQ(got.number, number + 1);
    else
        SIM_CHECK(error == -EPIPE && world.fails);
}

static void be_asker(struct sim_life *me, void *arg)
{
    (void)arg;
    for (int i = 0; i < TURNS; i++) {
        bool hasty = sim_one_in(&me->chance, 4);
        strand_exception *e = sim_try(me, ask, hasty ? me : NULL);
        world.over++;
        if (!e)
            continue;
        SIM_CHECK(strand_exception_is(e, &STRAND_TIMED_OUT));
        SIM_CHECK(hasty || world.fails);
        strand_exception_release(e);
    }
}

static void root(struct sim_life *me, void *arg)
{
    (void)arg;
    struct sim_life *all[ASKERS + HELPERS];
    world.deep = sim_one_in(&me->chance, 4);
    world.fails = sim_one_in(&me->chance, 3);
    STRAND_SCOPE(scope);
    world.kept = strand_chan_open(scope, sizeof(struct kept), ANSWERS, NULL);
    STRAND_ACTORS(system, NULL);
    world.all = strand_router_spawn(system, NULL,
                                    STRAND_ROUTER(.route = STRAND_ROUTE_ALL, .count = WIDTH,
                                                  .class_ = world.deep ? &above : &worker, .decide = decide));
    for (int i = 0; i < ASKERS + HELPERS; i++)
        all[i] = sim_spawn(me, scope, i < ASKERS ? be_asker : be_helper, NULL);
    for (int i = 0; i < ASKERS + HELPERS; i++) {
        if (i == ASKERS) /* nobody asks any more */
            strand_chan_close(world.kept);
        (void)sim_join(all[i]);
    }
}

static void oracle(void)
{
    SIM_CHECK_EQ(world.over, ASKERS * TURNS);
}

SIM_WORKLOAD(questions, root, oracle, world);
