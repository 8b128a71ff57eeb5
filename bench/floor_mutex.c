/*
 * What mutex and mutex2 are compared with: a mutex of the C library, held by one thread, and fought for by two.
 */
#include "bench.h"

#include <pthread.h>
#include <stdatomic.h>

enum { TIMES = BENCH_MANY(3000000) };

struct work {
    pthread_mutex_t mutex;
    uint64_t count;
    _Atomic int ready;
    int threads;
};

static void *lock_and_unlock(void *arg)
{
    struct work *work = arg;
    for (work->ready++; work->ready < work->threads;)
        ;
    for (int i = 0; i < TIMES; i++) {
        pthread_mutex_lock(&work->mutex);
        work->count++;
        pthread_mutex_unlock(&work->mutex);
    }
    return NULL;
}

static double measure(int threads)
{
    struct work work = {.mutex = PTHREAD_MUTEX_INITIALIZER, .threads = threads};
    pthread_t other;
    int64_t start = bench_now();
    if (threads > 1)
        bench_check(pthread_create(&other, NULL, lock_and_unlock, &work) == 0, "no thread");
    lock_and_unlock(&work);
    if (threads > 1)
        pthread_join(other, NULL);
    int64_t taken = bench_now() - start;
    bench_check(work.count == (uint64_t)threads * TIMES, "it was locked %" PRIu64 " times", work.count);
    return (double)taken / ((double)threads * TIMES);
}

int main(int argc, char **argv)
{
    const char *row = argc > 1 ? argv[1] : "mutex";
    int threads = strcmp(row, "mutex2") == 0 ? 2 : 1;
    measure(threads);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample(row, "pthread", threads, "ns", measure(threads));
    return 0;
}
