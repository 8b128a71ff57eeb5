/*
 * spawn_join: launch a fiber that stores its argument, join it, again and again.
 */
#include "fibers.h"

enum { ROUNDS = 300000 };

static double measure()
{
    intptr_t sum = 0;
    int64_t start = bench_now();
    for (intptr_t i = 0; i < ROUNDS; i++) {
        intptr_t result = 0;
        fibers_spawn(fibers::launch::dispatch, [&result, i] { result = i; }).join();
        sum += result;
    }
    int64_t taken = bench_now() - start;
    bench_check(sum == (intptr_t)ROUNDS * (ROUNDS - 1) / 2, "sum %" PRIdPTR, sum);
    return (double)taken / ROUNDS;
}

int main(int argc, char **argv)
{
    int threads = (int)bench_argument(argc, argv, 1);
    fibers_run(threads, FIBERS_NEWEST_FIRST, [threads] {
        measure();
        for (int i = 0; i < BENCH_SAMPLES; i++)
            bench_sample("spawn_join", "boost_fiber", threads, "ns", measure());
    });
    return 0;
}
