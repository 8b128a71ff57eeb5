/*
 * offload: what its two programs share: on which processors the two threads are, and how round trips are measured.
 */
#ifndef BENCH_OFFLOAD_H
#define BENCH_OFFLOAD_H

#include "bench.h"

#include <sched.h>

/* The other thread is asleep when a round trip begins: so long the first one computes before it. */
enum { OFFLOAD_TRIPS = BENCH_MANY(500), OFFLOAD_PAUSE_NS = 100000 };

/* Processors for the two threads, of which each has one to itself, if there are two: else where they are is chance, and
 * decides. */
BENCH_API int offload_near = -1, offload_far = -1;

BENCH_API void offload_find_processors(void)
{
    cpu_set_t allowed;
    bench_check(sched_getaffinity(0, sizeof allowed, &allowed) == 0, "the processors are not known");
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &allowed)) {
            offload_near = offload_near < 0 ? i : offload_near;
            offload_far = i;
        }
}

/* The calling thread, to one of them. */
BENCH_API void offload_bind(int processor)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    bench_check(sched_setaffinity(0, sizeof one, &one) == 0, "a thread can't be bound");
}

BENCH_API int offload_compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Median of the round trips. */
BENCH_API double offload_measure(void (*trip)(void *arg), void *arg)
{
    static int64_t taken[OFFLOAD_TRIPS];
    for (int i = 0; i < OFFLOAD_TRIPS; i++) {
        int64_t begun = bench_now() + OFFLOAD_PAUSE_NS;
        while (bench_now() < begun)
            ;
        begun = bench_now();
        trip(arg);
        taken[i] = bench_now() - begun;
    }
    qsort(taken, OFFLOAD_TRIPS, sizeof *taken, offload_compare);
    return (double)taken[OFFLOAD_TRIPS / 2] / 1e3;
}

#endif
