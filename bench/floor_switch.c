/*
 * The floor of switch and yield1000: N contexts in a ring, each jumps straight to the next. The stacks start at
 * different offsets of their pages, so that they do not compete for the same cache sets. Nothing computes in floating
 * point until all is measured: where a jump changes MXCSR, were it by a sticky flag only, it can take ten times as
 * long.
 */
#include "bench.h"
#include "floor.h"

#include <sys/mman.h>

enum { SWITCHES = BENCH_MANY(1000000), STACK = 16384, COLOURS = 64 };

struct member {
    struct member *next;
    void *context;
};

static long total;

/* The context that is jumped to gets the member that jumped, and records where that one is suspended. */
static void entry(struct floor_transfer t)
{
    struct member *left = t.data;
    struct member *self = left->next;
    left->context = t.from;
    for (;;) {
        total++;
        t = jump_fcontext(self->next->context, self);
        left = t.data;
        left->context = t.from;
    }
}

static int64_t measure(struct member *ring, long turns)
{
    total = 0;
    int64_t start = bench_now();
    for (long i = 0; i < turns; i++) {
        struct floor_transfer t = jump_fcontext(ring->next->context, ring);
        struct member *left = t.data;
        left->context = t.from;
        total++;
    }
    return bench_now() - start;
}

int main(int argc, char **argv)
{
    long contexts = bench_argument(argc, argv, 2);
    long turns = SWITCHES / contexts;
    struct member *ring = calloc((size_t)contexts, sizeof *ring);
    size_t size = (size_t)contexts * STACK;
    char *stacks = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    bench_check(ring != NULL && stacks != MAP_FAILED, "no memory for %ld stacks", contexts);
    for (long i = 0; i < contexts; i++) {
        ring[i].next = &ring[(i + 1) % contexts];
        size_t colour = (size_t)(i % COLOURS) * 64;
        ring[i].context = make_fcontext(stacks + (i + 1) * STACK - colour, STACK - colour, entry);
    }
    measure(ring, turns); /* the main context takes the place of the first member */
    int64_t taken[BENCH_SAMPLES];
    for (int i = 0; i < BENCH_SAMPLES; i++) {
        taken[i] = measure(ring, turns);
        bench_check(total == turns * contexts, "%ld turns", total);
    }
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample(contexts == 2 ? "switch" : "yield1000", "floor", 1, "ns", (double)taken[i] / (double)total);
    return 0;
}
