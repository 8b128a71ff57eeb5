/*
 * Work of a known length: so many steps, each of which needs the one before. How many steps a time takes is found out
 * once, by the fastest of several tries. It is no clock that is polled: a thread that is stopped in the middle has the
 * rest of its work still to do.
 */
#ifndef BENCH_WORK_H
#define BENCH_WORK_H

#include "bench.h"

BENCH_API uint64_t bench_work(uint64_t steps)
{
    uint64_t state = steps | 1;
    for (uint64_t i = 0; i < steps; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        __asm__ volatile("" : "+r"(state)); /* no shortcut */
    }
    return state;
}

/* How many steps take so long. */
BENCH_API uint64_t bench_steps(int64_t ns)
{
    enum { TRIES = 50 };
    const uint64_t steps = 100000;
    int64_t best = INT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        int64_t start = bench_now();
        bench_work(steps);
        int64_t taken = bench_now() - start;
        best = taken < best ? taken : best;
    }
    return steps * (uint64_t)ns / (uint64_t)best;
}

BENCH_API int bench_compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Sorts them. */
BENCH_API double bench_median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, bench_compare);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

#endif
