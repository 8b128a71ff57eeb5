/*
 * spawn_batch: launch 10 000 fibers, then join them all, the newest first. Per fiber. They are launched by post, which
 * queues the child, so that all are alive at a time.
 */
#include "fibers.h"

enum { FIBERS = 10000, BATCHES = 5 };

static fibers::fiber children[FIBERS];
static intptr_t results[FIBERS];

static intptr_t spawn_and_join()
{
    intptr_t sum = 0;
    for (intptr_t i = 0; i < FIBERS; i++)
        children[i] = fibers_spawn(fibers::launch::post, [i] { results[i] = i; });
    for (int i = FIBERS - 1; i >= 0; i--) {
        children[i].join();
        sum += results[i];
        results[i] = 0;
    }
    return sum;
}

static double measure()
{
    intptr_t sum = 0;
    int64_t start = bench_now();
    for (int i = 0; i < BATCHES; i++)
        sum += spawn_and_join();
    int64_t taken = bench_now() - start;
    bench_check(sum == (intptr_t)BATCHES * FIBERS * (FIBERS - 1) / 2, "sum %" PRIdPTR, sum);
    return (double)taken / BATCHES / FIBERS;
}

int main(int argc, char **argv)
{
    int threads = (int)bench_argument(argc, argv, 1);
    fibers_run(threads, FIBERS_NEWEST_FIRST, [threads] {
        measure();
        for (int i = 0; i < BENCH_SAMPLES; i++)
            bench_sample("spawn_batch", "boost_fiber", threads, "ns", measure());
    });
    return 0;
}
