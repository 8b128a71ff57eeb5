/*
 * The strands that live on a pool, and the end of a closing pool that has none left. Protocol: docs/protocols/pools.md.
 */
#ifndef SCHED_CLOSING_H
#define SCHED_CLOSING_H

#include "subprocess.h"
#include "thread_type.h"

/* Begins to close a pool, whose strands the caller ends next. After the last strand the threads end, and the last
 * thread calls gone(pool), in no strand. From now on pool_arrive counts no strand in. Full barrier. */
void pool_close_begin(struct thread *thread, struct pool *pool, void (*gone)(struct pool *pool));
/* Returns how many strands live on the pool. The number is an estimate if strands come and go during the call; 0 was
 * exact at one moment of the call. */
uint64_t pool_live(struct pool *pool);
/* Stops a closing pool that has no strand left. Called where a pool may become empty without the end of a strand. */
void pool_close_check(struct thread *thread, struct pool *pool);
/* The slow path of pool_record_end. */
void pool_record_end_(struct thread *thread);
/* Counts in a strand that a thread of another pool is about to spawn onto the pool. Returns false if the pool is
 * closing. If the strand is not spawned after all, pool_turn_back takes the count back. */
bool pool_arrive(struct thread *thread, struct pool *pool);
void pool_turn_back(struct thread *thread, struct pool *pool);

/* Stops the thread's pool if that is closing and empty. Called when a strand of the pool has ended and was counted. */
OWN_INLINE void pool_record_end(struct thread *thread)
{
    if (UNLIKELY(slow_flags_has(&thread->slow_switch, SWITCH_CHECK)))
        pool_record_end_(thread);
}

#endif
