/*
 * spawn_join: spawn a strand that returns its argument, join it, again and again.
 */
#include "bench.h"

#include <strand/pool.h>

enum { ROUNDS = BENCH_MANY(300000) };

static void *leaf(void *arg)
{
    return arg;
}

static double measure(void)
{
    intptr_t sum = 0;
    STRAND_SCOPE(scope);
    int64_t start = bench_now();
    for (intptr_t i = 0; i < ROUNDS; i++)
        sum += (intptr_t)strand_join(strand_spawn(scope, leaf, (void *)i));
    int64_t taken = bench_now() - start;
    bench_check(sum == (intptr_t)ROUNDS * (ROUNDS - 1) / 2, "sum %" PRIdPTR, sum);
    return (double)taken / ROUNDS;
}

static void *root(void *arg)
{
    const int *threads = arg;
    measure();
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample("spawn_join", "strand", *threads, "ns", measure());
    return NULL;
}

int main(int argc, char **argv)
{
    int threads = (int)bench_argument(argc, argv, 1);
    strand_run(STRAND_OPTIONS(.threads = threads), root, &threads);
    return 0;
}
