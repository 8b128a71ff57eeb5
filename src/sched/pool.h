/*
 * A pool: threads, the role of the seeker, delivery of what became runnable. Protocol: docs/protocols/seeker.md.
 */
#ifndef SCHED_POOL_H
#define SCHED_POOL_H

#include "fibre.h"
#include "scheduler.h"
#include "subprocess.h"
#include "thread_type.h"

struct pool_plan {
    const struct scheduler *scheduler;
    const void *custom; /* the scheduler's */
    int threads;
    int64_t spin_ns;
    enum balance balance;
    const int *cpus; /* as pool.cpus; lives as long as the pool */
    int cpus_count;
};

/* The first one of a sub-process. Returns 0 or a negated errno code. */
int pool_open_first(struct subprocess *sub, const struct pool_plan *plan);
/* Start its threads, then root, and, if adopt, be the first of them until the pool is stopped. Else sleep until they
 * are done. */
int pool_run(struct pool *pool, struct fibre *root, bool adopt);
/* One more, with its threads running. The caller's sub-process has several threads from now on. Returns 0 or a negated
 * errno code, and then nothing is left. */
int pool_make(struct thread *thread, const struct pool_plan *plan, struct pool **out);
/* For a pool that was made, and has no handle: ends its threads, waits for them on the thread, and closes it. */
void pool_unmake(struct thread *thread, struct pool *pool);
/* The pool closes; the caller ends its strands. After the last strand its threads end, and the last thread calls
 * gone(pool), in no strand. From now on pool_arrive counts no strand in. Full barrier. */
void pool_close_begin(struct thread *thread, struct pool *pool, void (*gone)(struct pool *pool));
/* How many strands live on it, at some moment during the call. An estimate if strands come and go meanwhile. */
uint64_t pool_live(struct pool *pool);
/* Stops a closing pool that has no strand left. Called where that may be so without the end of a strand. */
void pool_close_check(struct thread *thread, struct pool *pool);
void pool_record_end_(struct thread *thread);
/* Counts in a strand that is about to be spawned onto a pool that is not the thread's. False: the pool is closing. If
 * the strand is not spawned after all: pool_turn_back. */
bool pool_arrive(struct thread *thread, struct pool *pool);
void pool_turn_back(struct thread *thread, struct pool *pool);
/* Frees what is left of a pool whose threads have gone. */
void pool_close(struct pool *pool);
/* Keep a pool's record from serving another pool. Its handle does, from pool_make until the pool is closed; its shared
 * fibres and the runners of actors may do so for longer. Any thread of the run. */
void pool_record_ref(struct pool *pool);
void pool_record_unref(struct thread *thread, struct pool *pool);
/* At the end of the sub-process, all records. */
void pools_free(struct subprocess *sub);
/* Sets pool->stop, and wakes all threads of the pool. */
void pool_stop(struct thread *thread, struct pool *pool);
/* The caller is the only thread of its sub-process; there are going to be more. */
void subprocess_share(struct thread *thread);

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

/* A strand of the thread's pool has ended, and was counted. */
OWN_INLINE void pool_record_end(struct thread *thread)
{
    if (UNLIKELY(slow_flags_has(&thread->slow_switch, SWITCH_CHECK)))
        pool_record_end_(thread);
}

/* All threads' records of a sub-process, whatever their lives, those included that are made meanwhile or not. */
struct thread *thread_first(struct subprocess *sub);
struct thread *thread_after(struct thread *thread);

/* The caller of the next four keeps others from changing the pool's size (resize.c), or is alone with the pool. Make
 * records until there are `count`; start a thread of the system that lives in one, or wait until it has ended. */
int pool_make_threads(struct pool *pool, int count);
int pool_start_thread(struct pool *pool, int index);
void pool_join_thread(struct thread *thread);
void pool_join_threads(struct pool *pool, int first);
/* It counts as busy, or no more. */
void pool_enter(struct thread *thread);
void pool_leave(struct thread *thread);

/* A pool whose thread is somebody else's (scheduler "current", not of a run's beginning): run what is ready, and, if it
 * waits, what becomes ready, until that instant, on the calling plain thread, which is always the same. Returns 1; 0:
 * the pool has ended; -EPERM: by another thread than before. */
int pool_drive(struct pool *pool, int64_t until, bool waits);
OWN_INLINE bool pool_is_driven(const struct pool *pool)
{
    return pool->scheduler == &scheduler_current && !pool->sub->platform && pool != &pool->sub->pool;
}
/* Its thread counts as a seeker that waits, without waiting; true: there is something for it already. And back:
 * it is busy. */
