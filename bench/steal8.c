/*
 * steal8: a tree of strands on pools of 2, 8 and 16 threads, however few processors there are: the 27th Fibonacci
 * number with a strand per call, an eighth of fib30. steal8_wide: a tree of fan-out ten with 100 000 leaves, a tenth of
 * skynet. steal8_ratio, steal8_wide_ratio: by the time on 2 threads, of the same round. Each pool is open all the time,
 * and asleep while another one works.
 */
#include "work.h"

#include <strand.h>
#include <strand/pool.h>

enum { POOLS = 3, ROUNDS = BENCH_LONG(15), FAN_OUT = 10, LEAVES = BENCH_MANY(100000) };

static const int sizes[POOLS] = {2, 8, 16};
static strand_pool pools[POOLS];

static void *fib(void *arg)
{
    intptr_t n = (intptr_t)arg;
    if (n < 2)
        return arg;
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, fib, (void *)(n - 1));
    intptr_t called = (intptr_t)fib((void *)(n - 2));
    return (void *)((intptr_t)strand_join(child) + called);
}

static void *count_leaves(void *arg)
{
    intptr_t leaves = (intptr_t)arg, sum = 0;
    if (leaves == 1)
        return arg;
    strand children[FAN_OUT];
    STRAND_SCOPE(scope);
    for (int i = 0; i < FAN_OUT; i++)
        children[i] = strand_spawn(scope, count_leaves, (void *)(leaves / FAN_OUT));
    for (int i = FAN_OUT; i-- > 0;)
        sum += (intptr_t)strand_join(children[i]);
    return (void *)sum;
}

static const struct tree {
    const char *row, *ratio;
    strand_fn *grow;
    intptr_t arg, result;
} trees[] = {{"steal8", "steal8_ratio", fib, 27, 196418},
             {"steal8_wide", "steal8_wide_ratio", count_leaves, LEAVES, LEAVES}};

static double grow(const struct tree *tree, int pool)
{
    STRAND_SCOPE(scope);
    int64_t since = bench_now();
    strand root = strand_spawn_with(scope, STRAND_ATTR(.pool = pools[pool]), tree->grow, (void *)tree->arg, 0);
    intptr_t result = (intptr_t)strand_join(root);
    double taken = (double)(bench_now() - since) / 1e6;
    bench_check(result == tree->result, "%s: %" PRIdPTR, tree->row, result);
    return taken;
}

static void measure(const struct tree *tree)
{
    double ratios[POOLS][ROUNDS], taken[POOLS];
    for (int i = -1; i < ROUNDS; i++) {
        for (int pool = 0; pool < POOLS; pool++)
            taken[pool] = grow(tree, pool);
        for (int pool = 0; pool < POOLS && i >= 0; pool++) {
            ratios[pool][i] = taken[pool] / taken[0];
            bench_sample(tree->row, "strand", sizes[pool], "ms", taken[pool]);
        }
    }
    for (int pool = 1; pool < POOLS; pool++)
        bench_sample(tree->ratio, "strand", sizes[pool], "x", bench_median(ratios[pool], ROUNDS));
}

static void *root(void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < POOLS; i++)
        pools[i] = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = sizes[i]));
    for (size_t i = 0; i < sizeof trees / sizeof *trees; i++)
        measure(&trees[i]);
    return arg;
}

int main(void)
{
    strand_run(NULL, root, NULL);
    return 0;
}
