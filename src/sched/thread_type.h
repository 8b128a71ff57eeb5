/*
 * The record of a thread, which executes fibres of its pool. Functions: thread.h, switch.h, and the headers that pool.h
 * lists.
 */
#ifndef SCHED_THREAD_TYPE_H
#define SCHED_THREAD_TYPE_H

#include "../arch/arch.h"
#include "../base/rng.h"
#include "../stack/memory.h"
#include "balance.h"
#include "pinned_type.h"
#include "runq_type.h"
#include "slow_flags.h"

struct platform;
struct fibre;
struct pool;
struct subprocess;

enum thread_state { THREAD_BUSY, THREAD_IDLE, THREAD_POLLING };
/* Whether a system thread lives in a struct thread: docs/protocols/resize.md. */
enum thread_life {
    THREAD_NONE,    /* none does */
    THREAD_HERE,    /* one runs, or is about to */
    THREAD_LEAVING, /* it leaves at its next switch */
    THREAD_GONE     /* it takes nothing any more; the resizer joins it */
};
/* Clean-up that the resumed fibre performs for the fibre just suspended. */
enum after {
    AFTER_PARK,
    AFTER_YIELD,
    AFTER_END,
    AFTER_LOOP,
    AFTER_SHARED_PARK, /* the fibre just suspended is a shared one */
    AFTER_SHARED_YIELD,
    AFTER_SHARED_END
};

/* When a busy thread took its last pass as the seeker, and what has happened since. */
struct thread_pass {
    uint64_t at;           /* platform_ticks of the last pass */
    uint64_t switches;     /* thread.switches then */
    uint64_t young_served; /* when the oldest young fibre last had a turn out of order */
    bool fed;              /* events of descriptors have come since then */
    bool young_reached;    /* a pick has found no woken fibre since then */
};

/* What a thread without work remembers between its searches. */
struct thread_search {
    int64_t stole_at; /* when it last stole something and went to run it; 0: the theft was judged */
    uint32_t unsure;  /* how many times in a row sched_ops.quiescent has asked to be called again */
    bool saw_slot;    /* its last search found a slot that may become stale */
    bool rechecked;   /* its last wait was a short one for that */
};

/* Strands that this thread has counted. The thread adds one with release order; any thread adds the figures up. */
struct thread_counts {
    _Atomic uint64_t spawned, departed, ended; /* spawned here; those of them spawned onto other pools; ended here */
    /* Strands that began to wait for something outside of the run here, and those that ended such a wait here. */
    _Atomic uint64_t outside_begun, outside_ended;
};

/* Stop-the-world: hold.c. */
enum {
    HOLD_PARKED = 1, /* the thread sleeps, has ended, or has not begun */
    HOLD_STOPPED = 2 /* the thread stands still, because the holder asked */
};
struct thread_hold {
    _Atomic uint32_t asked; /* set by the holder: the thread must stand still */
    /* Written by the thread itself. */
    _Atomic uint32_t state; /* HOLD_PARKED, HOLD_STOPPED, or 0: it moves */
    void *ips[32];          /* the trace of its strand, while the thread stands still */
    size_t count;
    char *at; /* the innermost address in use in its stack */
};

/* Grouped by the party that writes the fields. */
struct thread {
    /* ---- The thread itself, at every switch; or read at every switch. Two cache lines. ---- */
    struct fibre *current; /* NULL in the loop, or between two fibres */
    struct fibre *from;    /* the fibre that a switch leaves; not set if it leaves the loop or an ended strand */
    enum after after;
    int32_t ticks;     /* operations until the next thread_tick */
    int32_t period;    /* the initial value of ticks */
    bool concurrent;   /* the run has several threads, so atomics are needed. Set while this thread is the only one */
    bool stealing;     /* the scheduler is the default one: its hot functions are called directly */
    uint8_t fair_list; /* which list the last fair pick tried first */
    struct slow_flags slow_pick, slow_switch; /* PICK_*, SWITCH_*; other threads set some of the bits */
    struct fibre *next;   /* made runnable by the end of the strand that ran here: runs at once, in its place */
    struct arch_cxx *cxx; /* the system thread's state of C++ exceptions; NULL: there is no C++ runtime */

    uint64_t locals; /* arch_locals_generation at the last search for a C++ runtime */
    struct pool *pool;
    struct subprocess *sub;
    const struct platform *platform; /* NULL: the machine itself */
    arch_context loop;               /* the context of the loop, on the thread's own stack */
    struct stack *dead;              /* the stack that AFTER_END leaves */
    struct arch_san dead_san;
    uint64_t switches;

    /* ---- The thread itself, at a strand's begin and end. ---- */
    struct stack_user stacks;
    size_t usual; /* the usual size of a stack */

    /* ---- The thread itself, less often. ---- */
    struct fibre *late; /* runs as soon as the switch away from it is complete */
    struct {
        struct fibre *fibre; /* it could not start, for want of a stack */
        int error;
    } refused;
    struct arch_san loop_san;
    struct arch_san *here;    /* the stack that runs; kept for the second platform only */
    struct arch_cxx loop_cxx; /* *cxx before the thread ran strands: that of the caller of strand_run */
    uint64_t ticked;          /* platform_ticks of the last tick */
    int64_t limit;   /* a driven thread returns to the caller of pool_drive at this instant; else ARCH_FOREVER */
    uint32_t awaits; /* calls in all spin loops so far */
    bool waits;      /* a driven thread waits until fibres are ready */
    bool census;     /* sub->census */
    struct thread_pass pass;
    struct thread_search search;
    struct balance_sums balance; /* busy threads of the pool read it, too */
    int64_t now;        /* of a busy thread: the time, at most a millisecond ago; for "since when", not for waiting */
    int64_t busy_since; /* about when the thread last found work after it had none; diagnostics only */
    struct rng rng;
    struct thread_counts counts;
    uint64_t steals, wakes, sleeps; /* diagnostics only */

    /* ---- Shared with other threads of the pool: each has its own protocol block. ---- */
    struct runq runq;
    struct pinned pinned;

    /* ---- Under the pool's lock. ---- */
    enum thread_state state;
    struct link sleeping; /* in pool->sleepers */
    bool timed;           /* it sleeps with a time limit */

    /* ---- Other threads, to wake or to stop this one. ---- */
    _Alignas(CACHE_LINE) _Atomic uint32_t wake; /* futex: 1 means that the thread goes on */
    struct thread_hold hold;

    /* ---- Written where the thread begins or goes, by it or by the thread that resizes the pool. ---- */
    _Atomic uint32_t life; /* enum thread_life */
    int index;
    arch_thread os;
    uint32_t os_id;
    void *simulated; /* the second platform's part */
};
_Static_assert(offsetof(struct thread, locals) == CACHE_LINE && offsetof(struct thread, stacks) == 2 * CACHE_LINE,
               "a switch touches the first two lines of the record");

#endif
