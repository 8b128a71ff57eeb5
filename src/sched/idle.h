/*
 * The states of a pool's threads, and the role of the seeker. The page docs/protocols/seeker.md has the diagram. The
 * transitions are in idle.c, the wake-ups in kick.c. The search that the seeker makes is in seek.c: it calls these
 * transitions and changes no state itself.
 *
 * PARTIES   the threads of a pool; pushers (busy threads of the pool); posters and threads that start a timer.
 * STATE     per thread: busy, idle, polling. Per pool, under its lock: the seeker, the sleepers, how many are busy,
 *           whether the seeker is parked. `kick` mirrors for the other parties, which read it without the lock,
 *           whether a thread has to be woken. `stirs` counts transitions under the lock: the check for quiescence
 *           reads it twice, and equal values mean that no thread has moved in between (quiescent.h).
 *
 *             busy --thread_to_idle--> idle --thread_to_polling--> polling --thread_to_busy--> busy
 *             busy <--thread_from_idle-- idle (pinned work, or an order to end)
 *                                      idle --thread_to_asleep--> (asleep, still idle) --pool_give_role--> polling
 *                                      (asleep) --its time is over, or pool_rouse--> idle
 *                                                                 polling --pool_park--> (parked) --kicked--> polling
 *
 * INVARIANTS [K1] if work is queued and a thread is not busy, then a thread that is awake is going to search, a wake-up
 *           is on its way, or a thread will wake at a set time (`futile`). A fibre in a slot is work only when it is
 *           stale ([K3], in the block of seek.c). [K2] at most one seeker. [K4] a thread sleeps without a time limit
 *           only while another thread serves timers, descriptors and slots: a polling thread, or a sleeper with a time
 *           limit. [K5] a post waits for no lock: the poster may be the handler of a signal, on the very thread that
 *           holds it. The poster sets `kick_pending`, and the thread that releases the lock wakes a thread for it.
 *           [K6] a thread that wakes the seeker out of the poller does so before the poller is closed. The waker is
 *           counted under the lock (kickers), and the thread that closes the pool waits until the count is 0. The
 *           seeker itself is no protection: it may wake up by itself meanwhile and run the pool's last strand, after
 *           which its thread ends and the pool is closed. [K7] a thread of a stopped pool does not sleep: it finds
 *           `stop`, or is woken.
 * ORDERING  Pairings: each line is "one side / the other side: what follows".
 *           - The seeker before it waits, and a thread that gives the role up while others sleep: store kick, barrier,
 *             check for work / a pusher: push, load kick: the check sees the push, or the pusher sees the kick [K1].
 *             The barrier is one that all running threads pass too (membarrier), so the pusher needs no fence; without
 *             membarrier both sides have a fence.
 *           - The same / a poster: add the post, which is a full barrier, load kick: likewise [K1].
 *           - A poster: store kick_pending, full barrier, try the lock / the holder of the lock: release it, full
 *             barrier, load kick_pending: one of them wakes a thread [K5].
 *           - The seeker: store `until`, store kick, barrier, load the time of the next timer / a thread that starts a
 *             timer: store that time, barrier, load kick, load `until`: the seeker wakes by that time, or the thread
 *             kicks it [K1].
 *           - The stopping thread: store `stop` (release), take the lock to wake the threads / a thread about to wait:
 *             take the lock, load `stop` (acquire): a thread that is not woken finds it [K7].
 *           - A waker: wake the seeker, decrement kickers (release) / the closing thread: load kickers (acquire), close
 *             the poller: the wake-up comes before the close [K6].
 *           A thread that sleeps without the role needs no barrier: it sleeps only while another thread has the role.
 * PROGRESS  the lock is held for a few instructions; system calls are made outside of it. After a fruitless wake-up or
 *           a poor theft, pushes do not wake the seeker for a back-off period. The period doubles each time (`futile`);
 *           when it ends the seeker searches again. With nothing to do no thread wakes up.
 * NOT DONE  a wake-up for every push: it costs the pusher a system call and mostly finds nothing. A thread for timers
 *           and descriptors: every event would pay for a wake-up across threads.
 * TESTED BY tests/models/seeker.pml; tests/models/slot.pml (what lies in slots); tests/models/pinned.pml (the wake-up
 *           of a thread for its pinned strand); tests/models/closing.pml (kicks at a pool that is closed);
 *           tests/models/quiescence.pml (the decisions of a seeker while no thread is busy).
 */
