/*
 * Describes pools.
 */
#include "pools.h"

#include "../sched/closing.h"
#include "../sched/resize.h"
#include "../strand/pool.h"

#include <stdio.h>
#include <string.h>

/* For a pool that may have been closed meanwhile: its memory is never unmapped before the end of the run. */
static const char *copy_name(const struct opened_pool *op, char name[POOL_NAME_ROOM])
{
    _Static_assert(sizeof op->name == POOL_NAME_ROOM, "there is room for it");
    memset(name, 0, POOL_NAME_ROOM);
    if (op)
        memcpy(name, op->name, POOL_NAME_ROOM - 1);
    return name;
}

static const struct opened_pool *above(const struct pool *pool)
{
    return plain_load(&pool->above, memory_order_acquire); /* [PB1] */
}

const char *pool_name(const struct pool *pool, char name[POOL_NAME_ROOM])
{
    return copy_name(above(pool), name);
}

const char *pool_name_waited_for(uint64_t blocked_on, char name[POOL_NAME_ROOM])
{
    return copy_name((const struct opened_pool *)(uintptr_t)blocked_on, name);
}

/* Whether the pool was opened, and has not been closed. */
static bool is_there(const struct pool *pool)
{
    const struct opened_pool *op = above(pool);
    return op && atomic_load_explicit(&pool->state, memory_order_acquire) != POOL_NONE && /* [PB1] */
           !plain_load(&op->closed, memory_order_relaxed);
}

static struct pool *next(struct pool *pool)
{
    do
        pool = atomic_load_explicit(&pool->older, memory_order_relaxed);
    while (pool && !is_there(pool));
    return pool;
}

static struct pool *newest(struct subprocess *sub)
{
    struct pool *pool = atomic_load_explicit(&sub->pools, memory_order_acquire); /* [PB1] */
    return is_there(pool) ? pool : next(pool);
}

static void say_pool(struct output *out, struct pool *pool)
{
    char name[POOL_NAME_ROOM];
    bool closing = atomic_load_explicit(&pool->state, memory_order_relaxed) == POOL_CLOSING;
    unsigned long long strands = pool_live(pool);
    int threads = pool_threads(pool);
    output_say(out, 4, "pool '%s'%s: %llu strand%s, %d thread%s (%s)\n", pool_name(pool, name),
               closing ? ", closing" : "", strands, strands == 1 ? "" : "s", threads, threads == 1 ? "" : "s",
               pool_scheduler_name(pool));
}

void pools_say(struct output *out, struct subprocess *sub, size_t strands, size_t over)
{
    int threads = 0, pools = 0;
    char scheduler[48] = "";
    for (struct pool *pool = newest(sub); pool; pool = next(pool)) {
        threads += pool_threads(pool);
        pools++;
    }
    if (pools == 1)
        snprintf(scheduler, sizeof scheduler, " (%s)", pool_scheduler_name(&sub->pool));
    output_say(out, 0, "strands: %zu, besides %zu ended, not joined; threads: %d%s\n", strands, over, threads,
               scheduler);
    for (struct pool *pool = pools > 1 ? newest(sub) : NULL; pool; pool = next(pool))
        say_pool(out, pool);
}
