/*
 * mem_shared, mem_shared_10m: resident bytes per parked strand on eight shared fibres: what the process has resident
 * with N sleeping strands more than before them, by N; stacks, saved stacks, control blocks, timers and all.
 * mem_shared_live: how many of those bytes are live stack.
 */
#include "bench.h"

#include <strand.h>
#include <strand/pool.h>

#include <unistd.h>

enum { FIBRES = 8, NEEDED_EACH = 700 };

static long parked;

static void *sleeper(void *arg)
{
    parked++;
    strand_sleep(3600 * STRAND_S);
    return arg;
}

static void *root(void *arg)
{
    long wanted = *(const long *)arg, strands = BENCH_MANY(wanted);
    strand_fibre_info info = {.size = sizeof info};
    STRAND_SCOPE(scope);
    int64_t before = bench_resident();
    strand_fibre fibre = strand_fibre_open(scope, STRAND_FIBRE_ATTR(.count = FIBRES));
    for (long i = 0; i < strands; i++)
        strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre), sleeper, NULL, 0);
    while (parked < strands)
        strand_sleep(STRAND_MS);
    int64_t after = bench_resident();
    bench_check(strand_scope_count(scope) == (size_t)strands, "%zu strands live", strand_scope_count(scope));
    strand_fibre_info_get(fibre, 0, &info);
    bench_sample(wanted > 1000000 ? "mem_shared_10m" : "mem_shared", "strand", 1, "bytes",
                 (double)(after - before) / (double)strands);
    bench_sample("mem_shared_live", "strand", 1, "bytes", (double)info.stack_deepest);
    fflush(stdout);
    _exit(0); /* the end of ten million strands takes longer than all of this, and tells nothing of their memory */
}

int main(int argc, char **argv)
{
    long strands = bench_argument(argc, argv, 1000000);
    if (bench_memory_left() < BENCH_MANY(strands) * NEEDED_EACH)
        bench_leave_out("%ld strands may take %ld MB, and there are not so many left", strands,
                        strands * NEEDED_EACH / 1000000);
    strand_run(NULL, root, &strands);
    return 0;
}
