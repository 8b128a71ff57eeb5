/*
 * skynet: a tree of strands, ten children each, a million leaves; every strand returns the sum of its leaves' numbers.
 * mem_skynet: the most bytes that the process had resident.
 */
#include "bench.h"

#include <strand/pool.h>

enum { SAMPLES = BENCH_LONG(3), FAN_OUT = 10, LEAVES = BENCH_MANY(1000000), SIZE_BITS = 24 };

/* Number of the first leaf and count of leaves, in one word. */
static void *part(uint64_t first, uint64_t leaves)
{
    return (void *)(uintptr_t)(first << SIZE_BITS | leaves);
}

static void *sky(void *arg)
{
    uint64_t first = (uintptr_t)arg >> SIZE_BITS;
    uint64_t leaves = (uintptr_t)arg & ((1 << SIZE_BITS) - 1);
    if (leaves == 1)
        return (void *)(uintptr_t)first;
    strand children[FAN_OUT];
    uint64_t each = leaves / FAN_OUT;
    uint64_t sum = 0;
    STRAND_SCOPE(scope);
    for (unsigned i = 0; i < FAN_OUT; i++)
        children[i] = strand_spawn(scope, sky, part(first + i * each, each));
    for (unsigned i = FAN_OUT; i-- > 0;)
        sum += (uintptr_t)strand_join(children[i]);
    return (void *)(uintptr_t)sum;
}

static double measure(void)
{
    int64_t start = bench_now();
    uintptr_t sum = (uintptr_t)sky(part(0, LEAVES));
    int64_t taken = bench_now() - start;
    bench_check(sum == (uintptr_t)LEAVES * (LEAVES - 1) / 2, "sum %" PRIuPTR, sum);
    return (double)taken / 1e6;
}

static void *root(void *arg)
{
    const int *threads = arg;
    measure();
    for (int i = 0; i < SAMPLES; i++)
        bench_sample("skynet", "strand", *threads, "ms", measure());
    bench_sample("mem_skynet", "strand", *threads, "bytes", (double)bench_peak());
    return NULL;
}

int main(int argc, char **argv)
{
    int threads = (int)bench_argument(argc, argv, 1);
    strand_run(STRAND_OPTIONS(.threads = threads), root, &threads);
    return 0;
}
