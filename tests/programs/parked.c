/*
 * For a debugger: strands that sleep on stacks of their own, and on one that they share, where all but the last are
 * inactive, and on another pool; then the root stops the program, by SIGABRT.
 */
#define _GNU_SOURCE
#include "noinline.h"

#include "strand.h"
#include "strand/pool.h"

#include <stdlib.h>

#define FOREVER (3600 * STRAND_S)

static _Atomic int started;

static NOINLINE void doze_alone(void)
{
    started++;
    strand_sleep(FOREVER);
    __asm__ volatile("");
}

static void *alone(void *arg)
{
    doze_alone();
    return arg;
}

static NOINLINE void doze_among_others(int depth)
{
    char room[500];
    __asm__ volatile("" : : "r"(room) : "memory");
    if (depth > 0) {
        doze_among_others(depth - 1);
    } else {
        started++;
        strand_sleep(FOREVER);
    }
    __asm__ volatile("" : : "r"(room) : "memory");
}

/* With a frame that is found by RBP, and whose size no table says. */
static NOINLINE void doze_in_a_frame_of_size(size_t size)
{
    char *room = __builtin_alloca(size);
    __asm__ volatile("" : : "r"(room) : "memory");
    doze_among_others(2);
    __asm__ volatile("" : : "r"(room) : "memory");
}

static void *among_others(void *size)
{
    doze_in_a_frame_of_size((size_t)size);
    return NULL;
}

static NOINLINE void stop_here(void)
{
    abort();
}

static void *owner(void *arg)
{
    STRAND_SCOPE(scope);
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.name = "child"), alone, NULL, 0));
    return arg;
}

static NOINLINE void compute_there(void)
{
    started++;
    for (;;)
        __asm__ volatile("");
}

static void *shielded(void *arg)
{
    STRAND_SHIELD;
    doze_alone();
    return arg;
}

static void *computes(void *arg)
{
    compute_there();
    return arg;
}

static void *close_it(void *pool)
{
    strand_pool_close(*(strand_pool *)pool, NULL);
    return pool;
}

static void *root(void *arg)
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, STRAND_FIBRE_ATTR(.name = "crowd"));
    strand_spawn_with(scope, STRAND_ATTR(.name = "first", .fibre = fibre), among_others, (void *)100, 0);
    strand_spawn_with(scope, STRAND_ATTR(.name = "second", .fibre = fibre), among_others, (void *)5000, 0);
    strand_spawn_with(scope, STRAND_ATTR(.name = "third", .fibre = fibre), among_others, (void *)200, 0);
    strand_spawn_with(scope, STRAND_ATTR(.name = "owner"), owner, NULL, 0);
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.name = "aside", .threads = 2));
    strand_spawn_with(scope, STRAND_ATTR(.name = "distant", .pool = pool), shielded, NULL, 0);
    strand_spawn_with(scope, STRAND_ATTR(.name = "busy", .pool = pool), computes, NULL, 0);
    strand_spawn_with(scope, STRAND_ATTR(.name = "closer"), close_it, &pool, 0);
    while (started < 6)
        strand_sleep(STRAND_MS);
    strand_sleep(10 * STRAND_MS);
    stop_here();
    return arg;
}

int main(void)
{
    strand_run(NULL, root, NULL);
    return 0;
}
