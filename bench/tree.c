/*
 * tree_width: a scope with N children, which end at once. tree_depth: a chain of N strands, each of which spawns the
 * next one in a scope of its own, and joins it. Per strand. Growth plots have these rows.
 */
#include "bench.h"

#include <strand.h>

enum { STRANDS = BENCH_MANY(200000) };

static void *leaf(void *arg)
{
    return arg;
}

static uint64_t wide(uintptr_t width)
{
    STRAND_SCOPE(scope);
    for (uintptr_t i = 0; i < width; i++)
        strand_spawn(scope, leaf, (void *)i);
    uint64_t children = strand_scope_count(scope);
    strand_scope_join(scope);
    return children;
}

static void *chain(void *arg)
{
    uintptr_t left = (uintptr_t)arg;
    if (left == 0)
        return NULL;
    STRAND_SCOPE(scope);
    return (void *)((uintptr_t)strand_join(strand_spawn(scope, chain, (void *)(left - 1))) + 1);
}

static double measure(bool is_wide, uintptr_t size)
{
    long times = STRANDS > (long)size ? STRANDS / (long)size : 1;
    uint64_t strands = 0;
    int64_t start = bench_now();
    for (long i = 0; i < times; i++)
        strands += is_wide ? wide(size) : (uintptr_t)chain((void *)size);
    int64_t taken = bench_now() - start;
    bench_check(strands == (uint64_t)times * size, "%" PRIu64 " strands", strands);
    return (double)taken / (double)strands;
}

struct question {
    bool is_wide;
    uintptr_t size;
};

static void *root(void *arg)
{
    const struct question *question = arg;
    measure(question->is_wide, question->size);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample(question->is_wide ? "tree_width" : "tree_depth", "strand", 1, "ns",
                     measure(question->is_wide, question->size));
    return NULL;
}

int main(int argc, char **argv)
{
    struct question question = {argc < 2 || strcmp(argv[1], "width") == 0, 100};
    question.size = (uintptr_t)bench_argument(argc - 1, argv + 1, 100);
    if (bench_strands_that_fit("tree", (long)question.size, BENCH_BYTES_PARKED) < (long)question.size)
        bench_leave_out("there is no memory for %ld strands", (long)question.size);
    strand_run(NULL, root, &question);
    return 0;
}
