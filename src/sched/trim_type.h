/*
 * What a pool knows of shared fibres that it may trim, and of its rounds of trimming. Functions: trim.h.
 */
#ifndef SCHED_TRIM_TYPE_H
#define SCHED_TRIM_TYPE_H

#include "../base/atomic.h"
#include "../base/list.h"
#include "timers.h"

struct trimmer { /* a pool's */
    atomic_flag lock;
    struct link used;   /* shared fibres that were in use since they were trimmed last: linked by in_trimmer */
    uint32_t count;     /* of them */
    uint32_t left;      /* of the round that is under way: how many at the front have not been looked at */
    _Atomic bool armed; /* the timer is started, or has fired and was not seen to yet */
    /* The seeker's. */
    bool due;       /* it has fired */
    bool under_way; /* a round has begun, and goes on with the timer */
    bool found;     /* and has found an idle one */
    size_t chunks;  /* so many chunks of the store it still has to give back */
    size_t stacks;  /* and the pages of so many free stacks */
    struct timer timer;
};

#endif
