/*
 * A run queue, which lies in its thread or in its pool. Functions and protocol: runq.h.
 */
#ifndef SCHED_RUNQ_TYPE_H
#define SCHED_RUNQ_TYPE_H

#include "../base/atomic.h"
#include "../base/list.h"

struct fibre;

/* Fibres that were made runnable by other threads: a stack, linked by queued.next. */
typedef _Atomic(struct fibre *) inbox;

struct runq {
    /* The owner's line. */
    _Alignas(CACHE_LINE) _Atomic uint32_t busy; /* the owner is inside */
    _Atomic uint32_t put, served;               /* fibres that came to the lists below, and were run from there */
    struct fibre *slot;                         /* the newest; others leave it to the owner for a moment */
    struct link young;                          /* not started yet: the newest in front */
    struct link woken;                          /* to be gone on with, before those: first come, first served */
    struct link ready;                          /* yielded, or came from another queue: after those, in order */
    /* The others' line. */
    _Alignas(CACHE_LINE) _Atomic uint32_t thief; /* somebody else is inside, or wants to be */
    inbox inbox;                                 /* made runnable by other threads */
    struct fibre *stale;                         /* the slot, as the seeker saw it at stale_since */
    int64_t stale_since;
};

#endif
