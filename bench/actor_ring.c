/*
 * actor_ring: 503 actors in a ring pass one number on, a million times; a hop.
 */
#include "bench.h"

#include <strand.h>
#include <strand/actor.h>
#include <strand/pool.h>
#include <strand/sync.h>

enum { ACTORS = 503, HOPS = BENCH_MANY(1000000) };

STRAND_MESSAGE(next_is, { strand_actor next; });
STRAND_MESSAGE(token, { uint64_t left; });

static strand_event done;
static _Atomic uint64_t hops;

static void pass(void *state, strand_message *message)
{
    strand_actor *next = state;
    const token *t = STRAND_IS(message, token);
    const next_is *n = STRAND_IS(message, next_is);
    if (n)
        *next = n->next;
    else if (t->left)
        strand_tell(*next, STRAND_MSG(token, t->left - 1));
    if (t) {
        hops++;
        if (!t->left)
            strand_event_set(&done);
    }
}

static const strand_actor_class station = {
    .size = sizeof station, .name = "station", .state_size = sizeof(strand_actor), .receive = pass};

static double measure(strand_actors system)
{
    strand_actor ring[ACTORS];
    for (int i = 0; i < ACTORS; i++)
        ring[i] = strand_actor_spawn(system, NULL, &station, NULL, 0);
    for (int i = 0; i < ACTORS; i++)
        strand_tell(ring[i], STRAND_MSG(next_is, ring[(i + 1) % ACTORS]));
    hops = 0;
    done = (strand_event){{0}};
    int64_t start = bench_now();
    strand_tell(ring[0], STRAND_MSG(token, HOPS));
    strand_event_wait(&done);
    int64_t taken = bench_now() - start;
    bench_check(hops == HOPS + 1, "%" PRIu64 " hops", (uint64_t)hops);
    for (int i = 0; i < ACTORS; i++)
        strand_actor_stop(ring[i], STRAND_STOP_NEXT);
    return (double)taken / HOPS;
}

static void *root(void *arg)
{
    int threads = *(int *)arg;
    STRAND_ACTORS(system, NULL);
    measure(system);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample("actor_ring", "strand", threads, "ns", measure(system));
    return NULL;
}

int main(int argc, char **argv)
{
    int threads = (int)bench_argument(argc, argv, 1);
    strand_run(STRAND_OPTIONS(.threads = threads), root, &threads);
    return 0;
}
