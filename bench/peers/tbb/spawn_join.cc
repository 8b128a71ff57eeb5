/*
 * spawn_join: run a task that stores its argument, wait for it, again and again, with one group.
 *
 * Unfair: a task has no stack of its own and can't wait for anything but other tasks.
 */
#include "threads.h"

#include <oneapi/tbb/task_group.h>

enum { ROUNDS = 300000 };

static double measure()
{
    intptr_t sum = 0;
    tbb::task_group group;
    int64_t start = bench_now();
    for (intptr_t i = 0; i < ROUNDS; i++) {
        intptr_t result;
        group.run([&result, i] { result = i; });
        group.wait();
        sum += result;
    }
    int64_t taken = bench_now() - start;
    bench_check(sum == (intptr_t)ROUNDS * (ROUNDS - 1) / 2, "sum %" PRIdPTR, sum);
    return (double)taken / ROUNDS;
}

int main(int argc, char **argv)
{
    int threads = (int)bench_argument(argc, argv, 1);
    on_threads(threads, [threads] {
        measure();
        for (int i = 0; i < BENCH_SAMPLES; i++)
            bench_sample("spawn_join", "tbb", threads, "ns", measure());
    });
    return 0;
}
