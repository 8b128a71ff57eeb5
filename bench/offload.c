/*
 * offload: a strand has a function that does nothing called by a thread of the crew, which is asleep, and waits for it.
 */
#define _GNU_SOURCE
#include "offload.h"

#include <strand.h>
#include <strand/io.h>
#include <strand/pool.h>

static void *count(void *calls)
{
    ++*(uint64_t *)calls;
    return calls;
}

static void *settle(void *arg)
{
    offload_bind(offload_far);
    return arg;
}

static void trip(void *calls)
{
    strand_offload(count, calls);
}

static void *root(void *threads)
{
    uint64_t calls = 0;
    strand_offload(settle, NULL);
    offload_measure(trip, &calls);
    for (int i = 0; i < BENCH_SAMPLES; i++)
        bench_sample("offload", "strand", *(int *)threads, "us", offload_measure(trip, &calls));
    bench_check(calls == (BENCH_SAMPLES + 1) * OFFLOAD_TRIPS, "it was called %" PRIu64 " times", calls);
    return NULL;
}

int main(int argc, char **argv)
{
    int threads = (int)bench_argument(argc, argv, 1);
    offload_find_processors();
    offload_bind(offload_near);
    strand_run(STRAND_OPTIONS(.threads = threads, .max_offload_threads = 1), root, &threads);
    return 0;
}
