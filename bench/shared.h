/*
 * For the rows of one strand thread in a pool of two: the other thread is kept in a call that blocks it, so that it
 * takes no part, and the first one does everything with atomic operations, against nobody.
 */
#ifndef BENCH_SHARED_H
#define BENCH_SHARED_H

#include "bench.h"

#include <strand.h>

#include <stdatomic.h>
#include <unistd.h>

struct bench_blocker {
    int fds[2];
    _Atomic bool there;
    strand strand;
};

BENCH_API void *bench_block(void *arg)
{
    struct bench_blocker *blocker = arg;
    char byte;
    atomic_store(&blocker->there, true);
    bench_check(read(blocker->fds[0], &byte, 1) == 1, "the pipe of the blocker");
    return NULL;
}

/* Does not yield, so the other thread takes the strand. */
BENCH_API void bench_block_other(struct bench_blocker *blocker, strand_scope scope)
{
    bench_check(pipe(blocker->fds) == 0, "no pipe");
    atomic_store(&blocker->there, false);
    blocker->strand = strand_spawn(scope, bench_block, blocker);
    while (!atomic_load(&blocker->there))
        ;
}

BENCH_API void bench_unblock_other(struct bench_blocker *blocker)
{
    bench_check(write(blocker->fds[1], "", 1) == 1, "the pipe of the blocker");
    strand_join(blocker->strand);
    close(blocker->fds[0]);
    close(blocker->fds[1]);
}

#endif
