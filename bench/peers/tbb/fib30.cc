/*
 * fib30: the 30th Fibonacci number with a task for fib(n - 1) and a call for fib(n - 2).
 *
 * Unfair: a task has no stack of its own and can't wait for anything but other tasks.
 */
#include "threads.h"

#include <oneapi/tbb/task_group.h>

enum { SAMPLES = 3 };

static int fib(int n)
{
    if (n < 2)
        return n;
    int child;
    tbb::task_group group;
    group.run([&child, n] { child = fib(n - 1); });
    int called = fib(n - 2);
    group.wait();
    return child + called;
}

static double measure()
{
    int64_t start = bench_now();
    int value = fib(30);
    int64_t taken = bench_now() - start;
    bench_check(value == 832040, "fib(30) = %d", value);
    return (double)taken / 1e6;
}

int main(int argc, char **argv)
{
    int threads = (int)bench_argument(argc, argv, 1);
    on_threads(threads, [threads] {
        measure();
        for (int i = 0; i < SAMPLES; i++)
            bench_sample("fib30", "tbb", threads, "ms", measure());
    });
    return 0;
}
