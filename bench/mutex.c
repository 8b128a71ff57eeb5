/*
 * mutex: one strand locks and unlocks a mutex that nobody else wants, in a run of one thread; mutex_shared: in a run of
 * two, where that takes atomic operations; mutex2: two strands on two threads do it at the same time. Per lock and
 * unlock.
 */
#include "bench.h"

#include <strand.h>
#include <strand/pool.h>
#include <strand/sync.h>

enum { TIMES = BENCH_MANY(3000000) };

struct work {
    strand_mutex mutex;
    uint64_t count;
    _Atomic int ready;
};

static void *lock_and_unlock(void *arg)
{
    struct work *work = arg;
    for (int i = 0; i < TIMES; i++) {
        strand_mutex_lock(&work->mutex);
        work->count++;
        strand_mutex_unlock(&work->mutex);
    }
    return NULL;
}

static void *meet_and_lock(void *arg)
{
    struct work *work = arg;
    for (work->ready++; work->ready < 2;)
        strand_yield();
    return lock_and_unlock(arg);
}

static double measure(int strands)
{
    STRAND_SCOPE(scope);
    struct work work = {.count = 0};
    for (int i = 1; i < strands; i++)
        strand_spawn(scope, meet_and_lock, &work);
    int64_t start = bench_now();
    (void)(strands > 1 ? meet_and_lock(&work) : lock_and_unlock(&work));
    strand_scope_join(scope);
    int64_t taken = bench_now() - start;
    bench_check(work.count == (uint64_t)strands * TIMES, "it was locked %" PRIu64 " times", work.count);
    return (double)taken / ((double)strands * TIMES);
}

struct question {
    const char *row;
    int strands, threads;
};

static void *root(void *arg)
{
    struct question *question = arg;
    measure(question->strands);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample(question->row, "strand", question->threads, "ns", measure(question->strands));
    return NULL;
}

int main(int argc, char **argv)
{
    struct question question = {argc > 1 ? argv[1] : "mutex", 1, 1};
    if (strcmp(question.row, "mutex") != 0)
        question.threads = 2;
    if (strcmp(question.row, "mutex2") == 0)
        question.strands = 2;
    strand_run(STRAND_OPTIONS(.threads = question.threads), root, &question);
    return 0;
}
