/*
 * Whether a pool, or all of a sub-process, is stalled or quiescent. Page: docs/protocols/quiescence.md.
 *
 * PARTIES   the seeker of each pool that is about to wait: it decides [S-64]; threads that become busy, or take work
 *           out of a queue; strands and threads that make work.
 * STATE     per pool, under its lock: busy, the number of busy threads; parked, the seeker waits, or is about to, and
 *           holds nothing; stirs, which counts how often a thread has become busy, or taken the role, or a parked
 *           seeker was woken. Per sub-process: quiescent_lock, under which one seeker at a time decides.
 * PROTOCOL  the seeker reads the state twice, and checks all queues in between. The pool is quiescent if no thread is
 *           busy, the seeker is parked, and `stirs` is the same in both readings. A thread counts as busy, and a seeker
 *           as not parked, before it takes anything out of a queue and until it has put back, or run, what it took. So
 *           what the check did not find was in no thread's hands either. A parked seeker hands out the events of
 *           descriptors: a strand that an event wakes counts as waiting for the outside until it runs.
 * INVARIANTS [Q1] if both readings are equal, and the check found nothing, there was a moment between them when no
 *           strand ran and none was runnable, in all pools that were read.
 *           [Q2] after the last stir a seeker decides. A seeker that parks does so. The last thread to become idle
 *           while the seeker is parked wakes the seeker, if that would find anything.
 *           [Q3] a strand that a decision claims is in a queue, or its seeker is not parked, before the next decision
 *           begins.
 *           [Q4] a strand that waits for a pool that ends is woken: it registers, then checks whether the pool has
 *           ended. The closer first marks the pool as ended, then looks for waiters.
 *           [Q5] a thread that may act on the run from outside is counted before the check that decides: one that has
 *           gone has acted before it.
 *           [Q6] a wait for the outside that counts as ended (outside_ended) counts as begun (outside_begun).
 * ORDERING  the pools' locks order all of it but the queues and numbers, which are read between two of them: what a
 *           thread put into a queue, or counted, it did before it became idle under the lock. `outside_ended` is read
 *           before `outside_begun`; both are stored by release and loaded by acquire [Q6]. A pool that has ended has no
 *           lock that its threads would release: its state is stored by release and loaded by acquire [Q1]. Posts come
 *           from anywhere, at any time: one that comes after the check comes after that moment. quiescence_waiters and
 *           pool.state are sequentially consistent: the waiter's increment and registration, then its load of state;
 *           the closer's store of state, then its load of quiescence_waiters [Q4]. [Q7] A strand that waits for
 *           quiescence or else for a flag publishes itself in a slot, then loads the flag; the thread that sets the
 *           flag stores it, then loads the slot; seq_cst: one of them sees the other. A thread that becomes idle
 *           releases the lock, passes a full barrier, and then checks whether others wait for the outside [Q2].
 * NOT DONE  one counter of busy threads for all pools: two more atomic operations whenever a thread wakes up. A
 *           decision by the last thread to become idle: it would have to deliver the strands that it claims, without
 *           the seeker's role.
 * TESTED BY tests/models/quiescence.pml, tests/models/outside.pml, tests/spec/quiescence.c, tests/spec/deadlock.c,
 *           tests/sim/quiescence.c.
 */
#ifndef SCHED_QUIESCENT_H
#define SCHED_QUIESCENT_H

#include "subprocess.h"
#include "thread_type.h"

/* The state of a pool, or of all pools, at some moment during the call. NONE: a thread may have been busy, or a strand
 * was runnable. STALLED: neither, but a timer was pending or a strand waited for an external event. QUIESCENT: none of
 * these. UNKNOWN: not scanned yet. */
enum lull { LULL_NONE, LULL_STALLED, LULL_QUIESCENT, LULL_UNKNOWN };

/* Scan a pool, or all pools of the sub-process. The caller has quiescent_lock. It may be any thread for quiescent_pool,
 * and a seeker that is about to wait for quiescent_run. */
enum lull quiescent_pool(struct thread *thread, struct pool *pool);
enum lull quiescent_run(struct thread *thread);
/* How many times in a row sched_ops.quiescent was called: the calls come 1.4 s and 5.5 s after the first one. */
enum { QUIESCENT_ASKED_LONG = 6, QUIESCENT_ASKED_MOST = 7 };

/* Records that the calling seeker is going to have work, which other threads that decide must notice. Under
 * quiescent_lock. */
void quiescent_stir(struct thread *thread);

/* Returns whether there may be something to decide [Q2]. The calling thread has released its pool's lock, idle or about
 * to wait as the seeker. Costs a few loads and no lock, because most waits are for external events. */
bool quiescent_is_near(struct pool *pool);

/* Parts of subprocess.quiescence_waiters. VERDICT: the run acts when all of it is quiescent. WAITER: added for each
 * strand that waits for quiescence. */
enum { QUIESCENT_VERDICT = 1, QUIESCENT_WAITER = 2 };

OWN_INLINE bool quiescent_is_awaited(struct subprocess *sub)
{
    return UNLIKELY(atomic_load_explicit(&sub->quiescence_waiters, memory_order_seq_cst) != 0); /* [Q2] [Q4] */
}

/* quiescent_outside_begin: the current strand begins an external wait, such as for a descriptor or a plain thread.
 * quiescent_outside_end: it has ended one, possibly on another thread. */
OWN_INLINE void quiescent_outside_begin(struct thread *thread)
{
    atomic_store_explicit(&thread->counts.outside_begun,
                          atomic_load_explicit(&thread->counts.outside_begun, memory_order_relaxed) + 1,
                          memory_order_release); /* [Q6] */
}

OWN_INLINE void quiescent_outside_end(struct thread *thread)
{
    atomic_store_explicit(&thread->counts.outside_ended,
                          atomic_load_explicit(&thread->counts.outside_ended, memory_order_relaxed) + 1,
                          memory_order_release); /* [Q6] */
}

#endif
