/*
 * Trimming: shared fibres on which no strand has run for a while give back the memory that they do not need, without a
 * call of the user's. So do free stacks that no thread needs. The protocol is part of that in shared_fibre.h ([SF7]).
 */
#ifndef SCHED_TRIM_H
#define SCHED_TRIM_H

#include "../stack/stack.h"
#include "shared_fibre.h"
#include "subprocess.h"

void trim_open(struct pool *pool);
/* Forgets all recorded fibres. The threads of the pool have gone. */
void trim_close(struct pool *pool);
/* The sched_ops.fire function of TIMER_TRIM. */
struct member *trim_is_due(struct timer *timer);

void trim_record_(struct thread *thread, struct shared_fibre *shared);
/* Records that the fibre is in use. Called by the holder before a strand runs on it. */
OWN_INLINE void trim_record(struct thread *thread, struct shared_fibre *shared)
{
    if (UNLIKELY(atomic_load_explicit(&shared->used, memory_order_relaxed) !=
                 atomic_load_explicit(&thread->pool->trim_round, memory_order_relaxed)))
        trim_record_(thread, shared);
}

void trim_record_stacks_(struct thread *thread, struct pool *pool);
/* Starts the rounds if many stacks are spare. Called by the seeker before it checks the timers. */
OWN_INLINE void trim_record_stacks(struct thread *thread, struct pool *pool)
{
    if (UNLIKELY(stacks_are_many(&pool->sub->memory.stacks)))
        trim_record_stacks_(thread, pool);
}

/* Removes a fibre from the list. No reference to it is left. */
void trim_forget(struct thread *thread, struct shared_fibre *shared);

void trim_continue_(struct thread *thread, struct pool *pool);
/* Continues a round if its time has come. Makes a few system calls for each of some fibres. Called by the seeker after
 * it has fired timers. */
OWN_INLINE void trim_continue(struct thread *thread, struct pool *pool)
{
    if (UNLIKELY(pool->trimmer.due))
        trim_continue_(thread, pool);
}

#endif
