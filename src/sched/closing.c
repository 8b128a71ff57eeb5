/*
 * The end of a closing pool that has no strands left. Model: tests/models/closing.pml.
 */
#include "closing.h"

#include "kick.h"
#include "platform.h"
#include "pool.h"

/* The strands that were counted out are read first, then those that were counted in. Neither sum ever falls, and the
 * first never exceeds the second. So if the two are equal, they were equal at a moment between the reads [L1]. */
uint64_t pool_live(struct pool *pool)
{
    uint64_t out = atomic_load_explicit(&pool->refused, memory_order_seq_cst), in = 0; /* [L1] */
    for (int i = 0; i < pool_count(pool); i++)
        out += atomic_load_explicit(&pool->threads[i]->counts.ended, memory_order_acquire) + /* [L1] */
               atomic_load_explicit(&pool->threads[i]->counts.departed, memory_order_acquire);
    for (int i = 0; i < pool_count(pool); i++)
        in += atomic_load_explicit(&pool->threads[i]->counts.spawned, memory_order_acquire); /* [L1] */
    return in + atomic_load_explicit(&pool->arrived, memory_order_seq_cst) - out;            /* [L1] */
}

static bool is_closing(struct pool *pool)
{
    return atomic_load_explicit(&pool->state, memory_order_seq_cst) == POOL_CLOSING; /* [L4] */
}

void pool_close_begin(struct thread *thread, struct pool *pool, void (*gone)(struct pool *pool))
{
    pool->gone = gone;
    arch_san_release(&pool->gone);
    spin_lock(&pool->resizing, thread);
    atomic_store_explicit(&pool->state, POOL_CLOSING, memory_order_seq_cst); /* [L1] [L2] [L4] */
    for (int i = 0; i < pool_count(pool); i++) /* a strand's end then takes the slow path, which reads the state */
        atomic_fetch_or_explicit(&pool->threads[i]->slow_switch.any, SWITCH_CHECK, memory_order_seq_cst); /* [L4] */
    spin_unlock(&pool->resizing);
    if (arch_membarrier_works)
        arch_membarrier(); /* a strand that ended on the fast path was counted out before this [L4] */
    else
        atomic_thread_fence(memory_order_seq_cst); /* [L4] */
}

void pool_close_check(struct thread *thread, struct pool *pool)
{
    if (!is_closing(pool))
        return;
    atomic_thread_fence(memory_order_seq_cst); /* [L4] this thread's counts come before the others' numbers */
    if (!pool_live(pool))
        pool_stop(thread, pool);
}

void pool_record_end_(struct thread *thread)
{
    if (thread->concurrent && !arch_membarrier_works)
        atomic_thread_fence(memory_order_seq_cst); /* [L4] */
    pool_close_check(thread, thread->pool);
}

bool pool_arrive(struct thread *thread, struct pool *pool)
{
    atomic_fetch_add_explicit(&pool->arrived, 1, memory_order_seq_cst);        /* [L1] */
    if (atomic_load_explicit(&pool->state, memory_order_seq_cst) == POOL_OPEN) /* [L1] */
        return true;
    pool_turn_back(thread, pool);
    return false;
}

void pool_turn_back(struct thread *thread, struct pool *pool)
{
    atomic_fetch_add_explicit(&pool->refused, 1, memory_order_seq_cst); /* [L1] */
    pool_close_check(thread, pool);
}
