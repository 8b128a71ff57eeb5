/*
 * sched_fork, sched_chat, sched_spread: the same work on each scheduler (rule S-69), so that a number says which one is
 * the default. fork: a tree of strands, two children each, per strand. chat: pairs that talk over unbuffered channels,
 * per value. spread: one strand spawns many that compute for 5 us each, per strand; with two threads half of that would
 * be perfect.
 */
/* S-69 */
#include "bench.h"

#include <strand/chan.h>
#include <strand/pool.h>

enum { DEPTH = 17, PAIRS = 100, VALUES = BENCH_MANY(1000), PIECES = BENCH_MANY(20000), PIECE_NS = 5000 };

static void *grow(void *arg)
{
    uintptr_t depth = (uintptr_t)arg;
    if (!depth)
        return (void *)1;
    STRAND_SCOPE(scope);
    strand left = strand_spawn(scope, grow, (void *)(depth - 1)),
           right = strand_spawn(scope, grow, (void *)(depth - 1));
    return (void *)((uintptr_t)strand_join(left) + (uintptr_t)strand_join(right));
}

static double per_strand_of_a_tree(void)
{
    int64_t start = bench_now();
    uintptr_t leaves = (uintptr_t)grow((void *)DEPTH);
    bench_check(leaves == 1u << DEPTH, "%" PRIuPTR " leaves", leaves);
    return (double)(bench_now() - start) / (2 << DEPTH);
}

static void *talk(void *arg)
{
    for (long i = 0; i < VALUES; i++)
        STRAND_IGNORE(strand_chan_send(*(strand_chan *)arg, &i));
    return arg;
}

static void *listen(void *arg)
{
    long sum = 0, value;
    for (long i = 0; i < VALUES; i++) {
        STRAND_IGNORE(strand_chan_receive(*(strand_chan *)arg, &value));
        sum += value;
    }
    bench_check(sum == (long)VALUES * (VALUES - 1) / 2, "sum %ld", sum);
    return arg;
}

static double per_value(void)
{
    static strand_chan chans[PAIRS];
    STRAND_SCOPE(scope);
    for (int i = 0; i < PAIRS; i++)
        chans[i] = strand_chan_open(scope, sizeof(long), 0, NULL);
    int64_t start = bench_now();
    for (int i = 0; i < PAIRS; i++) {
        strand_spawn(scope, talk, &chans[i]);
        strand_spawn(scope, listen, &chans[i]);
    }
    strand_scope_join(scope);
    return (double)(bench_now() - start) / PAIRS / VALUES;
}

static void *compute(void *arg)
{
    int64_t until = bench_now() + PIECE_NS;
    while (bench_now() < until)
        ;
    return arg;
}

static double per_piece(void)
{
    STRAND_SCOPE(scope);
    int64_t start = bench_now();
    for (int i = 0; i < PIECES; i++)
        strand_spawn(scope, compute, NULL);
    strand_scope_join(scope);
    return (double)(bench_now() - start) / PIECES;
}

struct run {
    const char *scheduler;
    int threads;
};

static void *root(void *arg)
{
    static const struct {
        const char *row;
        double (*measure)(void);
    } works[] = {{"sched_fork", per_strand_of_a_tree}, {"sched_chat", per_value}, {"sched_spread", per_piece}};
    const struct run *run = arg;
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        works[i].measure();
        for (int n = 0; n < BENCH_SAMPLES; n++)
            bench_sample(works[i].row, run->scheduler, run->threads, "ns", works[i].measure());
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int threads = (int)bench_argument(argc, argv, 1);
    static const char *const schedulers[] = {"stealing", "global", "dedicated"};
    for (int i = 0; i < 3; i++) {
        struct run run = {schedulers[i], threads};
        if (i < 2 || threads == 1)
            strand_run(STRAND_OPTIONS(.threads = threads, .scheduler = run.scheduler), root, &run);
    }
    return 0;
}
