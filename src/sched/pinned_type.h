/*
 * The pinned fibres of a thread, in its record. Functions and protocol: pinned.h.
 */
#ifndef SCHED_PINNED_TYPE_H
#define SCHED_PINNED_TYPE_H

#include "runq_type.h"

struct pinned {
    struct link ready;        /* the thread's own: runnable, in order */
    bool turn;                /* whether they come first the next time: the thread's own */
    inbox inbox;              /* made runnable by others */
    _Atomic uint32_t dozes;   /* the thread sleeps, or is about to: a poster wakes it */
    _Atomic uint32_t strands; /* how many are pinned to it, and live */
};

#endif
