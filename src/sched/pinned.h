/*
 * Fibres that are pinned to a thread: only that one runs them. They lie beside its scheduler's queue, where no thief
 * looks. Page: docs/protocols/pinned.md.
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
/* Make a pinned fibre runnable. by: the caller's thread; NULL: none of the run's. True: the caller has to rouse its
 * thread (pool_rouse). */
bool pinned_ready(struct thread *by, struct fibre *fibre);
/* The next one, or NULL. On the thread itself. */
struct fibre *pinned_pick(struct thread *thread);

OWN_INLINE bool pinned_has_mail(struct thread *thread)
{
    return atomic_load_explicit(&thread->pinned.inbox, memory_order_seq_cst) != NULL; /* [P2] */
}

/* Or there is something left that it has taken, as only a thread can have that is driven, and left alone. */
OWN_INLINE bool pinned_has_work(struct thread *thread)
{
    return pinned_has_mail(thread) || atomic_load_explicit(&thread->slow_pick.any, memory_order_seq_cst); /* [P1] */
}

/* The thread is about to sleep. True: it has better to do. */
OWN_INLINE bool pinned_doze(struct thread *thread)
{
    atomic_store_explicit(&thread->pinned.dozes, 1, memory_order_seq_cst); /* [P2] */
    return pinned_has_mail(thread);
}

OWN_INLINE void pinned_wake(struct thread *thread)
{
    atomic_store_explicit(&thread->pinned.dozes, 0, memory_order_relaxed);
}

#endif
