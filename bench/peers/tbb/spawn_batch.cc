/*
 * spawn_batch: run 10 000 tasks of one group, then wait for them all. Per task.
 *
 * Unfair: a task has no stack of its own. One wait is for all of them, not one for each.
 */
#include "threads.h"

#include <oneapi/tbb/task_group.h>

enum { TASKS = 10000, BATCHES = 30 };

static intptr_t results[TASKS];

static intptr_t spawn_and_join()
{
    intptr_t sum = 0;
    tbb::task_group group;
    for (intptr_t i = 0; i < TASKS; i++)
        group.run([i] { results[i] = i; });
    group.wait();
    for (intptr_t &result : results) {
        sum += result;
        result = 0;
    }
    return sum;
}

static double measure()
{
    intptr_t sum = 0;
    int64_t start = bench_now();
    for (int i = 0; i < BATCHES; i++)
        sum += spawn_and_join();
    int64_t taken = bench_now() - start;
    bench_check(sum == (intptr_t)BATCHES * TASKS * (TASKS - 1) / 2, "sum %" PRIdPTR, sum);
    return (double)taken / BATCHES / TASKS;
}

int main(int argc, char **argv)
{
    int threads = (int)bench_argument(argc, argv, 1);
    on_threads(threads, [threads] {
        measure();
        for (int i = 0; i < BENCH_SAMPLES; i++)
            bench_sample("spawn_batch", "tbb", threads, "ns", measure());
    });
    return 0;
}
