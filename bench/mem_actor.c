/*
 * mem_actor: what an actor takes that has nothing to do, with eight bytes of state and a supervisor; the bytes that are
 * resident for a million of them, each.
 */
/* S-08, S-09, S-12, contract 6.1 */
#include "bench.h"

#include <strand.h>
#include <strand/actor.h>
#include <strand/pool.h>
#include <strand/sync.h>

enum { ACTORS = BENCH_MANY(1000000) };

STRAND_MESSAGE(add, { uint64_t n; });

static strand_event done;
static _Atomic uint64_t sum, count;

static void keep(void *state, strand_message *message)
{
    uint64_t *own = state;
    *own += STRAND_IS(message, add)->n;
    sum += *own;
    if (++count % ACTORS == 0)
        strand_event_set(&done);
}

static const strand_actor_class keeper = {
    .size = sizeof keeper, .name = "keeper", .state_size = sizeof(uint64_t), .receive = keep};

static void tell_all(const strand_actor *actors)
{
    done = (strand_event){{0}};
    for (uint64_t i = 0; i < ACTORS; i++) {
        strand_tell(actors[i], STRAND_MSG(add, i));
        if (i % 64 == 0)
            strand_yield();
    }
    strand_event_wait(&done);
}

static void *root(void *arg)
{
    static strand_actor actors[ACTORS];
    memset(actors, 1, sizeof actors);
    STRAND_ACTORS(system, NULL);
    int64_t before = bench_resident();
    for (int i = 0; i < ACTORS; i++)
        actors[i] = strand_actor_spawn(system, NULL, &keeper, NULL, 0);
    tell_all(actors);
    int64_t after = bench_resident();
    bench_sample("mem_actor", "strand", *(int *)arg, "bytes", (double)(after - before) / ACTORS);
    tell_all(actors);
    bench_check(sum == 3 * ((uint64_t)ACTORS * (ACTORS - 1) / 2), "the sum is %" PRIu64, (uint64_t)sum);
    return NULL;
}

int main(int argc, char **argv)
{
    int threads = (int)bench_argument(argc, argv, 1);
    strand_run(STRAND_OPTIONS(.threads = threads), root, &threads);
    return 0;
}
