/*
 * The mail of shared fibres: which of their strands are runnable. The protocol block is in opened.h.
 */
#include "opened_mail.h"

static struct member *members_in(uintptr_t mail)
{
    return (struct member *)(mail & ~(uintptr_t)(OPENED_IDLE | OPENED_TRIM));
}

bool opened_up(struct thread *thread, struct member *member)
{
    struct opened *opened = opened_of(member->fibre);
    uintptr_t mail = atomic_load_explicit(&opened->mail, memory_order_relaxed);
    if (!thread->shared) {
        member->next = members_in(mail);
        atomic_store_explicit(&opened->mail, (uintptr_t)member | (mail & OPENED_TRIM), memory_order_relaxed);
        return mail == OPENED_IDLE;
    }
    do
        member->next = members_in(mail);
    while (!atomic_compare_exchange_weak_explicit(&opened->mail, &mail, (uintptr_t)member | (mail & OPENED_TRIM),
                                                  memory_order_acq_rel, memory_order_relaxed));
    return mail == OPENED_IDLE;
}

NOINLINE void opened_take_more_mail_(struct thread *thread, struct opened *opened)
{
    uintptr_t mail = atomic_load_explicit(&opened->mail, memory_order_relaxed);
    if (thread->shared)
        mail = atomic_exchange_explicit(&opened->mail, 0, memory_order_acq_rel);
    else
        atomic_store_explicit(&opened->mail, 0, memory_order_relaxed);
    if (mail & OPENED_TRIM)
        opened->trim = true;
    struct member *newest = members_in(mail), *first = NULL;
    for (struct member *member = newest; member;) {
        struct member *next = member->next;
        member->next = first;
        first = member;
        member = next;
    }
    if (first)
        batch_append(&opened->ready, first, newest);
}

bool opened_is_wanted(struct opened *opened)
{
    return opened->ready.first || atomic_load_explicit(&opened->mail, memory_order_relaxed);
}
