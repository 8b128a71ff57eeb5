/*
 * Readers of strands that they can't stop. The protocol block is in readers.h.
 */
#include "readers.h"

void readers_enter(struct readers *readers)
{
    atomic_fetch_add_explicit(&readers->count, 1, memory_order_seq_cst); /* [V1] */
}

void readers_leave_unfreed(struct readers *readers)
{
    atomic_fetch_sub_explicit(&readers->count, 1, memory_order_seq_cst); /* [V2] */
}

/* Other readers are left; the last of them frees this memory. */
static void defer_again(struct readers *readers, struct deferred *first)
{
    struct deferred *last = first;
    while (last->next)
        last = last->next;
    last->next = atomic_load_explicit(&readers->deferred, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&readers->deferred, &last->next, first, memory_order_release,
                                                  memory_order_relaxed)) /* [V3] */
        continue;
}

struct deferred *readers_leave(struct readers *readers)
{
    struct deferred *deferred = atomic_exchange_explicit(&readers->deferred, NULL, memory_order_seq_cst); /* [V1] */
    bool last = atomic_fetch_sub_explicit(&readers->count, 1, memory_order_seq_cst) == 1;                 /* [V3] */
    if (!last && deferred)
        defer_again(readers, deferred);
    if (!last)
        return NULL;
    arch_san_acquire(&readers->deferred);
    return deferred;
}
