/*
 * chan_buf: one strand sends, one receives, over a channel with room for 128; per item.
 */
#include "bench.h"

#include <strand.h>
#include <strand/chan.h>
#include <strand/pool.h>

enum { ITEMS = BENCH_MANY(3000000), ROOM = 128 };

typedef STRAND_CHAN(uint64_t) numbers;

struct line {
    numbers chan;
    uint64_t sum;
};

static void *add_up(void *arg)
{
    struct line *line = arg;
    uint64_t n;
    while (STRAND_RECEIVE(line->chan, &n) == 0)
        line->sum += n;
    return NULL;
}

static double measure(void)
{
    STRAND_SCOPE(scope);
    struct line line = {.chan = STRAND_CHAN_OPEN(numbers, scope, ROOM)};
    strand_spawn(scope, add_up, &line);
    int64_t start = bench_now();
    for (uint64_t i = 0; i < ITEMS; i++)
        STRAND_IGNORE(STRAND_SEND(line.chan, &i));
    STRAND_CHAN_CLOSE(line.chan);
    strand_scope_join(scope);
    int64_t taken = bench_now() - start;
    bench_check(line.sum == (uint64_t)ITEMS * (ITEMS - 1) / 2, "the sum of the items is %" PRIu64, line.sum);
    return (double)taken / ITEMS;
}

static void *root(void *arg)
{
    const int *threads = arg;
    measure();
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample("chan_buf", "strand", *threads, "ns", measure());
    return NULL;
}

int main(int argc, char **argv)
{
    int threads = (int)bench_argument(argc, argv, 1);
    strand_run(STRAND_OPTIONS(.threads = threads), root, &threads);
    return 0;
}
