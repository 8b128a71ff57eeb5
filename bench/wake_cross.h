/*
 * What the programs of wake_cross share: when the one who wakes does it, and what is made of the times.
 */
#ifndef BENCH_WAKE_CROSS_H
#define BENCH_WAKE_CROSS_H

#include "work.h"

#include <stdatomic.h>

enum { WAKES = BENCH_MANY(200), REST_LEAST_US = 500, REST_MOST_US = 1500 };

struct wakes {
    double ns[WAKES];
    _Atomic int done;
    uint64_t chance;
};

/* The one who is woken, with the time at which the other one began. */
BENCH_API void wakes_record(struct wakes *wakes, int64_t since)
{
    int done = atomic_load_explicit(&wakes->done, memory_order_relaxed);
    wakes->ns[done] = (double)(bench_now() - since);
    atomic_store_explicit(&wakes->done, done + 1, memory_order_release);
}

/* The other one, before it wakes: until the one it woke last has run, and sleeps again for long enough, by chance. It
 * computes meanwhile, so its own processor stays awake. */
BENCH_API void wakes_rest(struct wakes *wakes, int woken)
{
    while (atomic_load_explicit(&wakes->done, memory_order_acquire) < woken)
        ;
    int64_t rest = REST_LEAST_US + (int64_t)(bench_random(&wakes->chance) % (REST_MOST_US - REST_LEAST_US));
    int64_t until = bench_now() + rest * 1000;
    while (bench_now() < until)
        bench_work(100);
}

BENCH_API double wakes_median(struct wakes *wakes)
{
    bench_check(wakes->done == WAKES, "%d were woken", wakes->done);
    return bench_median(wakes->ns, WAKES) / 1000;
}

#endif
