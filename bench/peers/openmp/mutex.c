/*
 * mutex, mutex_shared: one thread locks and unlocks a lock that nobody else wants; mutex2: two threads do it at the
 * same time. Per lock and unlock.
 *
 * Unfair: a lock keeps the thread that waits; no other task runs on that thread meanwhile.
 */
#include "../../bench.h"

#include <omp.h>

enum { TIMES = 3000000 };

static double measure(int threads)
{
    omp_lock_t lock;
    uint64_t count = 0;
    omp_init_lock(&lock);
    int64_t start = bench_now();
#pragma omp parallel num_threads(threads) shared(lock, count)
    for (int i = 0; i < TIMES; i++) {
        omp_set_lock(&lock);
        count++;
        omp_unset_lock(&lock);
    }
    int64_t taken = bench_now() - start;
    omp_destroy_lock(&lock);
    bench_check(count == (uint64_t)threads * TIMES, "it was locked %" PRIu64 " times", count);
    return (double)taken / ((double)threads * TIMES);
}

int main(int argc, char **argv)
{
    const char *row = argc > 1 ? argv[1] : "mutex";
    int threads = strcmp(row, "mutex2") == 0 ? 2 : 1;
    measure(threads);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample(row, "openmp", threads, "ns", measure(threads));
    return 0;
}
