/*
 * For tests of what grows: a thousand times as many entries take far less than a million times as long. Time is the
 * processor's of the only thread, and the best of several attempts counts: so neither the machine's speed nor its other
 * load decides.
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

enum { GROWTH_FEW = 100, GROWTH_FIRST = 20, GROWTH_ATTEMPTS = 40 };

/* The number of entries that GROWTH_FEW are compared with; fewer where each costs more: under a sanitizer or valgrind,
 * and where few repetitions are wanted. */
static inline int growth_count(int usual)
{
    int count = (int)test_scale(TEST_TSAN || TEST_ASAN || test_under_valgrind() ? usual / 20 : usual);
    return count > 50 * GROWTH_FEW ? count : 50 * GROWTH_FEW;
}

/*
 * Compare GROWTH_FEW entries with `count`, which are `times` as many. In proportion an entry takes the same time in
 * both. But the few fit into a cache and use memory that is warm; the many do not, and the system has to provide their
 * pages: one of 100,000 was up to 12 times as slow, on a busy machine. Where the time grows with the square, one of the
 * many is `times` as slow. The limit is between the two, at twice the root of `times`. The few are measured several
 * times before they are compared: one disturbed measurement of them would let any growth through.
 */
static inline void growth_compare(growth_measure *measure, const void *what, int count)
{
    int64_t few = INT64_MAX, many = INT64_MAX;
    double times = (double)count / GROWTH_FEW;
    for (int i = 0; i < GROWTH_FIRST; i++) {
        int64_t now = measure(what, GROWTH_FEW);
        few = few < now ? few : now;
    }
    for (int i = 0; i < GROWTH_ATTEMPTS; i++) {
        int64_t now = measure(what, GROWTH_FEW);
        few = few < now ? few : now;
        now = measure(what, count);
        many = many < now ? many : now;
        double slower = (double)many / (double)few / times;
        if (slower * slower < 4 * times)
            return;
    }
    CHECK_FAIL("%d take %lld us, %d take %lld us", GROWTH_FEW, (long long)few / 1000, count, (long long)many / 1000);
}

#endif
