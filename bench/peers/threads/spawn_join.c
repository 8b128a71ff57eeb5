/*
 * spawn_join: make a thread that returns its argument, join it, again and again.
 *
 * Unfair: the system makes and ends each thread; no runtime of strands enters the system here.
 */
#include "../../bench.h"

#include <pthread.h>

enum { ROUNDS = 20000 };

static void *leaf(void *arg)
{
    return arg;
}

static double measure(void)
{
    intptr_t sum = 0;
    int64_t start = bench_now();
    for (intptr_t i = 0; i < ROUNDS; i++) {
        pthread_t thread;
        void *result;
        bench_check(pthread_create(&thread, NULL, leaf, (void *)i) == 0, "no thread");
        bench_check(pthread_join(thread, &result) == 0, "no join");
        sum += (intptr_t)result;
    }
    int64_t taken = bench_now() - start;
    bench_check(sum == (intptr_t)ROUNDS * (ROUNDS - 1) / 2, "sum %" PRIdPTR, sum);
    return (double)taken / ROUNDS;
}

int main(int argc, char **argv)
{
    int threads = (int)bench_argument(argc, argv, 1);
    measure();
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample("spawn_join", "threads", threads, "ns", measure());
    return 0;
}
