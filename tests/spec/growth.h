/*
 * For tests of what grows: a multiple of the entries takes about that multiple of the time, not its square. Time is the
 * processor's of the only thread, and the best of several attempts counts: so neither the machine's speed nor what else
 * it does decides.
 */
#ifndef GROWTH_H
#define GROWTH_H

#include "test.h"

#include <time.h>

static inline int64_t growth_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * STRAND_S + t.tv_nsec;
}

/* How long `count` of `what` take, in ns. */
typedef int64_t growth_measure(const void *what, int count);

enum { GROWTH_FIRST = 5, GROWTH_ATTEMPTS = 40 };

/* So many at first; fewer where each costs more: under a sanitizer or valgrind, and where few repetitions are wanted.
 */
static inline int growth_count(int usual)
{
    int count = (int)test_scale(TEST_TSAN || TEST_ASAN || test_under_valgrind() ? usual / 20 : usual);
    return count > 100 ? count : 100;
}

/*
 * `times` as many take less than four times as long as that: caches, fresh memory and logarithms may have a part of it.
 * The few are measured several times before they are compared: one disturbed measurement of them would let any growth
 * through.
 */
static inline void growth_compare(growth_measure *measure, const void *what, int count, int times)
{
    int64_t few = INT64_MAX, many = INT64_MAX;
    for (int i = 0; i < GROWTH_FIRST; i++) {
        int64_t now = measure(what, count);
        few = few < now ? few : now;
    }
    for (int i = 0; i < GROWTH_ATTEMPTS; i++) {
        int64_t now = measure(what, count);
        few = few < now ? few : now;
        now = measure(what, times * count);
        many = many < now ? many : now;
        if (many / times / 4 < few)
            return;
    }
    CHECK_FAIL("%d take %lld us, %d take %lld us", count, (long long)few / 1000, times * count, (long long)many / 1000);
}

#endif
