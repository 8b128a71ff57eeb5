/*
 * cancel_tree: a million strands in a tree of fan-out ten, all blocked, each on a stack of its own. From the cancel of
 * the tree's root to its end, when every strand has been interrupted, has unwound and has ended. Per strand.
 */
#include "bench.h"

#include <stdatomic.h>
#include <strand.h>

enum { WANTED = BENCH_MANY(1000000), FAN_OUT = 10 };

static long size;
static _Atomic long parked, unwound;

static void count_unwound(const int *unused)
{
    (void)unused;
    unwound++;
}

/* Strand i of the tree: its children are 10 i + 1 to 10 i + 10. */
static void *node(void *arg)
{
    const int alive __attribute__((cleanup(count_unwound), unused)) = 1;
    long first = (long)(intptr_t)arg * FAN_OUT + 1;
    STRAND_SCOPE(scope);
    for (long i = first; i < first + FAN_OUT && i < size; i++)
        strand_spawn(scope, node, (void *)(intptr_t)i);
    parked++;
    strand_sleep(3600 * STRAND_S);
    return NULL;
}

static void *join_top(void *arg)
{
    return strand_join(*(strand *)arg);
}

static void *root(void *arg)
{
    STRAND_SCOPE(scope);
    strand top = strand_spawn(scope, node, (void *)0);
    while (parked < size)
        strand_sleep(STRAND_MS);
    int64_t start = bench_now();
    strand_cancel(top, "bench");
    strand_exception *e = strand_try(join_top, &top, NULL);
    int64_t taken = bench_now() - start;
    bench_check(e != NULL && strand_exception_is(e, &STRAND_CHILD_CANCELLED), "the tree was not cancelled");
    strand_exception_release(e);
    bench_check(unwound == size, "%ld of %ld strands have unwound", unwound, size);
    bench_sample("cancel_tree", "strand", 1, "us", (double)taken / 1e3 / (double)size);
    return arg;
}

int main(int argc, char **argv)
{
    size = bench_strands_that_fit("cancel_tree", bench_argument(argc, argv, WANTED), BENCH_BYTES_UNWOUND);
    strand_run(NULL, root, NULL);
    return 0;
}
