/*
 * For tests of what grows: a hundred times as many entries take far less than the square of a hundred of the time. Time
 * is the processor's of the only thread, and the best of several attempts counts: so neither the machine's speed nor
 * its other load decides.
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

enum { GROWTH_FIRST = 5, GROWTH_ATTEMPTS = 40, GROWTH_TIMES = 100 };

/* The number of entries at first; fewer where each costs more: under a sanitizer or valgrind, and where few repetitions
 * are wanted. */
static inline int growth_count(int usual)
{
    int count = (int)test_scale(TEST_TSAN || TEST_ASAN || test_under_valgrind() ? usual / 20 : usual);
    return count > 100 ? count : 100;
}

/*
 * Compare `count` entries with GROWTH_TIMES as many. In proportion that takes GROWTH_TIMES as long. But the few fit
 * into a cache and use memory that is warm; the many do not, and the system has to provide their pages. So one of the
 * many was up to 23 times as slow as one of the few, on a machine with busy loops. Where the time grows
 * with the square, one of the many is GROWTH_TIMES as slow. The limit is half of that. The few are measured several
 * times before they are compared: one disturbed measurement of them would let any growth through.
 */
static inline void growth_compare(growth_measure *measure, const void *what, int count)
{
    int64_t few = INT64_MAX, many = INT64_MAX;
    for (int i = 0; i < GROWTH_FIRST; i++) {
        int64_t now = measure(what, count);
        few = few < now ? few : now;
    }
    for (int i = 0; i < GROWTH_ATTEMPTS; i++) {
        int64_t now = measure(what, count);
        few = few < now ? few : now;
        now = measure(what, GROWTH_TIMES * count);
        many = many < now ? many : now;
        if (many / GROWTH_TIMES / (GROWTH_TIMES / 2) < few)
            return;
    }
    CHECK_FAIL("%d take %lld us, %d take %lld us", count, (long long)few / 1000, GROWTH_TIMES * count,
               (long long)many / 1000);
}

#endif
