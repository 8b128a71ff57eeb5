/*
 * Trimming: shared fibres on which no strand has run for a while give back the memory that they do not need, without a
 * call of the user's; and so do free stacks that no thread needs. The protocol is part of that in shared_fibre.h
 * ([SF7]).
 */
#ifndef SCHED_TRIM_H
#define SCHED_TRIM_H

#include "../stack/stack.h"
#include "shared_fibre.h"
#include "subprocess.h"

void trim_open(struct pool *pool);
/* The threads of the pool have gone: forget all fibres that it has recorded. */
void trim_close(struct pool *pool);
/* sched_ops.fire. */
struct member *trim_is_due(struct timer *timer);

void trim_record_(struct thread *thread, struct shared_fibre *shared);
/* The holder: somebody is about to run on it. */
OWN_INLINE void trim_record(struct thread *thread, struct shared_fibre *shared)
{
    if (UNLIKELY(atomic_load_explicit(&shared->used, memory_order_relaxed) !=
                 atomic_load_explicit(&thread->pool->trim_round, memory_order_relaxed)))
        trim_record_(thread, shared);
}

void trim_record_stacks_(struct thread *thread, struct pool *pool);
/* Called by the seeker before it looks at the timers: starts the rounds if many stacks are spare. */
OWN_INLINE void trim_record_stacks(struct thread *thread, struct pool *pool)
{
    if (UNLIKELY(stacks_are_many(&pool->sub->memory.stacks)))
        trim_record_stacks_(thread, pool);
}

/* Nobody knows it any more. */
void trim_forget(struct thread *thread, struct shared_fibre *shared);

void trim_continue_(struct thread *thread, struct pool *pool);
/* Called by the seeker after it has fired timers: goes on with a round if its time has come. A few system calls for
 * each of some fibres. */
OWN_INLINE void trim_continue(struct thread *thread, struct pool *pool)
{
    if (UNLIKELY(pool->trimmer.due))
        trim_continue_(thread, pool);
}

#endif
