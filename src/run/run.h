/*
 * The record of a run, with what only this folder knows of it.
 */
#ifndef RUN_RUN_H
#define RUN_RUN_H

#include "../actor/actor_layer.h"
#include "../debug/debug_layer.h"
#include "../io/io_layer.h"
#include "../sim/sim.h"

/* A shut-down of the run: shutdown.h. */
struct shutdown {
    _Atomic uint32_t asked; /* enum asked */
    _Atomic uint32_t posted;
    _Atomic int64_t by; /* the instant when the root is cancelled, if it lives; ARCH_FOREVER: never */
    char why[129];
    struct post post;
    struct timer timer;
    atomic_flag lock;
    struct link waiters; /* under the lock */
    _Atomic bool begun;  /* set under it */
};

/* The record of a run: the parts of the layers, one behind the other. */
struct run {
    union {
        struct runtime runtime;
        struct actor_run actor;
    };
    struct io_run io;
    struct sim_run sim;
    struct debug_run debug;
    char text[128]; /* what is wrong with the options */
    struct shutdown shutdown;
    struct link waiters;     /* strands that wait for quiescence, under sub.quiescent_lock: quiescence.c */
    _Atomic bool doubt_told; /* of no order to anything else: it was logged that nothing goes on, though it is not
                                certain that the run is deadlocked */
};

static inline struct run *run_of(struct thread *thread)
{
    return (struct run *)thread->sub;
}

#endif
