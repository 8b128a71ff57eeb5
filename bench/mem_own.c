/*
 * mem_own, mem_own_100k: resident bytes per parked strand on a stack of its own: what the process has resident with N
 * sleeping strands more than before them, by N. Page tables, which the kernel keeps, are not resident memory.
 */
#include "bench.h"

#include <strand.h>

static long parked;

static void *sleeper(void *arg)
{
    parked++;
    strand_sleep(3600 * STRAND_S);
    return arg;
}

static void *root(void *arg)
{
    const long *wanted = arg;
    const char *row = *wanted == 100000 ? "mem_own_100k" : "mem_own";
    long strands = bench_strands_that_fit(row, BENCH_MANY(*wanted), BENCH_BYTES_UNWOUND);
    STRAND_SCOPE(scope);
    int64_t before = bench_resident();
    for (long i = 0; i < strands; i++)
        strand_spawn(scope, sleeper, NULL);
    while (parked < strands)
        strand_sleep(STRAND_MS);
    int64_t after = bench_resident();
    bench_check(strand_scope_count(scope) == (size_t)strands, "%zu strands live", strand_scope_count(scope));
    bench_sample(row, "strand", 1, "bytes", (double)(after - before) / (double)strands);
    strand_scope_cancel(scope, "bench");
    strand_scope_join(scope);
    return NULL;
}

int main(int argc, char **argv)
{
    long strands = bench_argument(argc, argv, 1000000);
    strand_run(NULL, root, &strands);
    return 0;
}
