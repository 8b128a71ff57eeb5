/*
 * burst: 100 000 strands that compute for 5 us each are spawned at once, in a pool of two threads that has had nothing
 * to do; from the first spawn until all have ended. burst_pool: they are spawned from another pool, whose thread then
 * waits. Runtime `half`: half of that work, as it takes one thread, in the same process; `threads`: two plain threads
 * that do half of it each, which is what the machine can do at that moment. burst_ratio, burst_pool_ratio: either by
 * `half`.
 */
#include "work.h"

#include <pthread.h>
#include <strand.h>
#include <strand/pool.h>

enum { PIECES = BENCH_MANY(100000), PIECE_NS = 5000, REST_MS = 50 };

struct question {
    const char *row;
    bool pools;
    uint64_t steps;
    uint64_t results[PIECES];
};
static struct question question;

static void *compute(void *arg)
{
    uint64_t *result = arg;
    *result = bench_work(question.steps);
    return NULL;
}

static int64_t check(int64_t since)
{
    int64_t taken = bench_now() - since;
    uint64_t expected = bench_work(question.steps);
    for (int i = 0; i < PIECES; i++)
        bench_check(question.results[i] == expected, "piece %d was not done", i);
    memset(question.results, 0, sizeof question.results);
    return taken;
}

/* Until all threads are asleep. */
static void rest(void)
{
    strand_sleep(REST_MS * STRAND_MS);
}

static int64_t by_strands(strand_pool pool)
{
    struct strand_attr attr = {.size = sizeof attr, .pool = pool};
    rest();
    int64_t since = bench_now();
    STRAND_SCOPE(scope);
    for (int i = 0; i < PIECES; i++)
        strand_spawn_with(scope, &attr, compute, &question.results[i], 0);
    strand_scope_join(scope);
    return check(since);
}

static void *do_half(void *second)
{
    int first = second ? PIECES / 2 : 0;
    for (int i = 0; i < PIECES / 2; i++)
        compute(&question.results[first + i]);
    return NULL;
}

static int64_t by_one_thread(void)
{
    rest();
    int64_t since = bench_now();
    do_half(NULL);
    do_half(&question);
    return check(since);
}

static int64_t by_two_threads(void)
{
    pthread_t thread;
    rest();
    int64_t since = bench_now();
    bench_check(pthread_create(&thread, NULL, do_half, &question) == 0, "no thread");
    do_half(NULL);
    pthread_join(thread, NULL);
    return check(since);
}

static void measure(strand_pool pool)
{
    char ratio[64];
    snprintf(ratio, sizeof ratio, "%s_ratio", question.row);
    double half = (double)by_one_thread() / 2, strands = (double)by_strands(pool), threads = (double)by_two_threads();
    bench_sample(question.row, "half", 1, "ms", half / 1e6);
    bench_sample(question.row, "threads", 2, "ms", threads / 1e6);
    bench_sample(question.row, "strand", 2, "ms", strands / 1e6);
    bench_sample(ratio, "threads", 2, "x", threads / half);
    bench_sample(ratio, "strand", 2, "x", strands / half);
}

static void *root(void *arg)
{
    enum { SAMPLES = BENCH_LONG(3) };
    strand_pool pool = {0};
    STRAND_SCOPE(scope);
    if (question.pools)
        pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 2));
    question.steps = bench_steps(PIECE_NS);
    by_strands(pool);
    for (int i = 0; i < SAMPLES; i++)
        measure(pool);
    return arg;
}

int main(int argc, char **argv)
{
    question.row = argc > 1 ? argv[1] : "burst";
    question.pools = strcmp(question.row, "burst_pool") == 0;
    strand_run(STRAND_OPTIONS(.threads = question.pools ? 1 : 2), root, NULL);
    return 0;
}
