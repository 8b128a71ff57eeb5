/*
 * A run queue, which lies in its thread or in its pool. Functions and protocol: runq.h.
 */
#ifndef SCHED_RUNQ_TYPE_H
#define SCHED_RUNQ_TYPE_H

#include "../base/atomic.h"
#include "../base/list.h"

struct fibre;

/* Fibres that other threads made runnable: a stack, linked by queued.next. */
typedef _Atomic(struct fibre *) inbox;

struct runq {
    /* The owner's cache line. */
    _Alignas(CACHE_LINE) _Atomic uint32_t busy; /* the owner is inside */
    _Atomic uint32_t put, served; /* fibres that came to the lists below, and that were served from them */
    struct fibre *slot;           /* the newest; thieves leave it to the owner for a moment */
    struct link young;            /* not started; LIFO */
    struct link woken;            /* resumed; FIFO, before those that are young */
    struct link ready;            /* yielded, or from another queue; FIFO, after those that are young */
    /* The other threads' cache line. */
    _Alignas(CACHE_LINE) _Atomic uint32_t thief; /* a thief is inside, or wants to be */
    inbox inbox;                                 /* fibres that other threads made runnable */
    struct fibre *stale;                         /* the slot as the seeker saw it at stale_since */
    int64_t stale_since;
};

#endif
