/*
 * actor_big: each of 120 actors sends a ping to each other one, and answers with a pong what it gets, again and again;
 * a ping with its pong.
 */
#include "bench.h"

#include <strand.h>
#include <strand/actor.h>
#include <strand/pool.h>
#include <strand/sync.h>

enum { ACTORS = 120, PINGS = BENCH_MANY(5000) };

STRAND_MESSAGE(begin, { uint64_t seed; });
STRAND_MESSAGE(ping, { uint64_t n; });
STRAND_MESSAGE(pong, { uint64_t n; });

static strand_event done;
static strand_actor actors[ACTORS];
static _Atomic uint64_t sum, ended;

struct player {
    uint64_t random, left, sum;
};

/* To another than itself, at random. */
static void send_one(struct player *me)
{
    strand_actor to, self = strand_actor_self();
    do
        to = actors[bench_random(&me->random) % ACTORS];
    while (to.bits[1] == self.bits[1]);
    strand_tell(to, STRAND_MSG(ping, me->left--));
}

static void play(void *state, strand_message *message)
{
    struct player *me = state;
    const begin *b = STRAND_IS(message, begin);
    const ping *i = STRAND_IS(message, ping);
    const pong *o = STRAND_IS(message, pong);
    if (i) {
        STRAND_IGNORE(strand_reply(message, STRAND_MSG(pong, i->n)));
        return;
    }
    if (b)
        *me = (struct player){b->seed, PINGS, 0};
    else
        me->sum += o->n;
    if (me->left) {
        send_one(me);
    } else {
        sum += me->sum;
        if (++ended == ACTORS)
            strand_event_set(&done);
    }
}

static const strand_actor_class player = {
    .size = sizeof player, .name = "player", .state_size = sizeof(struct player), .receive = play};

static double measure(strand_actors system)
{
    sum = ended = 0;
    done = (strand_event){{0}};
    for (int i = 0; i < ACTORS; i++)
        actors[i] = strand_actor_spawn(system, NULL, &player, NULL, 0);
    int64_t start = bench_now();
    for (int i = 0; i < ACTORS; i++)
        strand_tell(actors[i], STRAND_MSG(begin, (uint64_t)i));
    strand_event_wait(&done);
    int64_t taken = bench_now() - start;
    bench_check(sum == (uint64_t)ACTORS * PINGS * (PINGS + 1) / 2, "the sum is %" PRIu64, (uint64_t)sum);
    for (int i = 0; i < ACTORS; i++)
        strand_actor_stop(actors[i], STRAND_STOP_NEXT);
    return (double)taken / ((double)ACTORS * PINGS);
}

static void *root(void *arg)
{
    int threads = *(int *)arg;
    STRAND_ACTORS(system, NULL);
    measure(system);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample("actor_big", "strand", threads, "ns", measure(system));
    return NULL;
}

int main(int argc, char **argv)
{
    int threads = (int)bench_argument(argc, argv, 1);
    strand_run(STRAND_OPTIONS(.threads = threads), root, &threads);
    return 0;
}
