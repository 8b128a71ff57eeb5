/*
 * timers: N strands, each of which sleeps four times up to a quarter of a second, at random: the processor time of a
 * sleep, as N timers are pending at a time. A growth plot has this row.
 */
#include "bench.h"

#include <strand.h>

enum { SLEEPS = 4 };

static long woken;

static void *sleeper(void *arg)
{
    uint64_t number = (uintptr_t)arg;
    for (int i = 0; i < SLEEPS; i++) {
        strand_sleep((int64_t)(bench_random(&number) % (uint64_t)(250 * STRAND_MS)));
        woken++;
    }
    return NULL;
}

static void *root(void *arg)
{
    long strands = *(const long *)arg;
    STRAND_SCOPE(scope);
    int64_t cpu = bench_cpu();
    for (uintptr_t i = 0; i < (uintptr_t)strands; i++)
        strand_spawn(scope, sleeper, (void *)i);
    strand_scope_join(scope);
    cpu = bench_cpu() - cpu;
    bench_check(woken == strands * SLEEPS, "%ld sleeps", woken);
    bench_sample("timers", "strand", 1, "ns", (double)cpu / (double)woken);
    return NULL;
}

int main(int argc, char **argv)
{
    long strands = bench_argument(argc, argv, 1000);
    if (bench_strands_that_fit("timers", strands, BENCH_BYTES_PARKED) < strands)
        bench_leave_out("there is no memory for %ld strands", strands);
    strand_run(NULL, root, &strands);
    return 0;
}
