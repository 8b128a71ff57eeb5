/*
 * A pool's timers: one heap, the least instant first. Page: docs/protocols/timers.md.
 *
 * PARTIES   strands that start and stop timers; the pool's trimming rounds, with one timer; the thread that fires: the
 *           seeker, or a busy thread that has the seeker's role for one pass.
 * STATE     timer.node.index: the index in the heap; HEAP_NOWHERE if the timer is not pending. timers.next: the least
 *           instant, or ARCH_FOREVER if no timer is pending; written under the lock, and read without it to see whether
 *           a timer may be due.
 *             nowhere --timer_start--> pending --timers_fire: fire() under the lock--> nowhere
 *                                      pending --timer_stop, true--> nowhere
 * OWNERSHIP a pending timer belongs to the heap. A timer never lies on a stack.
 * INVARIANTS [TM1] a timer fires under the lock: when timer_stop returns, the timer does not fire any more and is not
 *           firing now, so its memory may be reused. That keeps [W2] for sleeps. A timer never fires before its
 *           instant. fire() may claim a wait or raise a source; it runs no strand, takes no other lock, and does not
 *           touch the heap. The firing thread releases the lock, and then makes the strand that fire() has returned
 *           runnable.
 * ORDERING  the lock. A thread that has started the earliest timer releases the lock, and then calls pool_retime [K1].
 * PROGRESS  at most FIRE_BATCH timers fire in one go under the lock. An operation never reads the clock to see whether
 *           its deadline has passed: the timer sets the source's flag, so a stream that is always ready sees it too.
 * NOT DONE  a heap for each thread: the seeker needs the least instant of all heaps. A binary heap: it has twice as
 *           many levels, and the four children that are compared here share a cache line. A timer wheel: starting and
 *           stopping are cheaper, but finding the next instant to wait for is not. Firing outside of the lock:
 *           timer_stop would have to wait for a timer that is firing.
 * TESTED BY tests/spec/sleep.c, tests/spec/deadline.c, tests/stress/deadline.c.
 */
#ifndef SCHED_TIMERS_H
#define SCHED_TIMERS_H

#include "../base/atomic.h"
#include "../base/heap.h"

struct member;
struct pool;
struct thread;

/* Selects the sched_ops.fire function of a timer. */
enum timer_type { TIMER_WAIT, TIMER_DEADLINE, TIMER_TRIM, TIMER_SHUTDOWN, TIMER_TYPES };

struct timer {
    struct heap_node node;
    uint32_t type : 7, excused : 1, index : 24; /* excused: timer_excuse; index: belongs to the layer above */
};

struct timers { /* of a pool */
    struct heap heap;
    _Atomic int64_t next;     /* the least key; also read without the lock */
    _Atomic uint32_t count;   /* how many are pending; also read without the lock */
    _Atomic uint32_t excused; /* how many of those are excused; also read without the lock */
    atomic_flag lock;
};

void timers_open(struct timers *timers);
void timers_close(struct timers *timers);
void timer_init(struct timer *timer, enum timer_type type, uint32_t index);
/* Starts a timer. Wakes a seeker that would sleep beyond `when`. Returns 0 or -ENOMEM. Called on a thread of the
 * pool. */
int timer_start(struct thread *thread, struct pool *pool, struct timer *timer, int64_t when);
/* Moves a timer that has been started, unless it has fired. Returns whether it was pending. Called on a thread of the
 * pool. */
bool timer_move(struct thread *thread, struct pool *pool, struct timer *timer, int64_t when);
/* Stops a timer. Returns whether it was pending. No thread uses the timer after that. Any thread of the sub-process. */
bool timer_stop(struct thread *thread, struct pool *pool, struct timer *timer);
/* Sets whether a pending timer is excused; firing clears the mark. An excused timer would do nothing but end a wait for
 * quiescence, so the check for quiescence does not count it (quiescent.h). Any thread of the sub-process. */
void timer_excuse(struct thread *thread, struct pool *pool, struct timer *timer, bool excused);
/* Returns how many timers are due at `now` and have not fired, up to a few hundred. In a sub-process of one thread,
 * which keeps no lock, returns 1 if any is. Called from outside of the pool. */
uint32_t timers_due(struct thread *outside, struct pool *pool, int64_t now);
/* Calls see(timer, when, arg) for the next pending timers, at most `most`, under their lock. Returns how many are
 * pending. Diagnostics only. In a sub-process of one thread, that thread is the caller, or is held. */
uint32_t timers_see(struct thread *thread, struct pool *pool, uint32_t most,
                    void (*see)(const struct timer *timer, int64_t when, void *arg), void *arg);
/* Fires the timers that are due at `now`, and makes runnable the strands that they wake. Returns how many fired. */
int timers_fire(struct thread *thread, struct pool *pool, int64_t now);

OWN_INLINE int64_t timers_next(struct timers *timers)
{
    return atomic_load_explicit(&timers->next, memory_order_relaxed);
}

#endif
