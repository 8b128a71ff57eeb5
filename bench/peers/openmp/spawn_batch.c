/*
 * spawn_batch: make 10 000 tasks, then wait for them all. Per task.
 *
 * Unfair: gcc runs a task at once where more than 64 for each thread are waiting, so that few are alive at a time. A
 * task has no stack of its own.
 */
#include "../../bench.h"

enum { TASKS = 10000, BATCHES = 30 };

static intptr_t results[TASKS];

static intptr_t spawn_and_join(void)
{
    intptr_t sum = 0;
    for (intptr_t i = 0; i < TASKS; i++) {
#pragma omp task firstprivate(i)
        results[i] = i;
    }
#pragma omp taskwait
    for (intptr_t i = 0; i < TASKS; i++) {
        sum += results[i];
        results[i] = 0;
    }
    return sum;
}

static double measure(int threads)
{
    intptr_t sum = 0;
    double taken = 0;
#pragma omp parallel num_threads(threads)
#pragma omp single
    {
        int64_t start = bench_now();
        for (int i = 0; i < BATCHES; i++)
            sum += spawn_and_join();
        taken = (double)(bench_now() - start) / BATCHES / TASKS;
    }
    bench_check(sum == (intptr_t)BATCHES * TASKS * (TASKS - 1) / 2, "sum %" PRIdPTR, sum);
    return taken;
}

int main(int argc, char **argv)
{
    int threads = (int)bench_argument(argc, argv, 1);
    measure(threads);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample("spawn_batch", "openmp", threads, "ns", measure(threads));
    return 0;
}