#ifndef SCHED_IDLE_H
#define SCHED_IDLE_H

#include "kick.h"
#include "pinned.h"
#include "thread.h"

/* ---- the transitions: idle.c ------------------------------------------------------------------------------- */

void thread_to_idle(struct thread *thread);
/* Called without the role: the thread has pinned work, or must leave. */
void thread_from_idle(struct thread *thread);
/* Takes the role, if it is free. Returns whether the thread has the role; another thread may have given it the role
 * while it slept. */
bool thread_to_polling(struct thread *thread);
void thread_to_busy(struct thread *thread);
/* Returns true if the thread is now among the sleepers. Returns false if no other thread is polling, the pool stops, or
 * the thread has pinned work or must leave. */
bool thread_to_asleep(struct thread *thread, bool timed);
void thread_from_asleep(struct thread *thread);
/* A busy thread takes the role for one pass over timers and posts, if the role is free; and gives it back. */
bool thread_takes_role(struct thread *thread);
void thread_gives_role(struct thread *thread);
/* The seeker waits in the poller until it is kicked or has something to do; a timer ends the wait only from the instant
 * `nap` on (0: at any time). eager: a push wakes it. rounds: how often it has waited in this search. Returns whether it
 * was kicked. */
bool pool_park(struct thread *thread, struct pool *pool, bool eager, int rounds, int64_t nap);

/* pool_enter counts the thread as busy; pool_leave ends that. */
void pool_enter(struct thread *thread);
void pool_leave(struct thread *thread);
/* pool_settle gives the driven thread the role and marks the pool as parked, then returns; the caller's own loop waits.
 * Returns whether there is something to do already. pool_unsettle makes the thread busy again. */
bool pool_settle(struct thread *thread);
void pool_unsettle(struct thread *thread);
/* Returns whether no thread of the pool is busy, and its seeker waits or is about to. Adds pool->stirs to *stirs. For
 * quiescent.c. */
bool pool_is_still(struct thread *by, struct pool *pool, uint64_t *stirs);

/* After a wake-up that found nothing, pushes don't wake for this long, doubled each time. */
#define FUTILE_NS INT64_C(50000)
enum { FUTILE_MOST = 5 };
/* A wait of the seeker while others are busy: a stale slot is not announced by anybody. */
#define WATCH_FIRST_NS INT64_C(1000000)

/* Work that only this thread can do. */
OWN_INLINE bool thread_has_own(struct thread *thread)
{
    return pinned_inbox_filled(thread) || thread_is_to_go(thread);
}

/* ---- under the pool's lock --------------------------------------------------------------------------------- */

OWN_INLINE void pool_lock(struct thread *thread, struct pool *pool)
{
    spin_lock(&pool->lock, thread);
}

OWN_INLINE void pool_unlock(struct pool *pool)
{
    spin_unlock(&pool->lock);
    atomic_thread_fence(memory_order_seq_cst); /* [K5] */
    if (UNLIKELY(atomic_load_explicit(&pool->kick_pending, memory_order_relaxed)))
        pool_take_pending_kick_(pool);
}

OWN_INLINE struct thread *pool_seeker(struct pool *pool)
{
    return atomic_load_explicit(&pool->seeker, memory_order_relaxed);
}

/* NULL: the role is free. */
OWN_INLINE void pool_set_seeker(struct pool *pool, struct thread *thread)
{
    atomic_store_explicit(&pool->seeker, thread, memory_order_relaxed);
    pool->stirs++;
}

/* The seeker waits no more. */
OWN_INLINE void pool_go_on(struct pool *pool)
{
    pool->parked = false;
    pool->stirs++;
}

/* After every change of what it mirrors. */
OWN_INLINE void pool_show_kick(struct pool *pool)
{
    uint32_t kick = 0;
    if (pool->parked)
        kick = KICK_SEEKER | (pool->eager ? KICK_PUSH : 0);
    else if (!pool_seeker(pool) && !list_empty(&pool->sleepers))
        kick = KICK_SLEEPER;
    atomic_store_explicit(&pool->kick, kick, memory_order_seq_cst); /* [K1] */
}

#endif
