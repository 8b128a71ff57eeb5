/*
 * select4: one strand receives from four unbuffered channels by one select, kept from item to item; a producer sends to
 * each. Per item. select4_buf: the channels have room for 128.
 */
#include "bench.h"

#include <strand.h>
#include <strand/chan.h>
#include <strand/pool.h>

enum { CHANNELS = 4, ITEMS = BENCH_MANY(500000), ROOM = 128 };

typedef STRAND_CHAN(uint64_t) numbers;

static void *produce(void *arg)
{
    numbers *chan = arg;
    for (uint64_t i = 1; i <= ITEMS; i++)
        STRAND_IGNORE(STRAND_SEND(*chan, &i));
    return NULL;
}

static double measure(size_t room)
{
    STRAND_SCOPE(scope);
    numbers chans[CHANNELS];
    strand_case cases[CHANNELS];
    uint64_t values[CHANNELS], last[CHANNELS] = {0};
    for (int i = 0; i < CHANNELS; i++) {
        chans[i] = STRAND_CHAN_OPEN(numbers, scope, room);
        cases[i] = STRAND_ON_RECEIVE(chans[i], &values[i]);
        strand_spawn(scope, produce, &chans[i]);
    }
    int64_t start = bench_now();
    for (long n = 0; n < (long)CHANNELS * ITEMS; n++) {
        int i = strand_select(cases, CHANNELS, 0);
        bench_check(values[i] == ++last[i], "item %" PRIu64 " of channel %d", values[i], i);
    }
    int64_t taken = bench_now() - start;
    strand_scope_join(scope);
    return (double)taken / ((double)CHANNELS * ITEMS);
}

static void *root(void *arg)
{
    const int *threads = arg;
    measure(0);
    measure(ROOM);
    for (int i = 0; i < BENCH_SAMPLES; i++) {
        bench_sample("select4", "strand", *threads, "ns", measure(0));
        bench_sample("select4_buf", "strand", *threads, "ns", measure(ROOM));
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int threads = (int)bench_argument(argc, argv, 1);
    strand_run(STRAND_OPTIONS(.threads = threads), root, &threads);
    return 0;
}
