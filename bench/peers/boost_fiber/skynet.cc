/*
 * skynet: a tree of fibers, ten children each, a million leaves; every fiber returns the sum of its leaves' numbers.
 */
#include "fibers.h"

enum { FAN_OUT = 10, LEAVES = 1000000 };

static uint64_t sky(uint64_t first, uint64_t leaves)
{
    if (leaves == 1)
        return first;
    uint64_t sums[FAN_OUT], sum = 0, each = leaves / FAN_OUT;
    fibers::fiber children[FAN_OUT];
    for (unsigned i = 0; i < FAN_OUT; i++)
        children[i] = fibers_spawn(fibers::launch::dispatch,
                                   [result = &sums[i], first = first + i * each, each] { *result = sky(first, each); });
    for (unsigned i = 0; i < FAN_OUT; i++) {
        children[i].join();
        sum += sums[i];
    }
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
    fibers_run(threads, FIBERS_NEWEST_FIRST, [threads] {
        measure();
        bench_sample("skynet", "boost_fiber", threads, "ms", measure());
    });
    bench_sample("mem_skynet", "boost_fiber", threads, "bytes", (double)bench_peak());
    return 0;
}
