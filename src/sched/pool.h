/*
 * A pool: opening, running and closing it.
 *
 * src/sched has two halves. The first half decides which fibre runs next: runq, inbox, stealing, global, dedicated,
 * pinned, balance, shared_mail. It wakes, parks and stops no thread: the callers of its functions do that. The second
 * half is the threads: pool, pool_uring, records, thread, thread_lifetime, resize, closing, switch, stack_ops,
 * shared_fibre, shared_open, trim, idle, seek, kick, hold, quiescent, deliver, events, posts, polled, timers, platform,
 * platform_sleep. The first half calls no function of the second but those of platform, to relax in a spin loop
 * (tools/check-calls.py).
 */
#ifndef SCHED_POOL_H
#define SCHED_POOL_H

#include "fibre.h"
#include "scheduler.h"
#include "subprocess.h"
#include "thread_type.h"

struct pool_plan {
    const struct scheduler *scheduler;
    const void *custom; /* for the scheduler: pool.custom */
    int threads;
    int64_t spin_ns;
    enum balance balance;
    const int *cpus; /* as pool.cpus; the array lives as long as the pool */
    int cpus_count;
};

/* Opens the first pool of a sub-process. Returns 0 or a negated errno code. */
int pool_open_first(struct subprocess *sub, const struct pool_plan *plan);
/* Starts the threads of the first pool, then its first fibre, and returns when all have ended. adopt: the calling
 * thread is thread 0 of the pool until the pool is stopped; else it sleeps. Returns 0 or a negated errno code. */
int pool_run(struct pool *pool, struct fibre *root, bool adopt);
/* Opens a further pool and starts its threads, unless it is driven. From the call on, the caller's sub-process counts
 * as one of several threads. Returns 0 or a negated errno code; after an error nothing is left. */
int pool_make(struct thread *thread, const struct pool_plan *plan, struct pool **out);
/* Ends a pool that pool_make has made and that has no handle: stops its threads, waits for them on the calling thread,
 * and closes the pool. */
void pool_unmake(struct thread *thread, struct pool *pool);
/* Closes a pool whose threads have gone, and frees what it owns beside its record. */
void pool_close(struct pool *pool);
/* Frees all records, at the end of the sub-process. */
void pools_free(struct subprocess *sub);

OWN_INLINE bool pool_stops(struct pool *pool)
{
    return atomic_load_explicit(&pool->stop, memory_order_acquire) != 0; /* [K7] */
}

OWN_INLINE int pool_count(const struct pool *pool)
{
    return atomic_load_explicit(&pool->count, memory_order_acquire); /* [PB1] */
}

OWN_INLINE enum thread_life thread_life(const struct thread *thread)
{
    return (enum thread_life)atomic_load_explicit(&thread->life, memory_order_seq_cst); /* [Z1] */
}

/* Returns whether plain threads drive the pool, by pool_drive. */
OWN_INLINE bool pool_is_driven(const struct pool *pool)
{
    return pool->scheduler == &scheduler_current && !pool->sub->platform && pool != &pool->sub->pool;
}

#endif
