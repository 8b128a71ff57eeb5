/*
 * skynet: a tree of tasks, ten children each, a million leaves; every task returns the sum of its leaves' numbers.
 *
 * Unfair: a task has no stack of its own and can't wait for anything but other tasks. gcc runs a task at once where
 * more than 64 for each thread are waiting.
 */
#include "../../bench.h"

enum { SAMPLES = 3, FAN_OUT = 10, LEAVES = 1000000 };

static uint64_t sky(uint64_t first, uint64_t leaves)
{
    if (leaves == 1)
        return first;
    uint64_t sums[FAN_OUT], sum = 0, each = leaves / FAN_OUT;
    for (unsigned i = 0; i < FAN_OUT; i++) {
#pragma omp task shared(sums) firstprivate(i, first, each) untied
        sums[i] = sky(first + i * each, each);
    }
#pragma omp taskwait
    for (unsigned i = 0; i < FAN_OUT; i++)
        sum += sums[i];
    return sum;
}

static double measure(int threads)
{
    uint64_t sum = 0;
    double taken = 0;
#pragma omp parallel num_threads(threads)
#pragma omp single
    {
        int64_t start = bench_now();
        sum = sky(0, LEAVES);
        taken = (double)(bench_now() - start) / 1e6;
    }
    bench_check(sum == (uint64_t)LEAVES * (LEAVES - 1) / 2, "sum %" PRIu64, sum);
    return taken;
}

int main(int argc, char **argv)
{
    int threads = (int)bench_argument(argc, argv, 1);
    measure(threads);
    for (int i = 0; i < SAMPLES; i++)
        bench_sample("skynet", "openmp", threads, "ms", measure(threads));
    bench_sample("mem_skynet", "openmp", threads, "bytes", (double)bench_peak());
    return 0;
}
