/*
 * The shared fibres that a pool may trim, and the state of its rounds. Functions: trim.h.
 */
#ifndef SCHED_TRIM_TYPE_H
#define SCHED_TRIM_TYPE_H

#include "../base/atomic.h"
#include "../base/list.h"
#include "timers.h"

struct trimmer { /* of a pool */
    atomic_flag lock;
    struct link used;   /* shared fibres in use since their last trim, linked by in_trimmer */
    uint32_t count;     /* how many fibres are in `used` */
    uint32_t left;      /* how many fibres at the front of `used` the round has not examined */
    _Atomic bool armed; /* the timer is started, or has fired and the seeker has not handled that */
    /* Only the seeker uses the next five. */
    bool due;       /* the timer has fired */
    bool under_way; /* a round has begun, and goes on with the timer */
    bool found;     /* the round has found an idle fibre, or had none to examine */
    size_t chunks;  /* how many chunks of the store the round has yet to give back */
    size_t stacks;  /* how many free stacks the round has yet to give the pages of */
    struct timer timer;
};

#endif
