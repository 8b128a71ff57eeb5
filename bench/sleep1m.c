/*
 * sleep1m: a million strands, each on a stack of its own, sleep 0 to 2 s at random; from before the first spawn until
 * all are joined, in a process that has done nothing before. sleep1m_cpu: user and system time meanwhile.
 * sleep1m_shared, sleep1m_shared_cpu: the same on eight shared fibres.
 */
#include "bench.h"

#include <strand.h>
#include <strand/pool.h>

enum { STRANDS = BENCH_MANY(1000000), FIBRES = 8, BYTES_SHARED = 700 };

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
    const bool *shared = arg;
    int64_t cpu = bench_cpu();
    int64_t start = bench_now();
    STRAND_SCOPE(scope);
    strand_attr attr = {.size = sizeof attr};
    if (*shared)
        attr.fibre = strand_fibre_open(scope, STRAND_FIBRE_ATTR(.count = FIBRES));
    for (uintptr_t i = 0; i < STRANDS; i++)
        strand_spawn_with(scope, &attr, sleeper, (void *)i, 0);
    strand_scope_join(scope);
    int64_t taken = bench_now() - start;
    cpu = bench_cpu() - cpu;
    bench_check(woken == STRANDS, "%ld strands woke up", woken);
    int64_t longest = 0;
    for (uintptr_t i = 0; i < STRANDS; i++)
        longest = nap(i) > longest ? nap(i) : longest;
    bench_check(taken >= longest, "all woke up within %.3f s", (double)taken / 1e9);
    bench_sample(*shared ? "sleep1m_shared" : "sleep1m", "strand", 1, "s", (double)taken / 1e9);
    bench_sample(*shared ? "sleep1m_shared_cpu" : "sleep1m_cpu", "strand", 1, "s", (double)cpu / 1e9);
    return NULL;
}

int main(int argc, char **argv)
{
    bool shared = argc > 1 && strcmp(argv[1], "shared") == 0;
    long fitting = bench_strands_that_fit("sleep1m", STRANDS, shared ? BYTES_SHARED : BENCH_BYTES_PARKED);
    bench_check(fitting == STRANDS, "sleep1m with fewer strands would measure something else");
    strand_run(NULL, root, &shared);
    return 0;
}
