/*
 * The mail of shared fibres: which of their strands are runnable. The protocol block is in shared_fibre.h.
 */
#include "shared_mail.h"

static struct member *members_in(uintptr_t mail)
{
    return (struct member *)(mail & ~(uintptr_t)(SHARED_IDLE | SHARED_TRIM));
}

bool shared_mail_up(struct thread *thread, struct member *member)
{
    struct shared_fibre *shared = shared_of(member->fibre);
    uintptr_t mail = atomic_load_explicit(&shared->mail, memory_order_relaxed);
    if (!thread->concurrent) {
        member->next = members_in(mail);
        atomic_store_explicit(&shared->mail, (uintptr_t)member | (mail & SHARED_TRIM), memory_order_relaxed);
        return mail == SHARED_IDLE;
    }
    do
        member->next = members_in(mail);
    while (!atomic_compare_exchange_weak_explicit(&shared->mail, &mail, (uintptr_t)member | (mail & SHARED_TRIM),
                                                  memory_order_acq_rel, memory_order_relaxed)); /* [SF8] */
    return mail == SHARED_IDLE; /* then only the caller queues the fibre [SF1] */
}

NOINLINE void shared_mail_take_more_(struct thread *thread, struct shared_fibre *shared)
{
    uintptr_t mail = atomic_load_explicit(&shared->mail, memory_order_relaxed);
    if (thread->concurrent)
        mail = atomic_exchange_explicit(&shared->mail, 0, memory_order_acq_rel); /* [SF8] */
    else
        atomic_store_explicit(&shared->mail, 0, memory_order_relaxed);
    if (mail & SHARED_TRIM)
        shared->trim = true;
    struct member *newest = members_in(mail), *first = NULL;
    for (struct member *member = newest; member;) {
        struct member *next = member->next;
        member->next = first;
        first = member;
        member = next;
    }
    if (first)
        batch_append(&shared->ready, first, newest);
}

bool shared_fibre_is_wanted(struct shared_fibre *shared)
{
    return shared->ready.first || atomic_load_explicit(&shared->mail, memory_order_relaxed);
}
