/*
 * Pools that a plain thread drives: strand_pool_drive. Pages: docs/protocols/pools.md, docs/schedulers.md.
 *
 * The caller is not a strand, so no scope keeps the pool for it. Instead, a driven pool ends only within a call of
 * strand_pool_drive, which does not use the pool after that. The caller has a reference to the handle from the look-up
 * until it is registered as the thread that drives; the thread that frees the handle waits for that.
 */
#include "../../include/strand/pool.h"

#include "../sched/pool.h"
#include "../sched/thread_lifetime.h"
#include "../strand/handle.h"
#include "../strand/misuse.h"
#include "../strand/pool.h"

#include <errno.h>

/* Finds the pool of a handle, and takes a reference to the handle. Returns the handle's record, and the pool in *out;
 * NULL: the pool has ended. */
static struct opened_pool *find_pool(strand_pool handle, const char *function, struct pool **out)
{
    struct thread *self = thread_self();
    if (self && self->current)
        MISUSE(function, "", "a strand can't drive a pool: it is for threads that have work of their own");
    struct opened_pool *op = pool_of_handle(handle, function);
    if (!handle_ref_take_with_outsiders(NULL, &op->word, pool_serial(handle)))
        return NULL;
    struct pool *pool = pool_behind(op);
    bool left = subprocess_is_left(pool->sub); /* in the child of a fork, the run has stayed in the parent */
    if (left || pool == &pool->sub->closed) {
        pool_unref(op);
        return NULL;
    }
    if (pool == &pool->sub->pool)
        MISUSE(function, "", "the pool is a run's first one, which strand_run itself drives");
    if (pool->scheduler != &scheduler_current)
        MISUSE(function, pool_made(op, MADE_ROOM), "the pool has threads of its own: its scheduler is '%s'",
               pool->scheduler->name);
    *out = pool;
    return op;
}

/* Under a seed, one of the pool's own threads runs it, and the caller only waits. */
static int wait_a_moment(struct opened_pool *op)
{
    pool_unref(op);
    platform_relax_unknown();
    return 1;
}

int strand_pool_drive(strand_pool handle, strand_time until, strand_drive_flags flags)
{
    struct pool *pool;
    struct opened_pool *op = find_pool(handle, "strand_pool_drive", &pool);
    if (flags & ~(unsigned)STRAND_DRIVE_WAIT)
        MISUSE("strand_pool_drive", "", "the flags %#x are invalid", flags);
    if (!op)
        return 0;
    if (!pool_is_driven(pool))
        return wait_a_moment(op);
    uint32_t before = POOL_UNDRIVEN;
    bool mine = atomic_compare_exchange_strong_explicit(&pool->driving, &before, POOL_DRIVEN, memory_order_acq_rel,
                                                        memory_order_relaxed); /* [DV1] */
    pool_unref(op);
    if (!mine)
        return before == POOL_DRIVEN ? -EBUSY : 0;
    return pool_drive(pool, until.ns ? until.ns : ARCH_FOREVER, flags & STRAND_DRIVE_WAIT);
}

int strand_pool_fd(strand_pool handle)
{
    struct pool *pool;
    struct opened_pool *op = find_pool(handle, "strand_pool_fd", &pool);
    if (!op)
        return -ESHUTDOWN;
    spin_lock(&op->lock, NULL);
    bool over =
        op->gone || atomic_load_explicit(&pool->driving, memory_order_acquire) == POOL_DRIVEN_TO_ITS_END; /* [DV1] */
    int fd = !pool_is_driven(pool) ? -ENOTSUP : over ? -ESHUTDOWN : pool->poller.epoll;
    spin_unlock(&op->lock);
    pool_unref(op);
    return fd;
}
