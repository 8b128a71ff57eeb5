/*
 * The scan that decides whether work is left. The protocol block is in quiescent.h.
 */
#include "quiescent.h"

#include "idle.h"
#include "pinned.h"
#include "pool.h"
#include "posts.h"

/* Returns whether no fibre or post is queued. Slots need no check: a thread takes its own slot before it becomes
 * idle. */
static bool is_empty(struct pool *pool)
{
    if (pool->scheduler->work(pool) || posts_any(&pool->posts))
        return false;
    bool driven = pool_is_driven(pool);
    for (int i = 0; i < pool_count(pool); i++)
        if (driven ? pinned_has_work(pool->threads[i]) : pinned_inbox_filled(pool->threads[i]))
            return false;
    return true;
}

/* Returns whether the pool has no pending timer that counts, and no strand that waits for an external event. Both stay
 * as they are while no thread moves. */
static bool awaits_nothing(struct pool *pool)
{
    uint32_t timers = atomic_load_explicit(&pool->timers.count, memory_order_relaxed);
    uint32_t idle = atomic_load_explicit(&pool->timers.excused, memory_order_relaxed) +
                    atomic_load_explicit(&pool->trimmer.armed, memory_order_relaxed);
    uint64_t ended = 0, begun = 0;
    for (int i = 0; i < pool_count(pool); i++)
        ended += atomic_load_explicit(&pool->threads[i]->counts.outside_ended, memory_order_acquire); /* [Q6] */
    for (int i = 0; i < pool_count(pool); i++)
        begun += atomic_load_explicit(&pool->threads[i]->counts.outside_begun, memory_order_acquire); /* [Q6] */
    return timers <= idle && begun == ended;
}

/* Returns whether the record has no running pool. A pool that is being opened needs no check: the thread that opens it
 * is busy. */
static bool is_none(struct pool *pool)
{
    uint32_t state = atomic_load_explicit(&pool->state, memory_order_acquire); /* [Q1] */
    return state == POOL_NONE || state == POOL_CLOSED;
}

static enum lull scan(struct pool *pool)
{
    return !is_empty(pool) ? LULL_NONE : awaits_nothing(pool) ? LULL_QUIESCENT : LULL_STALLED;
}

enum lull quiescent_pool(struct thread *thread, struct pool *pool)
{
    uint64_t before = 0, after = 0;
    if (!pool_is_still(thread, pool, &before))
        return LULL_NONE;
    enum lull lull = scan(pool);
    return pool_is_still(thread, pool, &after) && after == before ? lull : LULL_NONE; /* [Q1] */
}

static struct pool *first_of(struct subprocess *sub)
{
    return atomic_load_explicit(&sub->pools, memory_order_acquire); /* [PB1] */
}

static struct pool *after(struct pool *pool)
{
    return atomic_load_explicit(&pool->older, memory_order_relaxed);
}

static bool all_still(struct thread *thread, uint64_t *stirs)
{
    bool still = true;
    for (struct pool *pool = first_of(thread->sub); pool && still; pool = after(pool))
        still = pool_is_still(thread, pool, stirs) || is_none(pool);
    return still;
}

/* A pool that is being opened needs no check: the thread that opens it is busy. */
enum lull quiescent_run(struct thread *thread)
{
    uint64_t before = 0, now = 0;
    enum lull least = LULL_QUIESCENT;
    if (!all_still(thread, &before))
        return LULL_NONE;
    for (struct pool *pool = first_of(thread->sub); pool; pool = after(pool)) {
        enum lull lull = is_none(pool) ? LULL_QUIESCENT : scan(pool);
        least = lull < least ? lull : least;
    }
    return all_still(thread, &now) && now == before ? least : LULL_NONE;
}

static bool run_awaits_nothing(struct subprocess *sub)
{
    bool nothing = true;
    for (struct pool *pool = first_of(sub); pool && nothing; pool = after(pool))
        nothing = is_none(pool) || awaits_nothing(pool);
    return nothing;
}

bool quiescent_is_near(struct pool *pool)
{
    uint32_t minds = atomic_load_explicit(&pool->sub->quiescence_waiters, memory_order_seq_cst); /* [Q2] [Q4] */
    return (minds >= QUIESCENT_WAITER || run_awaits_nothing(pool->sub)) && is_empty(pool);
}

void quiescent_stir(struct thread *thread)
{
    pool_lock(thread, thread->pool);
    pool_go_on(thread->pool);
    pool_show_kick(thread->pool);
    pool_unlock(thread->pool);
}
