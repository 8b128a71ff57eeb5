/*
 * chan_rtt: two strands send one value back and forth over two unbuffered channels; a round trip. chan_rtt_shared: the
 * same on one thread of a pool of two.
 */
#include "bench.h"
#include "shared.h"

#include <strand.h>
#include <strand/chan.h>
#include <strand/pool.h>

enum { ROUND_TRIPS = BENCH_MANY(1000000) };

typedef STRAND_CHAN(uint64_t) numbers;

struct pair {
    numbers there, back;
};

static void *echo(void *arg)
{
    struct pair *pair = arg;
    uint64_t n;
    while (STRAND_RECEIVE(pair->there, &n) == 0)
        STRAND_IGNORE(STRAND_SEND(pair->back, &n));
    return NULL;
}

static double measure(void)
{
    STRAND_SCOPE(scope);
    struct pair pair = {.there = STRAND_CHAN_OPEN(numbers, scope, 0), .back = STRAND_CHAN_OPEN(numbers, scope, 0)};
    strand_spawn(scope, echo, &pair);
    uint64_t sum = 0, answer = 0;
    int64_t start = bench_now();
    for (uint64_t i = 0; i < ROUND_TRIPS; i++) {
        STRAND_IGNORE(STRAND_SEND(pair.there, &i));
        STRAND_IGNORE(STRAND_RECEIVE(pair.back, &answer));
        sum += answer;
    }
    int64_t taken = bench_now() - start;
    STRAND_CHAN_CLOSE(pair.there);
    strand_scope_join(scope);
    bench_check(sum == (uint64_t)ROUND_TRIPS * (ROUND_TRIPS - 1) / 2, "the sum of the answers is %" PRIu64, sum);
    return (double)taken / ROUND_TRIPS;
}

struct question {
    int threads;
    bool shared;
};

static void *root(void *arg)
{
    const struct question *question = arg;
    struct bench_blocker blocker;
    STRAND_SCOPE(scope);
    if (question->shared)
        bench_block_other(&blocker, scope);
    measure();
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample(question->shared ? "chan_rtt_shared" : "chan_rtt", "strand", question->threads, "ns", measure());
    if (question->shared)
        bench_unblock_other(&blocker);
    return NULL;
}

int main(int argc, char **argv)
{
    struct question question = {(int)bench_argument(argc, argv, 1), argc > 2 && strcmp(argv[2], "shared") == 0};
    strand_run(STRAND_OPTIONS(.threads = question.threads), root, &question);
    return 0;
}
