/*
 * The pinned fibres of a thread, in its record. Functions and protocol: pinned.h.
 */
#ifndef SCHED_PINNED_TYPE_H
#define SCHED_PINNED_TYPE_H

#include "runq_type.h"

struct pinned {
    struct link ready;        /* runnable, in FIFO order; only the thread uses it */
    bool went_first;          /* whether pinned fibres came first at the last pick; only the thread uses it */
    inbox inbox;              /* fibres that other threads made runnable */
    _Atomic uint32_t dozes;   /* the thread sleeps, or is about to: a poster must wake it */
    _Atomic uint32_t strands; /* how many strands are pinned to the thread, and live */
};

#endif
