/*
 * sleep1m: a million strands, each on a stack of its own, sleep 0 to 2 s at random; from before the first spawn until
 * all are joined, in a process that has done nothing before. sleep1m_cpu: user and system time meanwhile.
 */
#include "bench.h"

#include <strand.h>

enum { STRANDS = 1000000 };

static long woken;

static int64_t nap(uint64_t number)
{
    return (int64_t)(bench_random(&number) % (uint64_t)(2 * STRAND_S));
}

static void *sleeper(void *arg)
{
    strand_sleep(nap((uintptr_t)arg));
    woken++;
    return NULL;
}

static void *root(void *arg)
{
    int64_t cpu = bench_cpu();
    int64_t start = bench_now();
    STRAND_SCOPE(scope);
    for (uintptr_t i = 0; i < STRANDS; i++)
        strand_spawn(scope, sleeper, (void *)i);
    strand_scope_join(scope);
    int64_t taken = bench_now() - start;
    cpu = bench_cpu() - cpu;
    bench_check(woken == STRANDS, "%ld strands woke up", woken);
    int64_t longest = 0;
    for (uintptr_t i = 0; i < STRANDS; i++)
        longest = nap(i) > longest ? nap(i) : longest;
    bench_check(taken >= longest, "all woke up within %.3f s", (double)taken / 1e9);
    bench_sample("sleep1m", "strand", 1, "s", (double)taken / 1e9);
    bench_sample("sleep1m_cpu", "strand", 1, "s", (double)cpu / 1e9);
    return arg;
}

int main(void)
{
    long fitting = bench_strands_that_fit("sleep1m", STRANDS, BENCH_BYTES_PARKED);
    bench_check(fitting == STRANDS, "sleep1m with fewer strands would measure something else");
    strand_run(NULL, root, NULL);
    return 0;
}
