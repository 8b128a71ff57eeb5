/*
 * fib30: the 30th Fibonacci number with a strand per call: fib(n - 1) is spawned, fib(n - 2) is called. 1 346 268
 * strands, each in a scope of its parent's.
 */
#include "bench.h"

#include <strand/pool.h>

enum { SAMPLES = BENCH_LONG(3) };

static void *fib(void *arg)
{
    intptr_t n = (intptr_t)arg;
    if (n < 2)
        return arg;
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, fib, (void *)(n - 1));
    intptr_t called = (intptr_t)fib((void *)(n - 2));
    return (void *)((intptr_t)strand_join(child) + called);
}

static double measure(void)
{
    int64_t start = bench_now();
    intptr_t value = (intptr_t)fib((void *)30);
    int64_t taken = bench_now() - start;
    bench_check(value == 832040, "fib(30) = %" PRIdPTR, value);
    return (double)taken / 1e6;
}

static void *root(void *arg)
{
    const int *threads = arg;
    measure();
    for (int i = 0; i < SAMPLES; i++)
        bench_sample("fib30", "strand", *threads, "ms", measure());
    return NULL;
}

int main(int argc, char **argv)
{
    int threads = (int)bench_argument(argc, argv, 1);
    strand_run(STRAND_OPTIONS(.threads = threads), root, &threads);
    return 0;
}
