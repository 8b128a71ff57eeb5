/*
 * A sub-process: what all pools of a run share.
 */
#ifndef SCHED_SUBPROCESS_H
#define SCHED_SUBPROCESS_H

#include "../stack/memory.h"
#include "pool_type.h"
#include "sched_ops.h"

struct platform;

/* Grouped by the party that writes the fields. */
struct subprocess {
    /* ---- Fixed before the run has threads. ---- */
    const struct sched_ops *ops;
    const struct platform *platform;
    void *sim;
    uint64_t seed;
    uint32_t generation;      /* arch_generation when the sub-process was made */
    bool census;              /* strands record how much of their stacks they use */
    bool acts_when_quiescent; /* the run acts when all of it is quiescent: from the launch of its first fibre on */
    bool uring_off;           /* pools open no ring of io_uring */
    bool copies; /* for tests: a strand that leaves a shared fibre is copied out at once, and its frames overwritten */

    /* ---- The only thread, which is about to have others beside it. ---- */
    bool concurrent;

    /* ---- Each part has its own writers. ---- */
    struct stack_memory memory;
    struct pool pool;             /* the first pool, which ends last */
    _Atomic(struct pool *) pools; /* all pools, linked by pool.older; the opener puts the newest in front */
    struct pool closed;           /* in no list, without threads: the handles of closed pools lead here */
    atomic_flag free_lock;
    struct pool *free_pools[2]; /* free records: with room for many threads, and for one */

    /* ---- The thread that holds all others. ---- */
    _Atomic uint32_t holding; /* pool_hold holds threads: those that begin now, too */

    /* ---- Any thread of the run. ---- */
    _Atomic uint32_t outside;            /* in a seeded run: strands that wait for something outside of it */
    _Atomic uint32_t quiescence_waiters; /* QUIESCENT_VERDICT, plus QUIESCENT_WAITER for each waiting strand; 0:
                                            sched_ops.quiescent is not called */
    atomic_flag quiescent_lock;
    _Atomic int helpers; /* threads of the run in no pool: of crews, a watchdog, or asleep in strand_run */

    /* ---- The watchdog sets it, and a thread that moves clears it: docs/protocols/watchdog.md. ---- */
    _Atomic bool drowsy; /* the watchdog sleeps until sched_ops.moved */
};

#endif
