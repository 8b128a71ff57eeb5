/*
 * Waking a pool's threads: the seeker in the poller, or a sleeper, which gets the role. The protocol block is in
 * idle.h.
 */
#ifndef SCHED_KICK_H
#define SCHED_KICK_H

#include "subprocess.h"
#include "thread_type.h"

/* Sets pool->stop, and wakes all threads of the pool. */
void pool_stop(struct thread *thread, struct pool *pool);

/* Has post->run called soon on a thread of the pool. Any thread of the process may call it, also in a signal handler:
 * it allocates no memory, waits for no thread, and leaves errno alone. Full barrier. */
void pool_post(struct pool *pool, struct post *post);
/* Wakes a seeker that would sleep longer than until `when`. Called when the earliest timer has become earlier. A seeker
 * that has planned for a timer that was stopped since wakes at that timer's instant. */
void pool_retime(struct thread *thread, struct pool *pool, int64_t when);

/* Wakes the parked seeker, or, if no thread has the role, a sleeper, which gets it. thread: the caller's, or NULL. */
void pool_kick_(struct thread *thread, struct pool *pool);
/* Does what `kick_pending` asks for. Called by the thread that has released the pool's lock. */
void pool_take_pending_kick_(struct pool *pool);
/* Under the lock: the role is free; give it to a sleeper, which is returned; the caller wakes it after the lock. */
struct thread *pool_give_role(struct pool *pool);
/* NULL: nobody. */
void pool_wake_heir(struct thread *by, struct thread *heir);
/* Waits until no thread kicks the poller any more. The pool's threads have ended. */
void pool_await_kickers(struct pool *pool);
/* Wakes `sleeper` if it sleeps: it has work that no other thread may do. The caller has published that work and passed
 * a full barrier. */
void pool_rouse(struct thread *by, struct thread *sleeper);

/* Orders a push before the load of `kick`: the thread that sets kick has to see the push. With membarrier that thread
 * alone pays [K1]. */
OWN_INLINE void pool_fence(const struct thread *thread)
{
    if (UNLIKELY(!arch_membarrier_works) && thread->concurrent)
        atomic_thread_fence(memory_order_seq_cst); /* [K1] */
}

/* Whether a thread waits for work. Called when a queue that other threads may take from has one more fibre. The caller
 * then calls pool_kick_. */
OWN_INLINE bool pool_is_waited_for(const struct thread *thread)
{
    pool_fence(thread);
    return UNLIKELY(atomic_load_explicit(&thread->pool->kick, memory_order_relaxed) & (KICK_PUSH | KICK_SLEEPER));
}

/* Wakes a thread, if one waits for work. Called as pool_is_waited_for. */
OWN_INLINE void pool_notify(struct thread *thread)
{
    if (pool_is_waited_for(thread))
        pool_kick_(thread, thread->pool);
}

#endif
