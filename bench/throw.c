/*
 * throw1, throw10, throw100: from the throw to the catch block through N frames with a clean-up each, with the trace
 * that every exception takes.
 */
#include "bench.h"

#include <strand.h>

enum { FRAMES_THROWN_THROUGH = BENCH_MANY(100000) };

static void count(long **cleaned)
{
    ++**cleaned;
}

/* The second condition always holds; it keeps the compiler from seeing a recursion that never returns. */
__attribute__((noinline)) static void descend(long frames, long *cleaned)
{
    long *guard __attribute__((cleanup(count), unused)) = cleaned;
    if (frames > 1)
        descend(frames - 1, cleaned);
    else if (*cleaned >= 0)
        strand_throw(&STRAND_ERROR, "bench");
}

static double measure(long frames)
{
    long rounds = FRAMES_THROWN_THROUGH / (frames + 10);
    long cleaned = 0;
    volatile long caught = 0;
    int64_t start = bench_now();
    for (long i = 0; i < rounds; i++) {
        STRAND_TRY {
            descend(frames, &cleaned);
        }
        STRAND_CATCH(&STRAND_ERROR, e) {
            caught++;
        }
        STRAND_END
    }
    int64_t taken = bench_now() - start;
    bench_check(caught == rounds && cleaned == rounds * frames, "%ld caught, %ld cleaned up", caught, cleaned);
    return (double)taken / (double)rounds;
}

static void *root(void *arg)
{
    const long *frames = arg;
    char row[32];
    snprintf(row, sizeof row, "throw%ld", *frames);
    measure(*frames);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample(row, "strand", 1, "ns", measure(*frames));
    return NULL;
}

int main(int argc, char **argv)
{
    long frames = bench_argument(argc, argv, 1);
    strand_run(NULL, root, &frames);
    return 0;
}
