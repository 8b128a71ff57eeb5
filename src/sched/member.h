/*
 * A strand as the scheduler knows it, and batches of strands that become runnable together.
 */
#ifndef SCHED_MEMBER_H
#define SCHED_MEMBER_H

#include "../base/base.h"

struct fibre;

/* A strand's place in its fibre, which is all that the scheduler knows of a strand. Part of the control block. */
struct member {
    struct fibre *fibre;
    struct member *next; /* the next one in a batch */
};

/* Strands that were claimed under a lock. They become runnable after its release, in order. */
struct batch {
    struct member *first, *last;
};

OWN_INLINE void batch_init(struct batch *batch)
{
    batch->first = batch->last = NULL;
}

/* Adds a strand to the end of the batch; NULL adds none. */
OWN_INLINE void batch_add(struct batch *batch, struct member *member)
{
    if (!member)
        return;
    member->next = NULL;
    if (batch->first)
        batch->last->next = member;
    else
        batch->first = member;
    batch->last = member;
}

/* Appends the strands from `first` to `last`, which are linked by `next`; last->next is NULL. */
OWN_INLINE void batch_append(struct batch *batch, struct member *first, struct member *last)
{
    if (batch->first)
        batch->last->next = first;
    else
        batch->first = first;
    batch->last = last;
}

OWN_INLINE struct member *batch_take(struct batch *batch)
{
    struct member *member = batch->first;
    if (member)
        batch->first = member->next;
    return member;
}

#endif
