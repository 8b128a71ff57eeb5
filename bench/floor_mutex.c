/*
 * The floor of mutex, mutex_shared and mutex2: a mutex of the C library. The only thread of a process locks it, or one
 * thread beside a sleeping one, or two threads fight for it. In a process of one thread the C library takes no atomic
 * operations.
 */
#include "bench.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

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

static void *sleep_for_ever(void *arg)
{
    for (;;)
        pause();
    return arg;
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
    int contenders = strcmp(row, "mutex2") == 0 ? 2 : 1;
    int threads = strcmp(row, "mutex") == 0 ? 1 : 2;
    pthread_t other;
    if (threads > contenders)
        bench_check(pthread_create(&other, NULL, sleep_for_ever, NULL) == 0, "no thread");
    measure(contenders);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample(row, "pthread", threads, "ns", measure(contenders));
    return 0;
}
