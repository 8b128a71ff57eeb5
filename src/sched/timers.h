/*
 * A pool's timers: one heap, the least instant first. Page: docs/protocols/timers.md.
 *
 * PARTIES   strands that start and stop timers; the pool's trimming rounds, with one timer; the thread that fires: the
 *           seeker, or a busy thread that has its role for one pass.
 * STATE     timer.node.place: the index in the heap, or HEAP_NOWHERE: not pending. timers.next: the least instant, or
 *           ARCH_FOREVER; written under the lock, read without it to decide whether to look at all.
 *             nowhere --timer_start--> pending --timers_fire: fire() under the lock--> nowhere
 *                                      pending --timer_stop, true--> nowhere
 * OWNERSHIP a pending timer belongs to the heap. A timer never lies on a stack.
 * INVARIANTS [TM1] a timer fires under the lock: when timer_stop returns, the timer does not fire any more and is not
 *           firing now, so its memory may be reused. That keeps [W2] for sleeps. A timer never fires before its
 *           instant. fire() may claim a wait or raise a source; it runs nothing, takes no other lock, and does not
 *           touch the heap. The strand that it returns is made runnable after the lock is released.
 * ORDERING  the lock. A thread whose timer is the earliest calls pool_retime after the lock [K1].
 * PROGRESS  at most FIRE_BATCH timers fire in one go under the lock. An operation never reads the clock to see whether
 *           its deadline has passed: the timer sets the source's flag, so a stream that is always ready sees it too.
 * NOT DONE  a heap for each thread: the least instant of all has to be known to the seeker. A binary heap: twice as
 *           many levels, and the four children that are compared here share a cache line. A timer wheel: starting and
 *           stopping are cheaper, finding the next instant to wait for is not. Firing outside of the lock: timer_stop
 *           would have to wait for a timer that is firing.
 * TESTED BY tests/spec/sleep.c, tests/spec/deadline.c, tests/stress/deadline.c.
 */
#ifndef SCHED_TIMERS_H
#define SCHED_TIMERS_H

#include "../base/atomic.h"
#include "../base/heap.h"

struct member;
struct pool;
struct thread;

/* What the time is waited for with: sched_ops.fire. */
enum timer_kind { TIMER_WAIT, TIMER_DEADLINE, TIMER_TRIM, TIMER_SHUTDOWN, TIMER_KINDS };

struct timer {
    struct heap_node node;
    uint32_t kind : 7, excused : 1, index : 24; /* timer_excuse; the index is the layer's above */
};

struct timers { /* a pool's */
    struct heap heap;
    _Atomic int64_t next;     /* the least key: read without the lock */
    _Atomic uint32_t count;   /* how many are pending: the same */
    _Atomic uint32_t excused; /* of them: timer_excuse */
    atomic_flag lock;
};

void timers_open(struct timers *timers);
void timers_close(struct timers *timers);
void timer_init(struct timer *timer, enum timer_kind kind, uint32_t index);
/* From a thread of the pool. Returns 0 or -ENOMEM. Wakes the seeker if it would sleep too long. */
int timer_start(struct thread *thread, struct pool *pool, struct timer *timer, int64_t when);
/* Moves a timer that has been started, unless it has fired. From a thread of the pool. Returns whether it has not. */
bool timer_move(struct thread *thread, struct pool *pool, struct timer *timer, int64_t when);
/* Whether it was still to come. After it, the timer is not in use by anybody. Any thread of the sub-process. */
bool timer_stop(struct thread *thread, struct pool *pool, struct timer *timer);
/* One that is pending would do nothing but end a wait for quiescence, and so it does not count, until it fires
 * (quiescent.h); or counts again. Any thread of the sub-process. */
void timer_excuse(struct thread *thread, struct pool *pool, struct timer *timer, bool excused);
/* How many should have fired at `now`, and have not, up to a few hundred; in a sub-process of one thread, which keeps
 * no lock, one stands for all. From outside of the pool. */
uint32_t timers_due(struct thread *outside, struct pool *pool, int64_t now);
/* The next of those that are pending, at most `most`: for each, under their lock, see(timer, when, arg). Diagnostics
 * only; in a sub-process of one thread, on that one, or while it stands still. Returns how many are pending. */
uint32_t timers_see(struct thread *thread, struct pool *pool, uint32_t most,
                    void (*see)(const struct timer *timer, int64_t when, void *arg), void *arg);
/* Fire what is due at `now` and make runnable what that wakes, from this thread. Returns how many fired. */
int timers_fire(struct thread *thread, struct pool *pool, int64_t now);

OWN_INLINE int64_t timers_next(struct timers *timers)
{
    return atomic_load_explicit(&timers->next, memory_order_relaxed);
}

#endif
