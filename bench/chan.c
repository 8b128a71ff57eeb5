/*
 * chan_rtt: two strands send one value back and forth over two unbuffered channels; a round trip. chan_buf: one sends,
 * one receives, over a channel with room for 128; per item.
 */
#include "bench.h"

#include <strand.h>
#include <strand/chan.h>
#include <strand/pool.h>

enum { ROUND_TRIPS = 1000000, ITEMS = 3000000, ROOM = 128 };

typedef STRAND_CHAN(uint64_t) numbers;

struct pair {
    numbers there, back;
    uint64_t sum;
};

static void *echo(void *arg)
{
    struct pair *pair = arg;
    uint64_t n;
    while (STRAND_RECEIVE(pair->there, &n) == 0)
        STRAND_SEND(pair->back, &n);
    return NULL;
}

static double round_trips(void)
{
    STRAND_SCOPE(scope);
    struct pair pair = {.there = STRAND_CHAN_OPEN(numbers, scope, 0), .back = STRAND_CHAN_OPEN(numbers, scope, 0)};
    strand_spawn(scope, echo, &pair);
    uint64_t sum = 0, answer;
    int64_t start = bench_now();
    for (uint64_t i = 0; i < ROUND_TRIPS; i++) {
        STRAND_SEND(pair.there, &i);
        STRAND_RECEIVE(pair.back, &answer);
        sum += answer;
    }
    int64_t taken = bench_now() - start;
    strand_chan_close(pair.there.untyped);
    strand_scope_join(scope);
    bench_check(sum == (uint64_t)ROUND_TRIPS * (ROUND_TRIPS - 1) / 2, "the sum of the answers is %" PRIu64, sum);
    return (double)taken / ROUND_TRIPS;
}

static void *add_up(void *arg)
{
    struct pair *pair = arg;
    uint64_t n;
    while (STRAND_RECEIVE(pair->there, &n) == 0)
        pair->sum += n;
    return NULL;
}

static double items(void)
{
    STRAND_SCOPE(scope);
    struct pair pair = {.there = STRAND_CHAN_OPEN(numbers, scope, ROOM)};
    strand_spawn(scope, add_up, &pair);
    int64_t start = bench_now();
    for (uint64_t i = 0; i < ITEMS; i++)
        STRAND_SEND(pair.there, &i);
    strand_chan_close(pair.there.untyped);
    strand_scope_join(scope);
    int64_t taken = bench_now() - start;
    bench_check(pair.sum == (uint64_t)ITEMS * (ITEMS - 1) / 2, "the sum of the items is %" PRIu64, pair.sum);
    return (double)taken / ITEMS;
}

struct question {
    const char *row;
    double (*measure)(void);
    int threads;
};

static void *root(void *arg)
{
    struct question *question = arg;
    question->measure();
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample(question->row, "strand", question->threads, "ns", question->measure());
    return NULL;
}

int main(int argc, char **argv)
{
    struct question question = {argc > 1 ? argv[1] : "chan_rtt", NULL, argc > 2 ? atoi(argv[2]) : 1};
    question.measure = strncmp(question.row, "chan_buf", 8) == 0 ? items : round_trips;
    strand_run(STRAND_OPTIONS(.threads = question.threads), root, &question);
    return 0;
}
