/*
 * mutex: one fiber locks and unlocks a mutex that nobody else wants, on one thread; mutex_shared: on two threads;
 * mutex2: two fibers on two threads do it at the same time. Per lock and unlock.
 */
#include "fibers.h"

#include <atomic>

enum { TIMES = 3000000 };

static double measure(int contenders)
{
    fibers::mutex mutex;
    uint64_t count = 0;
    std::atomic<int> ready{0};
    auto lock_and_unlock = [&] {
        for (ready++; ready < contenders;)
            boost::this_fiber::yield();
        for (int i = 0; i < TIMES; i++) {
            std::lock_guard<fibers::mutex> lock(mutex);
            count++;
        }
    };
    int64_t start = bench_now();
    fibers::fiber other;
    if (contenders > 1)
        other = fibers_spawn(fibers::launch::post, lock_and_unlock);
    lock_and_unlock();
    if (contenders > 1)
        other.join();
    int64_t taken = bench_now() - start;
    bench_check(count == (uint64_t)contenders * TIMES, "it was locked %" PRIu64 " times", count);
    return (double)taken / ((double)contenders * TIMES);
}

int main(int argc, char **argv)
{
    const char *row = argc > 1 ? argv[1] : "mutex";
    int threads = strcmp(row, "mutex") == 0 ? 1 : 2;
    int contenders = strcmp(row, "mutex2") == 0 ? 2 : 1;
    fibers_run(threads, FIBERS_ROUND_ROBIN, [=] {
        measure(contenders);
        for (int i = 0; i < BENCH_SAMPLES; i++)
            bench_sample(row, "boost_fiber", threads, "ns", measure(contenders));
    });
    return 0;
}
