/*
 * The mail of a shared fibre, as its holder sees it. The protocol block is in opened.h.
 */
#ifndef SCHED_OPENED_MAIL_H
#define SCHED_OPENED_MAIL_H

#include "opened.h"

void opened_take_more_mail_(struct thread *thread, struct opened *opened);
/* All of the mail, in the order in which it came. The holder. */
OWN_INLINE void opened_take_mail(struct thread *thread, struct opened *opened)
{
    if (atomic_load_explicit(&opened->mail, memory_order_relaxed))
        opened_take_more_mail_(thread, opened);
}

/* False: there is mail. */
OWN_INLINE bool opened_go_idle(struct thread *thread, struct opened *opened)
{
    uintptr_t none = 0;
    if (thread->shared)
        return atomic_compare_exchange_strong_explicit(&opened->mail, &none, OPENED_IDLE, memory_order_acq_rel,
                                                       memory_order_relaxed);
    if (atomic_load_explicit(&opened->mail, memory_order_relaxed))
        return false;
    atomic_store_explicit(&opened->mail, OPENED_IDLE, memory_order_relaxed);
    return true;
}

#endif
