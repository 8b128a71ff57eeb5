/*
 * mutex, mutex_shared: one thread locks and unlocks a mutex that nobody else wants; mutex2: two threads do it at the
 * same time. Per lock and unlock.
 *
 * Unfair: a mutex keeps the thread that waits; no other task runs on that thread meanwhile.
 */
#include "../../bench.h"

#include <oneapi/tbb/mutex.h>

#include <atomic>
#include <thread>

enum { TIMES = 3000000 };

static double measure(int threads)
{
    tbb::mutex mutex;
    uint64_t count = 0;
    std::atomic<int> ready{0};
    auto lock_and_unlock = [&] {
        for (ready++; ready < threads;)
            ;
        for (int i = 0; i < TIMES; i++) {
            tbb::mutex::scoped_lock lock(mutex);
            count++;
        }
    };
    int64_t start = bench_now();
    std::thread other;
    if (threads > 1)
        other = std::thread(lock_and_unlock);
    lock_and_unlock();
    if (threads > 1)
        other.join();
    int64_t taken = bench_now() - start;
    bench_check(count == (uint64_t)threads * TIMES, "it was locked %" PRIu64 " times", count);
    return (double)taken / ((double)threads * TIMES);
}

int main(int argc, char **argv)
{
    const char *row = argc > 1 ? argv[1] : "mutex";
    int threads = strcmp(row, "mutex2") == 0 ? 2 : 1;
    measure(threads);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample(row, "tbb", threads, "ns", measure(threads));
    return 0;
}
