/*
 * switch, yield1000: N strands on one thread that do nothing but yield. One switch, through the scheduler, one way.
 */
#include "bench.h"

#include <strand.h>

enum { SWITCHES = BENCH_MANY(1000000) };

struct ring {
    long strands, turns;
    long total;    /* turns taken by all */
    long repeats;  /* turns that followed a turn of the same strand */
    uint64_t last; /* the strand that took the last one */
};

static void *take_turns(void *arg)
{
    struct ring *ring = arg;
    for (long i = 0; i < ring->turns; i++)
        strand_yield();
    ring->total += ring->turns;
    return NULL;
}

/* The same with a look at who came before: a yield that returns at once is no switch. */
static void *take_turns_watched(void *arg)
{
    struct ring *ring = arg;
    uint64_t self = strand_id(strand_self());
    for (long i = 0; i < ring->turns; i++) {
        ring->repeats += ring->last == self;
        ring->last = self;
        strand_yield();
    }
    ring->total += ring->turns;
    return NULL;
}

static double measure(struct ring *ring, strand_fn *member)
{
    ring->total = 0;
    STRAND_SCOPE(scope);
    int64_t start = bench_now();
    for (long i = 0; i < ring->strands; i++)
        strand_spawn(scope, member, ring);
    strand_scope_join(scope);
    int64_t taken = bench_now() - start;
    bench_check(ring->total == ring->strands * ring->turns, "%ld turns", ring->total);
    return (double)taken / (double)ring->total;
}

static void *root(void *arg)
{
    struct ring *ring = arg;
    measure(ring, take_turns_watched);
    bench_check(ring->repeats <= ring->strands, "%ld yields returned without a switch", ring->repeats);
    measure(ring, take_turns);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample(ring->strands == 2 ? "switch" : "yield1000", "strand", 1, "ns", measure(ring, take_turns));
    return NULL;
}

int main(int argc, char **argv)
{
    struct ring ring = {.strands = bench_argument(argc, argv, 2)};
    ring.turns = SWITCHES / ring.strands;
    strand_run(NULL, root, &ring);
    return 0;
}
