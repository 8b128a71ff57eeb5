/*
 * What throw1, throw10 and throw100 are compared with: the same in C++, with a destructor per frame. The object thrown
 * is a plain one without a message or a trace, the cheapest that C++ has.
 */
#include "bench.h"

enum { FRAMES_THROWN_THROUGH = 100000 };

struct failure {
    int code;
};

struct guard {
    long *cleaned;
    ~guard()
    {
        ++*cleaned;
    }
};

__attribute__((noinline)) static void descend(long frames, long *cleaned)
{
    guard g = {cleaned};
    if (frames > 1)
        descend(frames - 1, cleaned);
    else if (*cleaned >= 0)
        throw failure{1};
}

static double measure(long frames)
{
    long rounds = FRAMES_THROWN_THROUGH / (frames + 10);
    long cleaned = 0;
    long caught = 0;
    int64_t start = bench_now();
    for (long i = 0; i < rounds; i++) {
        try {
            descend(frames, &cleaned);
        } catch (const failure &e) {
            caught += e.code;
        }
    }
    int64_t taken = bench_now() - start;
    bench_check(caught == rounds && cleaned == rounds * frames, "%ld caught, %ld cleaned up", caught, cleaned);
    return (double)taken / (double)rounds;
}

int main(int argc, char **argv)
{
    long frames = bench_argument(argc, argv, 1);
    char row[32];
    snprintf(row, sizeof row, "throw%ld", frames);
    measure(frames);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample(row, "cxx", 1, "ns", measure(frames));
    return 0;
}
