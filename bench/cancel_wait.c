/*
 * cancel_wait100, cancel_wait100k: so many strands wait to receive from one channel; one more comes, with a few behind
 * it, is cancelled, and joined. What that takes, from the cancel to the end of the join, says whether the place in the
 * queue is found in O(1).
 */
#include "bench.h"

#include <strand.h>
#include <strand/chan.h>

enum { ROUNDS = 2000, BEHIND = 4 };

typedef STRAND_CHAN(uint64_t) numbers;

static void *wait_for_one(void *arg)
{
    const numbers *chan = arg;
    uint64_t n;
    STRAND_RECEIVE(*chan, &n);
    return NULL;
}

static void *join(void *arg)
{
    const strand *waiter = arg;
    return strand_join(*waiter);
}

/* A waiter in the queue, with BEHIND others after it. */
static strand queue_up(strand_scope scope, numbers *chan, strand *behind)
{
    strand waiter = strand_spawn(scope, wait_for_one, chan);
    strand_yield();
    for (int i = 0; i < BEHIND; i++)
        behind[i] = strand_spawn(scope, wait_for_one, chan);
    strand_yield();
    return waiter;
}

static int64_t cancel(strand waiter)
{
    int64_t start = bench_now();
    strand_cancel(waiter, NULL);
    strand_exception *e = strand_try(join, &waiter, NULL);
    int64_t taken = bench_now() - start;
    bench_check(e && strand_exception_is(e, &STRAND_CHILD_CANCELLED), "the waiter was not interrupted");
    strand_exception_release(e);
    return taken;
}

static double measure(strand_scope scope, numbers *chan)
{
    int64_t taken = 0;
    for (int i = 0; i < ROUNDS; i++) {
        strand behind[BEHIND];
        strand waiter = queue_up(scope, chan, behind);
        taken += cancel(waiter);
        for (int k = 0; k < BEHIND; k++)
            cancel(behind[k]);
    }
    return (double)taken / ROUNDS;
}

static void *root(void *arg)
{
    const long *waiters = arg;
    STRAND_SCOPE(scope);
    numbers chan = STRAND_CHAN_OPEN(numbers, scope, 0);
    for (long i = 0; i < *waiters; i++)
        strand_spawn(scope, wait_for_one, &chan);
    strand_yield();
    measure(scope, &chan);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample(*waiters == 100000 ? "cancel_wait100k" : "cancel_wait100", "strand", 1, "ns",
                     measure(scope, &chan));
    STRAND_CHAN_CLOSE(chan);
    strand_scope_join(scope);
    return NULL;
}

int main(int argc, char **argv)
{
    long waiters = bench_argument(argc, argv, 100);
    strand_run(NULL, root, &waiters);
    return 0;
}
