/*
 * fib30: the 30th Fibonacci number with a fiber for fib(n - 1) and a call for fib(n - 2).
 */
#include "fibers.h"

static int fib(int n)
{
    if (n < 2)
        return n;
    int child = 0;
    fibers::fiber fiber = fibers_spawn(fibers::launch::dispatch, [&child, n] { child = fib(n - 1); });
    int called = fib(n - 2);
    fiber.join();
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
    fibers_run(threads, FIBERS_NEWEST_FIRST, [threads] {
        measure();
        bench_sample("fib30", "boost_fiber", threads, "ms", measure());
    });
    return 0;
}
