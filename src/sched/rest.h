/*
 * Shared fibres that rest, on which no strand has run for a while, give back the memory that they do not need, without
 * a call of the user's; and so do free stacks that no thread needs. The protocol is part of that in shared_fibre.h
 * ([SF7]).
 */
#ifndef SCHED_REST_H
#define SCHED_REST_H

#include "../stack/stack.h"
#include "shared_fibre.h"
#include "subprocess.h"

void rest_open(struct pool *pool);
/* Its threads have gone: what it has noted is noted no more. */
void rest_close(struct pool *pool);
/* sched_ops.fire. */
struct member *rest_comes(struct timer *timer);

void rest_note_(struct thread *thread, struct shared_fibre *shared);
/* The holder: somebody is about to run on it. */
OWN_INLINE void rest_note(struct thread *thread, struct shared_fibre *shared)
{
    if (UNLIKELY(atomic_load_explicit(&shared->used, memory_order_relaxed) !=
                 atomic_load_explicit(&thread->pool->era, memory_order_relaxed)))
        rest_note_(thread, shared);
}

void rest_note_stacks_(struct thread *thread, struct pool *pool);
/* Called by the seeker before it looks at the timers: starts the rounds if many stacks are spare. */
OWN_INLINE void rest_note_stacks(struct thread *thread, struct pool *pool)
{
    if (UNLIKELY(stacks_are_many(&pool->sub->memory.stacks)))
        rest_note_stacks_(thread, pool);
}

/* Nobody knows it any more. */
void rest_forget(struct thread *thread, struct shared_fibre *shared);

void rest_look_(struct thread *thread, struct pool *pool);
/* Called by the seeker after it has fired timers: goes on with a round if its time has come. A few system calls for
 * each of some fibres. */
OWN_INLINE void rest_look(struct thread *thread, struct pool *pool)
{
    if (UNLIKELY(pool->rests.due))
        rest_look_(thread, pool);
}

#endif
