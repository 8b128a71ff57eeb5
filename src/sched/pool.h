/*
 * A pool: threads, the role of the seeker, the delivery of runnable strands. Protocol: docs/protocols/seeker.md.
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
/* Closes a pool whose threads have gone, and frees what it owns beside its record. */
void pool_close(struct pool *pool);
/* Take and drop a reference that keeps a pool's record from serving another pool. The handle has one from pool_make
 * until the pool is closed; its shared fibres and the runners of actors may have theirs for longer. Any thread of the
 * run. */
void pool_record_ref(struct pool *pool);
void pool_record_unref(struct thread *thread, struct pool *pool);
/* Frees all records, at the end of the sub-process. */
void pools_free(struct subprocess *sub);
/* Sets pool->stop, and wakes all threads of the pool. */
void pool_stop(struct thread *thread, struct pool *pool);
/* Prepares a sub-process for a second thread, unless that was done before. The caller is then its only thread. */
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

/* Stops the thread's pool if that is closing and empty. Called when a strand of the pool has ended and was counted. */
OWN_INLINE void pool_record_end(struct thread *thread)
{
    if (UNLIKELY(slow_flags_has(&thread->slow_switch, SWITCH_CHECK)))
        pool_record_end_(thread);
}

/* Return the first of all threads' records of a sub-process, and the next one, whatever their lives. A walk may miss
 * records that are made meanwhile. */
struct thread *thread_first(struct subprocess *sub);
struct thread *thread_after(struct thread *thread);

/* The caller of the next four keeps other threads from changing the pool's size (resize.c), or is alone with the pool.
 * pool_make_threads makes records until there are `count`. pool_start_thread starts a system thread that lives in a
 * record. The others wait until such threads have ended. */
int pool_make_threads(struct pool *pool, int count);
int pool_start_thread(struct pool *pool, int index);
void pool_join_thread(struct thread *thread);
void pool_join_threads(struct pool *pool, int first);
/* pool_enter counts the thread as busy; pool_leave ends that. */
void pool_enter(struct thread *thread);
void pool_leave(struct thread *thread);

/* Runs the strands of a driven pool on the calling plain thread until `until`; without `waits`, only while some are
 * runnable. Returns 1, 0 if the pool has ended, or -EPERM if another thread drove it before. */
int pool_drive(struct pool *pool, int64_t until, bool waits);
/* Returns whether plain threads drive the pool, by pool_drive. */
OWN_INLINE bool pool_is_driven(const struct pool *pool)
{
    return pool->scheduler == &scheduler_current && !pool->sub->platform && pool != &pool->sub->pool;
}
/* pool_settle makes the thread of a driven pool a seeker that waits, without waiting itself. Returns whether there is
 * something to do already. pool_unsettle makes the thread busy again. */
bool pool_settle(struct thread *thread);
void pool_unsettle(struct thread *thread);
/* Returns whether no thread of the pool is busy, and its seeker waits or is about to. Adds pool->stirs to *stirs. For
 * quiescent.c. */
bool pool_is_still(struct thread *by, struct pool *pool, uint64_t *stirs);

/* Finds a fibre for a thread that has none to run, or sleeps until there is one. Returns NULL if the pool stops, the
 * thread must leave, or its time limit has passed. */
struct fibre *pool_find_work(struct thread *thread);
/* Makes a pass of a busy thread, if the role is free: posts, events, timers, and evening out (service.h). */
void pool_pass(struct thread *thread);
/* Makes runnable a strand that a timer, a post or an event has woken. The thread that ran it last gets it, if that
 * thread is busy and of this pool. The caller has the role of the seeker. */
void pool_deliver(struct thread *thread, struct member *member);
/* As pool_deliver, for a fibre. The mail of a shared fibre has the strand already. */
void pool_deliver_fibre(struct thread *thread, struct fibre *fibre);
/* Makes runnable a fibre of another pool than the thread's. thread: NULL if the caller is no thread of the
 * sub-process. */
void pool_send(struct thread *thread, struct fibre *fibre);
/* Makes a pinned fibre runnable, and rouses its thread if that sleeps. */
void pool_send_pinned(struct thread *by, struct fibre *fibre);
/* Posts a fibre to the inbox of `home`, or of a thread that stays, if `home` is NULL, of another pool, or has gone. The
 * caller must wake a thread. */
void pool_post_fibre(struct pool *pool, struct thread *by, struct thread *home, struct fibre *fibre);
/* Moves the inbox of a thread that has gone to thread 0, which stays. The caller must wake a thread. */
void pool_pass_on(struct thread *gone);
/* Has post->run called soon on a thread of the pool. Any thread of the process may call it, also in a signal handler:
 * it allocates no memory, waits for no thread, and leaves errno alone. Full barrier. */
void pool_post(struct pool *pool, struct post *post);
/* Wakes a seeker that would sleep longer than until `when`. Called when the earliest timer has become earlier. A seeker
 * that has planned for a timer that was stopped since wakes at that timer's instant. */
void pool_retime(struct thread *thread, struct pool *pool, int64_t when);

/* Holds all other threads of the sub-process still at their next tick, until the deadline at most. Returns how many it
 * could not hold. pool_release lets them go on. The caller excludes other holders. */
int pool_hold(struct thread *thread, struct subprocess *sub, int64_t deadline);
void pool_release(struct thread *thread, struct subprocess *sub);
/* Makes the calling thread stand still until hold.asked is cleared. */
void pool_stand_still(struct thread *thread);
/* Holds a thread that is about to start, if others are held: pool_hold and pool_release may have missed it. */
void pool_hold_new(struct thread *thread);
/* pool_mark_parked marks the calling thread as parked or ended: it counts as held until it calls pool_move. */
void pool_mark_parked(struct thread *thread);
void pool_move(struct thread *thread);

/* Changes the number of the pool's threads (resize.c). by: the calling strand's thread; threads: at least 1.
 * Superfluous threads leave at their next switch; the call does not wait for that. Returns 0 or a negated errno code.
 * -EBUSY: strands are pinned to such a thread, and nothing has changed. -ESHUTDOWN: the pool is not open. Others: the
 * system gives no more threads. */
int pool_resize(struct thread *by, struct pool *pool, int threads);
/* Returns how many threads there are, those that are about to leave included. */
int pool_threads(struct pool *pool);
/* Pins a strand to the thread of that index, which stays until pool_unpin. Returns 0; -ENXIO: there is no such thread;
 * -ESHUTDOWN: the pool is closing, and is not the caller's. */
int pool_pin(struct thread *by, struct pool *pool, int index, struct thread **out);
void pool_unpin(struct thread *thread);
/* Ends the life of a thread that has SWITCH_LEAVE, in its loop. Returns whether it has gone; false: it was called
 * back. */
bool thread_goes_(struct thread *thread);

/* Wakes the parked seeker, or, if no thread has the role, a sleeper, which gets it. thread: the caller's, or NULL. */
void pool_kick_(struct thread *thread, struct pool *pool);
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

/* Wakes a thread, if one waits for work. Called when a queue that other threads may take from has one more fibre. */
OWN_INLINE void pool_notify(struct thread *thread)
{
    struct pool *pool = thread->pool;
    pool_fence(thread);
    if (UNLIKELY(atomic_load_explicit(&pool->kick, memory_order_relaxed) & (KICK_PUSH | KICK_SLEEPER)))
        pool_kick_(thread, pool);
}

#endif
