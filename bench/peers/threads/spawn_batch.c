/*
 * spawn_batch: make 10 000 threads, then join them all, the newest first. Per thread. A machine that allows fewer
 * leaves the row out. There is no fib30 and no skynet: their trees would keep some hundred thousand threads alive.
 *
 * Unfair: the threads run on all processors while the first one still makes threads, so that few are alive at a time.
 */
#include "../../bench.h"

#include <pthread.h>

enum { THREADS = 10000, STACK = 64 * 1024 };

static pthread_t children[THREADS];

static void *leaf(void *arg)
{
    return arg;
}

static double measure(const pthread_attr_t *attr)
{
    intptr_t sum = 0;
    int64_t start = bench_now();
    for (intptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&children[i], attr, leaf, (void *)i) != 0)
            bench_leave_out("this machine allows fewer than %d threads", THREADS);
    for (int i = THREADS - 1; i >= 0; i--) {
        void *result;
        bench_check(pthread_join(children[i], &result) == 0, "no join");
        sum += (intptr_t)result;
    }
    int64_t taken = bench_now() - start;
    bench_check(sum == (intptr_t)THREADS * (THREADS - 1) / 2, "sum %" PRIdPTR, sum);
    return (double)taken / THREADS;
}

int main(int argc, char **argv)
{
    int threads = (int)bench_argument(argc, argv, 1);
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK);
    measure(&attr);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample("spawn_batch", "threads", threads, "ns", measure(&attr));
    return 0;
}
