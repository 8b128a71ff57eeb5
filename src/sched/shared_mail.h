/*
 * The mail of a shared fibre, as its holder sees it. The protocol block is in shared_fibre.h.
 */
#ifndef SCHED_SHARED_MAIL_H
#define SCHED_SHARED_MAIL_H

#include "shared_fibre.h"

void shared_mail_take_more_(struct thread *thread, struct shared_fibre *shared);
/* Moves all mail to `ready`, the oldest first. Called by the holder. */
OWN_INLINE void shared_mail_take(struct thread *thread, struct shared_fibre *shared)
{
    if (atomic_load_explicit(&shared->mail, memory_order_relaxed))
        shared_mail_take_more_(thread, shared);
}

/* Makes the fibre idle. Returns false if there is mail. Called by the holder. */
OWN_INLINE bool shared_mail_go_idle(struct thread *thread, struct shared_fibre *shared)
{
    uintptr_t none = 0;
    if (thread->concurrent)
        return atomic_compare_exchange_strong_explicit(&shared->mail, &none, SHARED_IDLE, memory_order_acq_rel,
                                                       memory_order_relaxed); /* [SF8] */
    if (atomic_load_explicit(&shared->mail, memory_order_relaxed))
        return false;
    atomic_store_explicit(&shared->mail, SHARED_IDLE, memory_order_relaxed);
    return true;
}

#endif
