/*
 * dump1m, dump1m_own: a dump of a million strands that sleep at a few places, at depths of one to ten frames, grouped:
 * on eight shared fibres, or on stacks of their own. dump1m_mem: what the process has resident more after it.
 */
#include "bench.h"

#include <strand.h>
#include <strand/debug.h>
#include <strand/pool.h>

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { STRANDS = BENCH_MANY(1000000), FIBRES = 8 };
#define TEXT_MOST ((off_t)1 << 20)

static long parked;

static __attribute__((noinline)) void park(long depth)
{
    if (depth > 0) {
        park(depth - 1);
    } else {
        parked++;
        strand_sleep(3600 * STRAND_S);
    }
    __asm__ volatile("");
}

static void *sleeper(void *arg)
{
    park((intptr_t)arg % 10);
    return arg;
}

static void dump(const char *row, long strands)
{
    int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    bench_check(fd >= 0, "a file below /tmp");
    int64_t before = bench_resident(), start = bench_now();
    bench_check(strand_dump(fd, NULL) == 0, "the dump");
    int64_t taken = bench_now() - start;
    bench_check(lseek(fd, 0, SEEK_END) < TEXT_MOST, "the strands were not grouped");
    bench_sample(row, "strand", 1, "s", (double)taken / 1e9 * STRANDS / (double)strands);
    if (!strcmp(row, "dump1m"))
        bench_sample("dump1m_mem", "strand", 1, "bytes", (double)(bench_resident() - before));
    close(fd);
}

static void *root(void *arg)
{
    const bool *own = arg;
    const char *row = *own ? "dump1m_own" : "dump1m";
    long strands = *own ? bench_strands_that_fit(row, STRANDS, BENCH_BYTES_UNWOUND) : STRANDS;
    STRAND_SCOPE(scope);
    strand_attr attr = {.size = sizeof attr};
    if (!*own)
        attr.fibre = strand_fibre_open(scope, STRAND_FIBRE_ATTR(.count = FIBRES));
    for (intptr_t i = 0; i < strands; i++)
        strand_spawn_with(scope, &attr, sleeper, (void *)i, 0);
    while (parked < strands)
        strand_sleep(STRAND_MS);
    dump(row, strands);
    strand_scope_cancel(scope, "bench");
    strand_scope_join(scope);
    return NULL;
}

int main(int argc, char **argv)
{
    bool own = argc > 1 && !strcmp(argv[1], "own");
    strand_run(NULL, root, &own);
    return 0;
}
