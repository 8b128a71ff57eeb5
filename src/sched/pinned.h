/*
 * Fibres that are pinned to a thread, which alone runs them. They are not in the scheduler's queue, where thieves
 * search. Page: docs/protocols/pinned.md.
 *
 * PARTIES   the thread; posters: threads that make a pinned fibre runnable (by).
 * STATE     ready: the thread's own. inbox: a stack that others push to, and the thread takes whole. PICK_PINNED:
 *           there may be something in either. dozes: the thread sleeps, or is about to.
 * PROTOCOL  the poster: push into the inbox, set PICK_PINNED, then, if dozes is set, pool_rouse. The thread clears
 *           PICK_PINNED, then takes the inbox. Before it sleeps it sets dozes, then looks at the inbox.
 * INVARIANT [P1] something in the inbox: then PICK_PINNED is set, or is about to be, or the thread has cleared it and
 *           has not taken the inbox yet. [P2] something in the inbox, and the thread sleeps: then the poster is about
 *           to rouse it.
 * ORDERING  push and dozes by seq_cst: the thread stores dozes and then loads the inbox, the poster stores to the inbox
 *           and then loads dozes. One of them sees the other [P2]. The thread's clearing of PICK_PINNED is seq_cst as
 *           well: it is over before the thread looks at the inbox [P1].
 * NOT DONE  a pinned fibre in the scheduler's queue, with a mark that thieves leave alone: they would walk past it at
 *           every theft, under the lock.
 * TESTED BY tests/models/pinned.pml.
 */
#ifndef SCHED_PINNED_H
#define SCHED_PINNED_H

#include "platform.h"

void pinned_open(struct pinned *pinned);
/* Makes a pinned fibre runnable. by: the calling thread, or NULL if that is none of the run's. Returns whether the
 * caller must rouse the fibre's thread (pool_rouse). */
bool pinned_ready(struct thread *by, struct fibre *fibre);
/* Removes and returns the next pinned fibre of the thread, or NULL. Called by the thread itself. */
struct fibre *pinned_pick(struct thread *thread);

/* Returns whether the inbox has pinned fibres for the thread. Any thread. */
OWN_INLINE bool pinned_inbox_filled(struct thread *thread)
{
    return atomic_load_explicit(&thread->pinned.inbox, memory_order_seq_cst) != NULL; /* [P2] */
}

/* Also counts pinned fibres that the thread took from its inbox but has not run. Only a driven thread can be idle with
 * such fibres. */
OWN_INLINE bool pinned_has_work(struct thread *thread)
{
    return pinned_inbox_filled(thread) || atomic_load_explicit(&thread->slow_pick.any, memory_order_seq_cst); /* [P1] */
}

/* Announces that the calling thread is about to sleep. Returns true if it must not sleep, because its inbox is filled.
 */
OWN_INLINE bool pinned_doze(struct thread *thread)
{
    atomic_store_explicit(&thread->pinned.dozes, 1, memory_order_seq_cst); /* [P2] */
    return pinned_inbox_filled(thread);
}

/* Withdraws what pinned_doze announced. */
OWN_INLINE void pinned_wake(struct thread *thread)
{
    atomic_store_explicit(&thread->pinned.dozes, 0, memory_order_relaxed);
}

#endif
