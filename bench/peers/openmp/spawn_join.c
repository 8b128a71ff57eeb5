/*
 * spawn_join: make a task that stores its argument, wait for it, again and again.
 *
 * Unfair: a task has no stack of its own and can't wait for anything but other tasks.
 */
#include "../../bench.h"

enum { ROUNDS = 300000 };

static double measure(int threads)
{
    intptr_t sum = 0;
    double taken = 0;
#pragma omp parallel num_threads(threads)
#pragma omp single
    {
        int64_t start = bench_now();
        for (intptr_t i = 0; i < ROUNDS; i++) {
            intptr_t result;
#pragma omp task shared(result) firstprivate(i)
            result = i;
#pragma omp taskwait
            sum += result;
        }
        taken = (double)(bench_now() - start) / ROUNDS;
    }
    bench_check(sum == (intptr_t)ROUNDS * (ROUNDS - 1) / 2, "sum %" PRIdPTR, sum);
    return taken;
}

int main(int argc, char **argv)
{
    int threads = (int)bench_argument(argc, argv, 1);
    measure(threads);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample("spawn_join", "openmp", threads, "ns", measure(threads));
    return 0;
}
