/*
 * The records of pools and threads. They stay until the end of the run, with a system thread in them or not.
 *
 * INVARIANT [RC1] a pool's record serves another pool only after all references to it were dropped.
 * ORDERING  [RC1] the thread that drops the last reference puts the record into a list of free ones, under a lock, and
 *           pool_take_record takes it out under that lock. The list of a sub-process's pools only grows [PB1], and so
 *           does the number of a pool's threads: a thread's record is complete when `count` includes it.
 * NOT DONE  freeing a record before the end of the run: each reader of fibre->home would need a reference.
 * TESTED BY tests/models/closing.pml.
 */
#include "records.h"

#include "pinned.h"
#include "pool.h"
#include "runq.h"
#include "stack_ops.h"

#include "../stack/stack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- threads --------------------------------------------------------------------------------------------- */

static struct thread *make_thread(struct pool *pool, int index)
{
    struct subprocess *sub = pool->sub;
    size_t size = (sub->ops->thread_size + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1);
    struct thread *thread = aligned_alloc(CACHE_LINE, size);
    if (!thread)
        return NULL;
    memset(thread, 0, size);
    thread->pool = pool;
    thread->sub = sub;
    thread->index = index;
    thread->rng.state = sub->seed + (uint64_t)index * UINT64_C(0x9E3779B97F4A7C15);
    atomic_init(&thread->hold.state, HOLD_PARKED); /* until the thread has begun */
    runq_open(&thread->runq);
    pinned_open(&thread->pinned);
    if (sub->ops->thread_open(thread) < 0) {
        free(thread);
        return NULL;
    }
    stack_memory_join(&sub->memory, &thread->stacks);
    return thread;
}

void thread_prepare(struct thread *thread)
{
    struct pool *pool = thread->pool;
    struct subprocess *sub = pool->sub;
    thread->concurrent = sub->concurrent;
    thread->census = sub->census;
    thread->stealing = pool->scheduler == &scheduler_stealing;
    thread->platform = sub->platform;
    thread->slow_pick.own = sub->platform ? PICK_SIM : 0;
    thread->slow_switch.own = 0;
    atomic_store_explicit(&thread->slow_pick.any, 0, memory_order_relaxed);
    atomic_store_explicit(&thread->slow_switch.any, 0, memory_order_seq_cst); /* [GD1] */
    thread->limit = ARCH_FOREVER;
    thread->usual = sub->memory.stacks.usual;
    thread->stacks.kept = sub->memory.most ? 0 : thread->usual;
    thread->stacks.cache.max = stacks_kept_of((uint32_t)atomic_load_explicit(&pool->size, memory_order_relaxed));
    thread->period = thread->ticks = 1;
    thread->state = THREAD_BUSY;
    thread_prepare_canaries(thread);
    atomic_store_explicit(&thread->life, THREAD_HERE, memory_order_seq_cst); /* [Z1] */
}

int pool_make_threads(struct pool *pool, int count)
{
    for (int i = pool_count(pool); i < count; i++) {
        struct thread *thread = make_thread(pool, i);
        if (!thread)
            return -ENOMEM;
        pool->threads[i] = thread;
        atomic_store_explicit(&pool->count, i + 1, memory_order_release); /* [PB1] */
    }
    return 0;
}

void pool_unmake_threads(struct pool *pool)
{
    for (int i = 0; i < pool_count(pool); i++) {
        pool->sub->ops->thread_close(pool->threads[i]);
        free(pool->threads[i]);
    }
    free(pool->threads);
}

struct thread *thread_first(struct subprocess *sub)
{
    struct pool *pool = atomic_load_explicit(&sub->pools, memory_order_acquire); /* [PB1] */
    while (pool && !pool_count(pool))
        pool = atomic_load_explicit(&pool->older, memory_order_relaxed);
    return pool ? pool->threads[0] : NULL;
}

struct thread *thread_after(struct thread *thread)
{
    struct pool *pool = thread->pool;
    if (thread->index + 1 < pool_count(pool))
        return pool->threads[thread->index + 1];
    do
        pool = atomic_load_explicit(&pool->older, memory_order_relaxed);
    while (pool && !pool_count(pool));
    return pool ? pool->threads[0] : NULL;
}

/* ---- pools ----------------------------------------------------------------------------------------------- */

static void share(struct subprocess *sub)
{
    sub->concurrent = true;
    for (int i = 0; i < pool_count(&sub->pool); i++)
        sub->pool.threads[i]->concurrent = true;
}

void subprocess_share(struct thread *thread)
{
    if (!thread->concurrent) /* no other thread runs: the caller is the only one */
        share(thread->sub);
}

void pool_record_ref(struct pool *pool)
{
    atomic_fetch_add_explicit(&pool->record_refs, 1, memory_order_relaxed);
}

/* Returns the list of free records: one is for those with room for one thread, one for the others. */
static struct pool **free_pools(struct subprocess *sub, int room)
{
    return &sub->free_pools[room == 1];
}

void pool_record_unref(struct thread *thread, struct pool *pool)
{
    struct subprocess *sub = pool->sub;
    if (atomic_fetch_sub_explicit(&pool->record_refs, 1, memory_order_acq_rel) != 1) /* [RF1] */
        return;
    struct pool **list = free_pools(sub, pool->room);
    atomic_store_explicit(&pool->state, POOL_NONE, memory_order_release); /* [RC1] */
    spin_lock(&sub->free_lock, thread);
    pool->next_free = *list;
    *list = pool;
    spin_unlock(&sub->free_lock);
}

struct pool *pool_take_record(struct thread *thread, int room)
{
    struct subprocess *sub = thread->sub;
    struct pool **list = free_pools(sub, room);
    spin_lock(&sub->free_lock, thread);
    struct pool *pool = *list;
    if (pool)
        *list = pool->next_free;
    spin_unlock(&sub->free_lock);
    if (pool)
        atomic_store_explicit(&pool->state, POOL_CLOSING, memory_order_relaxed);
    return pool;
}
