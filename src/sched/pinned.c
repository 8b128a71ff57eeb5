/*
 * Pinned fibres. The protocol block is in pinned.h.
 */
#include "pinned.h"

#include "inbox.h"
#include "runq.h"

void pinned_open(struct pinned *pinned)
{
    list_init(&pinned->ready);
    pinned->went_first = false;
    atomic_init(&pinned->inbox, NULL);
    atomic_init(&pinned->dozes, 0);
    atomic_init(&pinned->strands, 0);
}

bool pinned_ready(struct thread *by, struct fibre *fibre)
{
    struct thread *home = fibre->home;
    if (home == by) {
        list_push_back(&home->pinned.ready, &fibre->queued);
        atomic_store_explicit(&home->slow_pick.any, PICK_PINNED, memory_order_relaxed);
        return false;
    }
    inbox_post(&home->pinned.inbox, fibre);
    atomic_store_explicit(&home->slow_pick.any, PICK_PINNED, memory_order_relaxed); /* [P1] */
    return atomic_load_explicit(&home->pinned.dozes, memory_order_seq_cst);         /* [P2] */
}

struct fibre *pinned_pick(struct thread *thread)
{
    struct pinned *pinned = &thread->pinned;
    atomic_store_explicit(&thread->slow_pick.any, 0, memory_order_seq_cst); /* [P1] before the inbox is taken */
    inbox_take(&pinned->inbox, &pinned->ready);
    struct link *link = list_pop_front(&pinned->ready);
    if (!list_empty(&pinned->ready))
        atomic_store_explicit(&thread->slow_pick.any, PICK_PINNED, memory_order_relaxed);
    return link ? CONTAINER(link, struct fibre, queued) : NULL;
}
