/*
 * A sub-process: what all pools of a run share.
 */
#ifndef SCHED_SUBPROCESS_H
#define SCHED_SUBPROCESS_H

#include "../stack/memory.h"
#include "pool_type.h"
#include "sched_ops.h"

struct driver;

struct subprocess {
    const struct sched_ops *ops;
    const struct driver *driver;
    void *driver_state;
    uint32_t generation; /* arch_generation at its making */
    bool concurrent;
    bool census; /* strands note how much of their stacks they use */
    struct stack_memory memory;
    bool copies; /* for tests: a strand that leaves a shared fibre is copied out at once, and its frames overwritten */
    struct pool pool;             /* the first one, which ends last */
    _Atomic(struct pool *) pools; /* all of them: linked by pool.older */
    _Atomic uint32_t holding;     /* pool_hold: threads that begin now are held as well */
    _Atomic uint32_t outside;     /* of a seeded run: strands that wait for what is outside of it */
    _Atomic uint32_t minds_quiet; /* QUIET_*: why sched_ops.quiet is called; 0: it is not */
    bool ends_dry;                /* the run acts when all of it is dry: from the launch of its first fibre on */
    atomic_flag quiet_lock;
    _Atomic int helpers; /* threads of the run that are in no pool: of crews, a watchdog; or that sleep in strand_run */
    _Atomic bool drowsy; /* the watchdog sleeps until a thread moves: sched_ops.moved, docs/protocols/watchdog.md */
    uint64_t seed;
};

#endif
