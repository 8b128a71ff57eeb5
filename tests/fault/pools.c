/*
 * Pools: opened, made larger and smaller, closed while their strands wait, opened again in the same place; strands that
 * are pinned; a descriptor and fibres that outlive them.
 */
/* contract 2.14 */
#include "fault.h"

#include "strand/io.h"

#include <sched.h>

enum { STRANDS = 12, PINNED = 3 };

static strand spawn_onto(strand_scope scope, strand_pool pool, strand_fn *fn, void *arg)
{
    return strand_spawn_with(scope, STRAND_ATTR(.pool = pool), fn, arg, 0);
}

static void *leaf(void *arg)
{
    strand_yield();
    strand_sleep(STRAND_US);
    return arg;
}

static void *branch(void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < 3; i++)
        strand_spawn(scope, leaf, arg);
    strand_scope_join(scope);
    return arg;
}

static void use(strand_pool pool)
{
    uintptr_t sum = 0;
    strand children[STRANDS];
    STRAND_SCOPE(scope);
    for (uintptr_t i = 0; i < STRANDS; i++)
        children[i] = spawn_onto(scope, pool, branch, (void *)i);
    for (int i = 0; i < STRANDS; i++)
        sum += (uintptr_t)strand_join(children[i]);
    FAULT_CHECK(sum == STRANDS * (STRANDS - 1) / 2);
}

/* ---- resizing, pinning ----------------------------------------------------------------------------------- */

static void *stay(void *arg)
{
    int index = strand_thread_index();
    for (int i = 0; i < 3; i++) {
        strand_sleep(STRAND_US);
        FAULT_CHECK(strand_thread_index() == index);
    }
    return arg;
}

static void resize(strand_pool pool)
{
    strand_must(strand_pool_resize(pool, PINNED));
    STRAND_SCOPE(scope);
    for (int i = 0; i < PINNED; i++)
        strand_spawn_with(scope, STRAND_ATTR(.pool = pool, .pin = STRAND_PIN(i)), stay, NULL, 0);
    use(pool);
    strand_scope_join(scope);
    strand_must(strand_pool_resize(pool, 1));
    use(pool);
    strand_must(strand_pool_resize(pool, 2));
}

/* ---- what outlives a pool -------------------------------------------------------------------------------- */

struct outlives {
    strand_scope scope;
    strand_fibre fibre;
    int fds[2];
};

static void close_pipe(struct outlives **outlives)
{
    fault_close_fd(&(*outlives)->fds[0]);
    fault_close_fd(&(*outlives)->fds[1]);
}

/* As the first who waits for the descriptor it has its own pool watch it. */
static void *read_first(void *arg)
{
    struct outlives *outlives = arg;
    char byte;
    strand_must(strand_read(outlives->fds[0], &byte, 1));
    outlives->fibre = strand_fibre_open(outlives->scope, NULL);
    STRAND_SCOPE(scope);
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.fibre = outlives->fibre), leaf, NULL, 0));
    return arg;
}

static void *write_one(void *arg)
{
    strand_sleep(10 * STRAND_US);
    strand_must(strand_write(((struct outlives *)arg)->fds[1], "x", 1));
    return arg;
}

static void *read_later(void *arg)
{
    char byte;
    strand_must(strand_read(((struct outlives *)arg)->fds[0], &byte, 1));
    return arg;
}

static void *wait_for_the_end(void *arg)
{
    strand_must(strand_wait_ready(((struct outlives *)arg)->fds[0], STRAND_GONE));
    return arg;
}

static void *wait_for_ever(void *arg)
{
    strand_sleep(3600 * STRAND_S);
    return arg;
}

/* The pool ends in the middle of it. */
static void outlive(strand_scope scope, struct outlives *outlives)
{
    STRAND_SCOPE(inner);
    strand_pool pool = strand_pool_open(inner, STRAND_POOL_ATTR(.scheduler = "dedicated"));
    strand first = strand_spawn_with(inner, STRAND_ATTR(.pool = pool), read_first, outlives, 0);
    strand_join(strand_spawn(inner, write_one, outlives));
    strand_join(first);
    strand_spawn(scope, read_later, outlives);
    strand_spawn(scope, wait_for_the_end, outlives);
    spawn_onto(inner, pool, wait_for_ever, NULL);
    strand_sleep(10 * STRAND_US);
    strand_scope_cancel(inner, NULL);
    strand_pool_close(pool, "it was long enough");
}

static void *outlived(void *arg)
{
    static struct outlives outlives;
    (void)arg;
    outlives.fds[0] = outlives.fds[1] = -1;
    struct outlives *closed __attribute__((cleanup(close_pipe), unused)) = &outlives;
    STRAND_SCOPE_WITH(scope, STRAND_OPEN);
    outlives.scope = scope;
    strand_must(strand_pipe(outlives.fds));
    outlive(scope, &outlives);
    strand_must(strand_write(outlives.fds[1], "y", 1));
    fault_close_fd(&outlives.fds[1]);
    strand_scope_join(scope);
    return FAULT_DONE;
}

/* What lies in memory in a seeded run can't be refused any. */
FAULT_WORKLOAD(outlived, RUN_ALONE | RUN_PAIR, outlived, )

/* ---- the life of pools ----------------------------------------------------------------------------------- */

static void *pools(void *arg)
{
    (void)arg;
    for (int i = 0; i < 2; i++) {
        int cpu = sched_getcpu();
        STRAND_SCOPE(scope);
        strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 2, .cpus = &cpu, .cpus_count = 1));
        use(pool);
        resize(pool);
        strand_must(strand_pool_resize(strand_pool_self(), 2));
    }
    return FAULT_DONE;
}

FAULT_WORKLOAD(pools, RUN_ANY, pools, )
