/*
 * fib30: the 30th Fibonacci number with a task for fib(n - 1) and a call for fib(n - 2).
 *
 * Unfair: a task has no stack of its own and can't wait for anything but other tasks. gcc runs a task at once where
 * more than 64 for each thread are waiting.
 */
#include "../../bench.h"

enum { SAMPLES = 3 };

static int fib(int n)
{
    if (n < 2)
        return n;
    int child, called;
#pragma omp task shared(child) firstprivate(n) untied
    child = fib(n - 1);
    called = fib(n - 2);
#pragma omp taskwait
    return child + called;
}

static double measure(int threads)
{
    int value = 0;
    double taken = 0;
#pragma omp parallel num_threads(threads)
#pragma omp single
    {
        int64_t start = bench_now();
        value = fib(30);
        taken = (double)(bench_now() - start) / 1e6;
    }
    bench_check(value == 832040, "fib(30) = %d", value);
    return taken;
}

int main(int argc, char **argv)
{
    int threads = (int)bench_argument(argc, argv, 1);
    measure(threads);
    for (int i = 0; i < SAMPLES; i++)
        bench_sample("fib30", "openmp", threads, "ms", measure(threads));
    return 0;
}
