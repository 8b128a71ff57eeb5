/*
 * An open-loop load, the same for every runtime: timers at random times, 100 us apart on average, whose events each
 * compute for as long as the load asks for (50 us for 50 %). How late an event starts is its latency, the wait for
 * the events before it included. Nobody waits for an answer, so a slow runtime does not slow its own load down.
 */
#ifndef BENCH_LATENCY_H
#define BENCH_LATENCY_H

#include "bench.h"

enum { LATENCY_EVENTS = BENCH_MANY(20000), LATENCY_WARM_UP = BENCH_MANY(1000), LATENCY_PERIOD_US = 100 };

struct latency {
    long load;                    /* in percent */
    int64_t cost;                 /* of an event, ns */
    long served;                  /* events so far */
    int64_t due[LATENCY_EVENTS];  /* instants of the monotonic clock */
    int64_t late[LATENCY_EVENTS]; /* ns */
};

/* The first event is due in 50 ms. Each next microsecond has one with probability 1 / LATENCY_PERIOD_US: the discrete
 * form of exponential distances. */
BENCH_API void latency_schedule(struct latency *l, long load)
{
    uint64_t seed = 1;
    int64_t at = bench_now() + 50000000;
    l->load = load;
    l->cost = load * LATENCY_PERIOD_US * 10;
    l->served = 0;
    for (long i = 0; i < LATENCY_EVENTS; i++) {
        do
            at += 1000;
        while (bench_random(&seed) % LATENCY_PERIOD_US != 0);
        l->due[i] = at + (int64_t)(bench_random(&seed) % 1000);
    }
}

/* Event i has its turn: note how late, then compute. The clock, not a count of instructions, ends the computation, so
 * that the load is the same whatever the processor does meanwhile. */
BENCH_API void latency_serve(struct latency *l, long i)
{
    int64_t start = bench_now();
    l->late[i] = start - l->due[i];
    l->served++;
    while (bench_now() - start < l->cost)
        ;
}

BENCH_API int latency_compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

BENCH_API void latency_report(struct latency *l, const char *runtime)
{
    bench_check(l->served == LATENCY_EVENTS, "%ld events served", l->served);
    int64_t *late = l->late + LATENCY_WARM_UP;
    size_t count = LATENCY_EVENTS - LATENCY_WARM_UP;
    qsort(late, count, sizeof *late, latency_compare);
    bench_check(late[0] >= 0, "an event was served %" PRId64 " ns early", -late[0]);
    char suffix[24] = "";
    if (l->load != 50)
        snprintf(suffix, sizeof suffix, "_%ld", l->load);
    char row[40];
    snprintf(row, sizeof row, "latency50%s", suffix);
    bench_sample(row, runtime, 1, "us", (double)late[count / 2] / 1e3);
    snprintf(row, sizeof row, "latency99%s", suffix);
    bench_sample(row, runtime, 1, "us", (double)late[count / 100 * 99] / 1e3);
}

#endif