bool pool_settle(struct thread *thread);
void pool_unsettle(struct thread *thread);
/* For quiescent.c: nobody is busy, and the seeker waits, or is about to. Adds up pool->stirs. */
bool pool_is_still(struct thread *by, struct pool *pool, uint64_t *stirs);

/* A thread without anything to run: find something, or sleep. NULL: the pool is to stop, or the thread to leave. */
struct fibre *pool_find_work(struct thread *thread);
/* A busy thread takes the role, if free, for one pass: timers, posts, and evening out (service.h). */
void pool_pass(struct thread *thread);
/* Make a strand runnable that was woken from outside of any, on the thread that ran it last if that is busy. The
 * caller has the role of the seeker. */
void pool_deliver(struct thread *thread, struct member *member);
void pool_deliver_fibre(struct thread *thread, struct fibre *fibre);
/* Make a fibre runnable that is of another pool than the thread. NULL: the caller is no thread of the sub-process. */
void pool_send(struct thread *thread, struct fibre *fibre);
/* Make a pinned fibre runnable, and rouse its thread if that sleeps. */
void pool_send_pinned(struct thread *by, struct fibre *fibre);
/* Into the queue of others' fibres of `home`, or of some thread that stays if that goes, or is NULL. The caller wakes
 * somebody. */
void pool_post_fibre(struct pool *pool, struct thread *by, struct thread *home, struct fibre *fibre);
/* What is in the inbox of a thread that has gone, to the one that stays. The caller wakes somebody. */
void pool_pass_on(struct thread *gone);
/* Have post->run called on a thread of the pool, soon. Any thread of the process, in the handler of a signal too: it
 * takes no memory, waits for nobody, and leaves errno alone. Full barrier. */
void pool_post(struct pool *pool, struct post *post);
/* The earliest timer is earlier than it was. Wakes a seeker that would sleep longer. A seeker that has planned for a
 * timer that was stopped since does not sleep that long. */
void pool_retime(struct thread *thread, struct pool *pool, int64_t when);

/* Hold all other threads of the sub-process still at their next tick, at most until the deadline; returns how many
 * could not be held. pool_release lets them go on. One at a time: the caller excludes others. */
int pool_hold(struct thread *thread, struct subprocess *sub, int64_t deadline);
void pool_release(struct thread *thread, struct subprocess *sub);
void pool_stand_still(struct thread *thread);
/* For a thread that is about to be started while others are held: pool_hold and pool_release may have missed it. */
void pool_hold_new(struct thread *thread);
/* On the thread: it sleeps, or ends, and counts as held until it moves again. */
void pool_rest(struct thread *thread);
void pool_move(struct thread *thread);

/* resize.c: so many threads, 1 at least. Superfluous threads go at their next switch; the call does not wait for that.
 * Returns 0, or a negated errno code: -EBUSY: strands are pinned to one of those, and nothing is changed; others: the
 * system gives no more threads. by: the calling strand's thread. */
int pool_resize(struct thread *by, struct pool *pool, int threads);
/* How many there are now, those that are about to go included. */
int pool_threads(struct pool *pool);
/* The thread of that index, for a strand that is pinned to it: the thread stays, until pool_unpin. Returns 0, -ENXIO:
 * there is none; -ESHUTDOWN: the pool is closing, and not the caller's. */
int pool_pin(struct thread *by, struct pool *pool, int index, struct thread **out);
void pool_unpin(struct thread *thread);
/* From the loop of a thread that has SWITCH_LEAVE: whether it has gone. */
bool thread_goes_(struct thread *thread);

void pool_kick_(struct thread *thread, struct pool *pool);
/* Its threads have ended; nobody kicks its poller any more. */
void pool_await_kickers(struct pool *pool);
/* This very thread has something to do that no other may: if it sleeps, it does not. Full barrier before the call. */
void pool_rouse(struct thread *by, struct thread *sleeper);

/* Between a push and a look at `kick`: the thread that sets kick has to see the push. With membarrier that thread pays
 * [K1]. */
OWN_INLINE void pool_fence(const struct thread *thread)
{
    if (UNLIKELY(!arch_membarrier_works) && thread->concurrent)
        atomic_thread_fence(memory_order_seq_cst); /* [K1] */
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
