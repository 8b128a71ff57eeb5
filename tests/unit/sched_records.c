/*
 * How many records of pools a run has: as many as there were pools at a time, whatever was opened and closed.
 */
#include "arch_check.h"

#include "sched/pool.h"
#include "sched/thread.h"

#include "../../include/strand/pool.h"

#include <string.h>

enum { MANY = 50 };

/* That of the first pool is one of them. */
static int records(void)
{
    int n = 0;
    struct pool *pool = atomic_load_explicit(&thread_self()->sub->pools, memory_order_acquire);
    for (; pool; pool = atomic_load_explicit(&pool->older, memory_order_acquire))
        n++;
    return n;
}

static strand_pool open(strand_scope scope, const char *scheduler)
{
    return strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1, .scheduler = scheduler));
}

static void *open_one_by_one(void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < MANY; i++)
        strand_pool_close(open(scope, arg), NULL);
    CHECK_EQUAL(records(), 2);
    return arg;
}

static void *open_three_at_a_time(void *arg)
{
    for (int i = 0; i < MANY; i++) {
        STRAND_SCOPE(scope);
        open(scope, arg);
        strand_pool second = open(scope, arg);
        open(scope, arg);
        strand_pool_close(second, NULL);
    }
    CHECK_EQUAL(records(), 4);
    return arg;
}

/* A record has room for one thread, or for as many as a pool can have. */
static void *open_both_kinds(void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < MANY; i++)
        strand_pool_close(open(scope, i % 2 ? "stealing" : "dedicated"), NULL);
    CHECK_EQUAL(records(), 3);
    return arg;
}

static void *open_fibre(void *scope)
{
    strand_fibre_open(*(strand_scope *)scope, NULL);
    return scope;
}

/* The fibre outlives the pool, and names its record. */
static void *keep_a_fibre_of_each(void *arg)
{
    STRAND_SCOPE_WITH(scope, STRAND_OPEN);
    for (int i = 0; i < 3; i++) {
        strand_pool pool = open(scope, arg);
        strand_join(strand_spawn_with(scope, STRAND_ATTR(.pool = pool), open_fibre, &scope, 0));
        strand_pool_close(pool, NULL);
    }
    CHECK_EQUAL(records(), 4);
    return arg;
}

int main(void)
{
    static strand_fn *const cases[] = {open_one_by_one, open_three_at_a_time, open_both_kinds, keep_a_fibre_of_each};
    static char *const schedulers[] = {"stealing", "global", "dedicated"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t j = 0; j < sizeof schedulers / sizeof *schedulers; j++)
            strand_run(STRAND_OPTIONS(.threads = 1), cases[i], schedulers[j]);
    return failures != 0;
}
