/*
 * skynet: a tree of tasks, ten children each, a million leaves; every task returns the sum of its leaves' numbers.
 *
 * Unfair: a task has no stack of its own and can't wait for anything but other tasks.
 */
#include "threads.h"

#include <oneapi/tbb/task_group.h>

enum { SAMPLES = 3, FAN_OUT = 10, LEAVES = 1000000 };

static uint64_t sky(uint64_t first, uint64_t leaves)
{
    if (leaves == 1)
        return first;
    uint64_t sums[FAN_OUT], sum = 0, each = leaves / FAN_OUT;
    tbb::task_group group;
    for (unsigned i = 0; i < FAN_OUT; i++)
        group.run([result = &sums[i], first = first + i * each, each] { *result = sky(first, each); });
    group.wait();
    for (uint64_t part : sums)
        sum += part;
    return sum;
}

static double measure()
{
    int64_t start = bench_now();
    uint64_t sum = sky(0, LEAVES);
    int64_t taken = bench_now() - start;
    bench_check(sum == (uint64_t)LEAVES * (LEAVES - 1) / 2, "sum %" PRIu64, sum);
    return (double)taken / 1e6;
}

int main(int argc, char **argv)
{
    int threads = (int)bench_argument(argc, argv, 1);
    on_threads(threads, [threads] {
        measure();
        for (int i = 0; i < SAMPLES; i++)
            bench_sample("skynet", "tbb", threads, "ms", measure());
    });
    bench_sample("mem_skynet", "tbb", threads, "bytes", (double)bench_peak());
    return 0;
}
