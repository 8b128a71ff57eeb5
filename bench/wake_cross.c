/*
 * wake_cross: a strand makes another one runnable, which is pinned to another thread of its pool; wake_cross_pool:
 * which is on another pool. That thread has been idle for a millisecond. From before the value is sent until the strand
 * that receives it runs; the median of two hundred.
 */
#include "wake_cross.h"

#include <strand.h>
#include <strand/chan.h>
#include <strand/pool.h>

typedef STRAND_CHAN(int64_t) times;

struct question {
    const char *row;
    bool pools;
    struct wakes wakes;
    times chan;
};

static void *be_woken(void *arg)
{
    struct question *question = arg;
    int64_t since;
    while (STRAND_RECEIVE(question->chan, &since) == 0)
        wakes_record(&question->wakes, since);
    return NULL;
}

static void *wake(void *arg)
{
    struct question *question = arg;
    for (int i = 0; i < WAKES; i++) {
        wakes_rest(&question->wakes, i);
        int64_t now = bench_now();
        STRAND_IGNORE(STRAND_SEND(question->chan, &now));
    }
    STRAND_CHAN_CLOSE(question->chan);
    return NULL;
}

static double measure(struct question *question, strand_pool other)
{
    STRAND_SCOPE(scope);
    struct strand_attr here = {.size = sizeof here, .pin = STRAND_PIN(0)}, there = {.size = sizeof there};
    if (question->pools)
        there.pool = other;
    else
        there.pin = STRAND_PIN(1);
    question->wakes.done = 0;
    question->chan = STRAND_CHAN_OPEN(times, scope, 0);
    strand_spawn_with(scope, &there, be_woken, question, 0);
    strand_spawn_with(scope, &here, wake, question, 0);
    strand_scope_join(scope);
    return wakes_median(&question->wakes);
}

static void *root(void *arg)
{
    struct question *question = arg;
    strand_pool other = {0};
    STRAND_SCOPE(scope);
    if (question->pools)
        other = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1));
    measure(question, other);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample(question->row, "strand", 2, "us", measure(question, other));
    return NULL;
}

int main(int argc, char **argv)
{
    static struct question question;
    question.row = argc > 1 ? argv[1] : "wake_cross";
    question.pools = strcmp(question.row, "wake_cross_pool") == 0;
    strand_run(STRAND_OPTIONS(.threads = question.pools ? 1 : 2), root, &question);
    return 0;
}
