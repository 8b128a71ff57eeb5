/*
 * spawn_batch: spawn 10 000 strands, then join them all, the newest first. Per strand.
 */
#include "bench.h"

#include <strand/pool.h>

enum { STRANDS = BENCH_MANY(10000), BATCHES = 30 };

struct batch {
    int threads;
    strand children[STRANDS];
};

static void *leaf(void *arg)
{
    return arg;
}

static intptr_t spawn_and_join(struct batch *batch)
{
    intptr_t sum = 0;
    STRAND_SCOPE(scope);
    for (intptr_t i = 0; i < STRANDS; i++)
        batch->children[i] = strand_spawn(scope, leaf, (void *)i);
    for (int i = STRANDS - 1; i >= 0; i--)
        sum += (intptr_t)strand_join(batch->children[i]);
    return sum;
}

static double measure(struct batch *batch)
{
    intptr_t sum = 0;
    int64_t start = bench_now();
    for (int i = 0; i < BATCHES; i++)
        sum += spawn_and_join(batch);
    int64_t taken = bench_now() - start;
    bench_check(sum == (intptr_t)BATCHES * STRANDS * (STRANDS - 1) / 2, "sum %" PRIdPTR, sum);
    return (double)taken / BATCHES / STRANDS;
}

static void *root(void *arg)
{
    struct batch *batch = arg;
    measure(batch);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample("spawn_batch", "strand", batch->threads, "ns", measure(batch));
    return NULL;
}

int main(int argc, char **argv)
{
    static struct batch batch;
    batch.threads = (int)bench_argument(argc, argv, 1);
    strand_run(STRAND_OPTIONS(.threads = batch.threads), root, &batch);
    return 0;
}
