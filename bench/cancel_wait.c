/*
 * cancel_wait100, cancel_wait100k: 100 000 strands wait to receive, at channels with 100 of them each, or all at one.
 * One after the other, anywhere in their queues, is cancelled and joined; per strand. Both rows touch memory that is
 * equally cold, so that what differs between them is the length of the queue.
 */
#include "bench.h"

#include <strand.h>
#include <strand/chan.h>

enum { WAITERS = BENCH_MANY(100000), ROUNDS = BENCH_MANY(2000) };

typedef STRAND_CHAN(uint64_t) numbers;

struct crowd {
    long queue, waiters; /* how many wait at one channel; in all */
    numbers *channels;
    strand *strands; /* {0}: cancelled */
    uint64_t chance;
};

static void *wait_for_one(void *arg)
{
    const numbers *channel = arg;
    uint64_t n;
    STRAND_IGNORE(STRAND_RECEIVE(*channel, &n));
    return NULL;
}

static void *join(void *arg)
{
    const strand *waiter = arg;
    return strand_join(*waiter);
}

static strand pick(struct crowd *crowd)
{
    for (;;) {
        strand *at = &crowd->strands[bench_random(&crowd->chance) % (uint64_t)crowd->waiters];
        strand waiter = *at;
        *at = (strand){{0}};
        if (strand_id(waiter))
            return waiter;
    }
}

static double measure(struct crowd *crowd)
{
    strand victims[ROUNDS];
    for (int i = 0; i < ROUNDS; i++)
        victims[i] = pick(crowd);
    int64_t start = bench_now();
    for (int i = 0; i < ROUNDS; i++) {
        strand_cancel(victims[i], NULL);
        strand_exception *e = strand_try(join, &victims[i], NULL);
        bench_check(e && strand_exception_is(e, &STRAND_CHILD_CANCELLED), "the waiter was not interrupted");
        strand_exception_release(e);
    }
    return (double)(bench_now() - start) / ROUNDS;
}

static void fill(struct crowd *crowd, strand_scope scope)
{
    for (long i = 0; i < crowd->waiters; i++) {
        numbers *channel = &crowd->channels[i / crowd->queue];
        if (i % crowd->queue == 0)
            *channel = STRAND_CHAN_OPEN(numbers, scope, 0);
        crowd->strands[i] = strand_spawn(scope, wait_for_one, channel);
    }
    strand_yield();
}

static void *root(void *arg)
{
    struct crowd *crowd = arg;
    STRAND_SCOPE(scope);
    fill(crowd, scope);
    measure(crowd);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample(crowd->queue == 100 ? "cancel_wait100" : "cancel_wait100k", "strand", 1, "ns", measure(crowd));
    strand_scope_cancel(scope, NULL);
    return NULL;
}

int main(int argc, char **argv)
{
    struct crowd crowd = {.queue = bench_argument(argc, argv, 100), .chance = 1};
    crowd.waiters = bench_strands_that_fit("cancel_wait", WAITERS, BENCH_BYTES_UNWOUND);
    crowd.channels = calloc((size_t)(crowd.waiters / crowd.queue + 1), sizeof *crowd.channels);
    crowd.strands = calloc((size_t)crowd.waiters, sizeof *crowd.strands);
    bench_check(crowd.channels && crowd.strands, "no memory");
    strand_run(NULL, root, &crowd);
    free(crowd.channels);
    free(crowd.strands);
    return 0;
}
