/*
 * resize: a pool goes from one thread to eight and back, 100 times, while 64 strands work on it, in pairs that hand
 * values to each other and join a child for each. What they have done per second on one thread after that, in percent
 * of before; resize8: the same on eight threads. resize_cycle: how long a resize to eight and back takes, without what
 * the pool is left to work in between. Each value and each child is counted: nothing may be lost.
 */
#include "work.h"

#include <stdatomic.h>
#include <strand.h>
#include <strand/chan.h>
#include <strand/pool.h>

enum { PAIRS = 32, CYCLES = BENCH_LONG(100), SMALL = 1, LARGE = 8 };
enum { WINDOWS = BENCH_LONG(40), WINDOW_MS = 25, BETWEEN_MS = 3, WORK_NS = 2000 };

typedef STRAND_CHAN(uint64_t) numbers;

struct pair {
    numbers there, back;
    uint64_t sent, answered, sum;
    _Alignas(64) _Atomic uint64_t children;
};

static struct pair pairs[PAIRS];
static uint64_t steps;
static _Atomic bool over;

static void *child(void *arg)
{
    struct pair *pair = arg;
    bench_work(steps);
    atomic_fetch_add_explicit(&pair->children, 1, memory_order_relaxed);
    return NULL;
}

static void *ask(void *arg)
{
    struct pair *pair = arg;
    uint64_t answer;
    while (!atomic_load_explicit(&over, memory_order_relaxed)) {
        STRAND_SCOPE(scope);
        strand with = strand_spawn(scope, child, pair);
        STRAND_IGNORE(STRAND_SEND(pair->there, &pair->sent));
        pair->sent++;
        bench_check(STRAND_RECEIVE(pair->back, &answer) == 0, "no answer");
        pair->sum += answer;
        strand_join(with);
    }
    STRAND_CHAN_CLOSE(pair->there);
    return NULL;
}

static void *answer(void *arg)
{
    struct pair *pair = arg;
    for (uint64_t value; STRAND_RECEIVE(pair->there, &value) == 0; pair->answered++)
        STRAND_IGNORE(STRAND_SEND(pair->back, &value));
    return NULL;
}

static uint64_t done_so_far(void)
{
    uint64_t sum = 0;
    for (int i = 0; i < PAIRS; i++)
        sum += atomic_load_explicit(&pairs[i].children, memory_order_relaxed);
    return sum;
}

/* Per second; the median of short times, so that other work of the machine disturbs only few of them. */
static double throughput(void)
{
    double windows[WINDOWS];
    for (int i = 0; i < WINDOWS; i++) {
        int64_t since = bench_now();
        uint64_t before = done_so_far();
        strand_sleep(WINDOW_MS * STRAND_MS);
        windows[i] = (double)(done_so_far() - before) * 1e9 / (double)(bench_now() - since);
    }
    return bench_median(windows, WINDOWS);
}

static int threads_of(strand_pool pool)
{
    strand_pool_info info = {.size = sizeof info};
    strand_pool_info_get(pool, &info);
    return info.threads;
}

/* Threads that must leave do so at their next switches. */
static void resize(strand_pool pool, int threads)
{
    int error = strand_pool_resize(pool, threads);
    bench_check(error == 0, "resizing to %d: %d", threads, error);
    while (threads_of(pool) != threads)
        strand_yield();
}

static double cycles(strand_pool pool)
{
    int64_t taken = 0;
    for (int i = 0; i < CYCLES; i++) {
        int64_t since = bench_now();
        resize(pool, LARGE);
        taken += bench_now() - since;
        strand_sleep(BETWEEN_MS * STRAND_MS);
        since = bench_now();
        resize(pool, SMALL);
        taken += bench_now() - since;
        strand_sleep(BETWEEN_MS * STRAND_MS);
    }
    return (double)taken / CYCLES / 1000;
}

static double throughput_of(strand_pool pool, int threads)
{
    resize(pool, threads);
    return throughput();
}

static void check(void)
{
    for (int i = 0; i < PAIRS; i++) {
        struct pair *pair = &pairs[i];
        bench_check(pair->sent > 0 && pair->answered == pair->sent, "%" PRIu64 " of %" PRIu64 " answers",
                    pair->answered, pair->sent);
        bench_check(pair->children == pair->sent, "%" PRIu64 " children of %" PRIu64, pair->children, pair->sent);
        bench_check(pair->sum == pair->sent * (pair->sent - 1) / 2, "the sum of the answers is %" PRIu64, pair->sum);
    }
}

static void *root(void *arg)
{
    STRAND_SCOPE(scope);
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = SMALL));
    steps = bench_steps(WORK_NS);
    for (int i = 0; i < PAIRS; i++) {
        pairs[i].there = STRAND_CHAN_OPEN(numbers, scope, 0);
        pairs[i].back = STRAND_CHAN_OPEN(numbers, scope, 0);
        strand_spawn_with(scope, STRAND_ATTR(.pool = pool), ask, &pairs[i], 0);
        strand_spawn_with(scope, STRAND_ATTR(.pool = pool), answer, &pairs[i], 0);
    }
    throughput();
    double large = throughput_of(pool, LARGE), small = throughput_of(pool, SMALL), cycle = cycles(pool);
    double small_after = throughput_of(pool, SMALL), large_after = throughput_of(pool, LARGE);
    atomic_store(&over, true);
    strand_scope_join(scope);
    check();
    bench_sample("resize", "strand", SMALL, "%", 100 * small_after / small);
    bench_sample("resize8", "strand", LARGE, "%", 100 * large_after / large);
    bench_sample("resize_cycle", "strand", LARGE, "us", cycle);
    return arg;
}

int main(void)
{
    strand_run(NULL, root, NULL);
    return 0;
}
