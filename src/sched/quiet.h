/*
 * Whether a pool, or all of a sub-process, has run out of work. Page: docs/protocols/quiet.md.
 *
 * PARTIES   the seeker of each pool that is about to wait, who decides [S-64]; threads that get busy, or take work out
 *           of a queue; whoever makes work.
 * STATE     per pool, under its lock: busy, how many threads are; parked, the seeker waits, or is about to, and holds
 *           nothing; stirs, which counts how often a thread has got busy, or taken the role, or a parked seeker was
 *           told to go on. Per sub-process: quiet_lock, under which one seeker at a time decides.
 * PROTOCOL  twice the same with a look at all queues in between: nobody is busy, the seeker is parked, and `stirs` is
 *           what it was. A thread is counted as busy, and a seeker not as parked, before it takes anything out of a
 *           queue and until it has put back, or run, what it took; so what the look did not find was in nobody's hands
 *           either. Events of descriptors are handed out by a seeker that is parked: who is woken by one counts as
 *           waiting for the outside until it runs.
 * INVARIANTS [Q1] if both readings are equal, and the look found nothing, there was a moment between them when nobody
 *           ran and nothing was runnable, in all pools that were read. [Q2] after the last stir a seeker decides: one
 *           that parks does, and a thread that is the last one to fall idle while the seeker is parked tells that one,
 *           if it would find anything. [Q3] who is claimed by a decision is in a queue, or its seeker not parked,
 *           before the next decision begins. [Q4] who waits for a pool that ends is told: he can be found, and then
 *           looks whether it is over; who closes it says so, and then looks who waits. [Q5] whoever might act on the
 *           run from outside is counted before the look that decides: one who has gone has acted before it.
 * ORDERING  all of it under the pools' locks but the queues, which are read between two of them: what a thread put into
 *           a queue it did before it fell idle under the lock. Posts come from anywhere, at any time: one that comes
 *           after the look comes after that moment. minds_quiet and pool.state: seq_cst [Q4]. Who falls idle lets go of
 *           the lock, passes a full barrier, and then looks whether others wait for the outside [Q2].
 * NOT DONE  one counter of busy threads for all pools: two more atomic operations whenever a thread wakes up. A
 *           decision by whoever falls idle last: it would have to hand out what it claims without the role.
 * TESTED BY tests/models/quiet.pml, tests/spec/quiet.c, tests/spec/deadlock.c, tests/sim/quiet.c.
 */
#ifndef SCHED_QUIET_H
#define SCHED_QUIET_H

#include "sched.h"

/* Some moment during the call: somebody was busy, or might have been; nobody was, and nobody runnable; nor was there a
 * timer, or a strand that waits for what is outside of the run, to change that. */
enum lull { LULL_NONE, LULL_BLOCKED, LULL_DRY, LULL_UNKNOWN };

/* Under quiet_lock. Of a pool, by any thread; of all, by a seeker that is about to wait. */
enum lull quiet_pool(struct thread *thread, struct pool *pool);
enum lull quiet_run(struct thread *thread);
/* Of sched_ops.quiet: asked so often in a row, which is 1.4 s and 5.5 s after the first time. */
enum { QUIET_ASKED_LONG = 6, QUIET_ASKED_MOST = 7 };

/* By a seeker, under quiet_lock: it is going to have work, so others who decide have to count with it. */
void quiet_stir(struct thread *thread);

/* By a thread that has let go of its pool's lock, idle or to wait as the seeker: whether there might be something to
 * decide [Q2]. A few loads, no lock: most waits are for the outside. */
bool quiet_is_near(struct pool *pool);

/* Of subprocess.minds_quiet: something is to be done when the whole run is dry; one strand more that waits for quiet.
 */
enum { QUIET_VERDICT = 1, QUIET_WAITER = 2 };

OWN_INLINE bool quiet_is_minded(struct subprocess *sub)
{
    return UNLIKELY(atomic_load_explicit(&sub->minds_quiet, memory_order_seq_cst) != 0);
}

/* The strand that runs here is about to wait for something outside of the run: a descriptor, a plain thread. And on
 * whatever thread it goes on: not any more. */
OWN_INLINE void quiet_leave(struct thread *thread)
{
    atomic_store_explicit(&thread->left, atomic_load_explicit(&thread->left, memory_order_relaxed) + 1,
                          memory_order_release);
}

OWN_INLINE void quiet_return(struct thread *thread)
{
    atomic_store_explicit(&thread->returned, atomic_load_explicit(&thread->returned, memory_order_relaxed) + 1,
                          memory_order_release);
}

#endif
