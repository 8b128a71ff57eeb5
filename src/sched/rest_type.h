/*
 * The idle shared fibres of a pool, and its rounds of trimming them. Functions: rest.h.
 */
#ifndef SCHED_REST_TYPE_H
#define SCHED_REST_TYPE_H

#include "../base/atomic.h"
#include "../base/list.h"
#include "timers.h"

struct rests { /* a pool's */
    atomic_flag lock;
    struct link used;   /* shared fibres that were in use since they were trimmed last */
    uint32_t count;     /* of them */
    uint32_t left;      /* of the round that is under way: how many at the front have not been looked at */
    _Atomic bool armed; /* the timer is started, or has fired and was not seen to yet */
    /* The seeker's. */
    bool due;       /* it has fired */
    bool under_way; /* a round has begun, and goes on with the timer */
    bool found;     /* and has found one that has rested */
    size_t chunks;  /* so many chunks of the store it still has to give back */
    size_t stacks;  /* and the pages of so many free stacks */
    struct timer timer;
};

#endif
