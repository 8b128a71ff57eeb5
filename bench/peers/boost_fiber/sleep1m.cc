/*
 * sleep1m, sleep1m_cpu: a million fibers sleep 0 to 2 s at random, the same times as in sleep1m.c.
 */
#include "fibers.h"

#include <chrono>

enum { FIBERS = 1000000, STACK = 8192, BYTES_PARKED = 9 * 1024 };

static int64_t nap(uint64_t number)
{
    return (int64_t)(bench_random(&number) % UINT64_C(2000000000));
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        bench_leave_out("Boost.Fiber has no shared stacks");
    if (bench_strands_that_fit("sleep1m", FIBERS, BYTES_PARKED) < FIBERS)
        bench_leave_out("sleep1m with fewer fibers would measure something else");
    static fibers::fiber children[FIBERS];
    fibers::fixedsize_stack stacks(STACK);
    long woken = 0;
    int64_t longest = 0;
    int64_t cpu = bench_cpu();
    int64_t start = bench_now();
    for (uint64_t i = 0; i < FIBERS; i++)
        children[i] = fibers::fiber(fibers::launch::post, std::allocator_arg, stacks, [&woken, i] {
            boost::this_fiber::sleep_for(std::chrono::nanoseconds(nap(i)));
            woken++;
        });
    for (fibers::fiber &child : children)
        child.join();
    int64_t taken = bench_now() - start;
    cpu = bench_cpu() - cpu;
    bench_check(woken == FIBERS, "%ld fibers woke up", woken);
    for (uint64_t i = 0; i < FIBERS; i++)
        longest = nap(i) > longest ? nap(i) : longest;
    bench_check(taken >= longest, "all woke up within %.3f s", (double)taken / 1e9);
    bench_sample("sleep1m", "boost_fiber", 1, "s", (double)taken / 1e9);
    bench_sample("sleep1m_cpu", "boost_fiber", 1, "s", (double)cpu / 1e9);
    return 0;
}
