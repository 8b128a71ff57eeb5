/*
 * The record of a run, with the parts that only this folder knows.
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
    _Atomic int64_t by; /* the instant when the root is cancelled, if it lives then; ARCH_FOREVER: never */
    char why[129];
    struct post post;
    struct timer timer;
    atomic_flag lock;
    struct link waiters; /* under the lock */
    _Atomic bool begun;  /* set under the lock */
};

/* The record of a run: the parts of the layers, one after the other. */
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
    struct link waiters; /* strands that wait for quiescence, under sub.quiescent_lock: quiescence.c */
    /* Whether it was logged that nothing goes on, though a deadlock is not certain. Orders nothing else. */
    _Atomic bool doubt_reported;
};

static inline struct run *run_of(struct thread *thread)
{
    return (struct run *)thread->sub;
}

#endif
