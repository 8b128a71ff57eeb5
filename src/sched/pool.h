/*
 * A pool: threads, the role of the seeker, delivery of what became runnable. Protocol: docs/protocols/seeker.md.
 */
#ifndef SCHED_POOL_H
#define SCHED_POOL_H

#include "sched.h"

/* Make `count` threads, the first of which is the caller's if `caller` (it then has to call pool_run). Returns 0 or a
 * negated errno code, and then nothing is left. */
int pool_open(struct subprocess *sub, struct pool *pool, const struct scheduler *scheduler, int count, int64_t spin_ns);
/* Start the threads, then root, and, if adopt, be the first of them until subprocess.stop. Else sleep until they are
 * done. */
int pool_run(struct pool *pool, struct fibre *root, bool adopt);
void pool_close(struct pool *pool);
/* Let everybody see subprocess.stop. */
void pool_stop(struct thread *thread, struct pool *pool);

/* A thread without anything to run: find something, or sleep. NULL: the pool is to stop. */
struct fibre *pool_find_work(struct thread *thread);
/* A busy thread takes the role, if free, for one look at timers and posts. */
void pool_look(struct thread *thread);
/* Make a strand runnable that was woken from outside of any, on the thread that ran it last if that is busy. The
 * caller has the role of the seeker. */
void pool_deliver(struct thread *thread, struct member *member);
void pool_deliver_fibre(struct thread *thread, struct fibre *fibre);
/* Have post->run called on a thread of the pool, soon. Any thread of the process. Full barrier. */
void pool_post(struct pool *pool, struct post *post);
/* The earliest timer is earlier than it was. Wakes a seeker that would sleep longer; one that was told of a timer which
 * was stopped since does not sleep so long. */
void pool_retime(struct thread *thread, struct pool *pool, int64_t when);

/* Hold all other threads of the pool still at their next tick, at most until the deadline; returns how many could not
 * be held. pool_release lets them go on. One at a time: the caller excludes others. */
int pool_hold(struct thread *thread, struct pool *pool, int64_t deadline);
void pool_release(struct thread *thread, struct pool *pool);
void pool_stand_still(struct thread *thread);
/* On the thread: it sleeps, or ends, and counts as held until it moves again. */
void pool_rest(struct thread *thread);
void pool_move(struct thread *thread);

void pool_kick_(struct thread *thread, struct pool *pool);

/* Before a look at `kick`: what was made for others to find has to be seen by whoever sets it. With membarrier that one
 * pays [K1]. */
OWN_INLINE void pool_fence(const struct thread *thread)
{
    if (UNLIKELY(!arch_membarrier_works) && thread->shared)
        atomic_thread_fence(memory_order_seq_cst);
}

/* There is one more fibre in a queue that others can take from. */
OWN_INLINE void pool_notify(struct thread *thread)
{
    struct pool *pool = thread->pool;
    pool_fence(thread);
    if (UNLIKELY(atomic_load_explicit(&pool->kick, memory_order_relaxed) & (KICK_PUSH | KICK_SLEEPER)))
        pool_kick_(thread, pool);
}

#endif
