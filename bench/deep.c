/*
 * deep: a million shallow strands run on eight shared fibres. One recurses 64 KiB deep, waits there until others of its
 * fibre have run, and returns. The row is the resident memory after a trim, in per cent of that before. deep_taken:
 * additional resident bytes while the strand was deep; deep_kept: after the trim.
 */
#include "bench.h"

#include <strand.h>
#include <strand/pool.h>
#include <strand/sync.h>

enum { STRANDS = BENCH_MANY(1000000), FIBRES = 8 };
enum { STACK = 256 * 1024, DEPTH = 64 * 1024, FRAME = 512, NEEDED_EACH = 700 };

static long parked;
static strand_event dive, rise;
static bool deep, risen;

static __attribute__((noinline)) void recurse(long bytes)
{
    volatile char frame[FRAME];
    frame[0] = frame[FRAME - 1] = 1;
    if (bytes > 0) {
        recurse(bytes - FRAME);
    } else {
        deep = true;
        strand_event_wait(&rise);
    }
    bench_check(frame[0] == 1 && frame[FRAME - 1] == 1, "a frame has changed");
}

static void *diver(void *arg)
{
    parked++;
    strand_event_wait(&dive);
    recurse(DEPTH);
    risen = true;
    strand_sleep(3600 * STRAND_S);
    return arg;
}

static void *sleeper(void *arg)
{
    parked++;
    strand_sleep(3600 * STRAND_S);
    return arg;
}

/* A strand that comes to the diver's fibre takes the diver's place in the stack. */
static void displace(strand_scope scope, strand_fibre fibre)
{
    for (int i = 0; i < 2 * FIBRES; i++)
        strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre), sleeper, NULL, 0);
    for (long wanted = parked + 2 * FIBRES; parked < wanted;)
        strand_yield();
}

static int64_t trimmed(strand_fibre fibre)
{
    strand_fibre_trim(fibre);
    strand_sleep(STRAND_MS);
    return bench_resident();
}

static void *root(void *arg)
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, STRAND_FIBRE_ATTR(.count = FIBRES, .stack_size = STACK));
    for (long i = 0; i < STRANDS; i++)
        strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre), i == STRANDS / 2 ? diver : sleeper, NULL, 0);
    while (parked < STRANDS)
        strand_sleep(STRAND_MS);
    int64_t before = trimmed(fibre);
    strand_event_set(&dive);
    while (!deep)
        strand_yield();
    displace(scope, fibre);
    int64_t meanwhile = bench_resident();
    strand_event_set(&rise);
    while (!risen)
        strand_yield();
    displace(scope, fibre);
    int64_t after = trimmed(fibre);
    bench_sample("deep", "strand", 1, "%", 100 * (double)after / (double)before);
    bench_sample("deep_taken", "strand", 1, "bytes", (double)(meanwhile - before));
    bench_sample("deep_kept", "strand", 1, "bytes", (double)(after - before));
    strand_scope_cancel(scope, "bench");
    strand_scope_join(scope);
    return arg;
}

int main(void)
{
    if (bench_memory_left() < (int64_t)STRANDS * NEEDED_EACH)
        bench_leave_out("a million strands may take %d MB, and there are not so many left",
                        STRANDS / 1000000 * NEEDED_EACH);
    strand_run(NULL, root, NULL);
    return 0;
}
