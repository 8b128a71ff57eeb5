/*
 * The record of a thread, which executes fibres of its pool. Functions: thread.h, switch.h, pool.h, idle.h.
 */
#ifndef SCHED_THREAD_TYPE_H
#define SCHED_THREAD_TYPE_H

#include "../arch/arch.h"
#include "../base/rng.h"
#include "../stack/memory.h"
#include "pinned_type.h"
#include "runq_type.h"
#include "service.h"
#include "slow_flags.h"

struct platform;
struct fibre;
struct pool;
struct subprocess;

enum thread_state { THREAD_BUSY, THREAD_IDLE, THREAD_POLLING };
/* Whether there is a thread of the system behind a struct thread: docs/protocols/resize.md. */
enum thread_life {
    THREAD_NONE,    /* none */
    THREAD_HERE,    /* it runs, or is about to */
    THREAD_LEAVING, /* it goes at its next switch */
    THREAD_GONE     /* it takes nothing any more; to be joined */
};
/* Clean-up that the resumed fibre performs for the fibre just suspended. */
enum after {
    AFTER_PARK,
    AFTER_YIELD,
    AFTER_END,
    AFTER_LOOP,
    AFTER_SHARED_PARK, /* of one that runs on a shared fibre */
    AFTER_SHARED_YIELD,
    AFTER_SHARED_END
};

/* Says how often, and when, a busy thread takes a pass as the seeker, and what the last one found. */
struct thread_pass {
    uint64_t at;           /* platform_ticks of the last one */
    uint64_t switches;     /* thread.switches then */
    uint64_t young_served; /* when the oldest that had not started was last given its turn out of order */
    bool fed;              /* since then there were events of descriptors */
    bool young_reached;    /* since then there was a moment when no woken fibre was left */
};

/* The memory of a thread without work between its searches. */
struct thread_search {
    int64_t stole_at; /* when it last stole something and went to run it; 0: judged */
    uint32_t unsure;  /* so often in a row sched_ops.quiescent has wished to be called again */
    bool saw_slot;    /* its last round of looking found a slot that may go stale */
    bool rechecked;   /* it waited for that before it waited last */
};

/* Strands that this thread has counted. The thread adds one with release order; any thread adds the figures up. */
struct thread_counts {
    _Atomic uint64_t spawned, departed, ended; /* spawned here, of them onto other pools, ended here */
    /* Strands that began here to wait for what is outside of the run, and that ended that here. */
    _Atomic uint64_t left, returned;
};

/* Stop-the-world: hold.c. */
enum {
    HOLD_PARKED = 1, /* the thread sleeps, has ended or not begun */
    HOLD_STOPPED = 2 /* it stands still, because it was asked to */
};
struct thread_hold {
    _Atomic uint32_t asked; /* by the holder: all threads have to stand still (pool_hold) */
    /* The thread itself. */
    _Atomic uint32_t state; /* HOLD_PARKED, HOLD_STOPPED, or 0: it moves */
    void *ips[32];          /* where it stands, while it does in a strand */
    size_t count;
    char *at; /* in its stack */
};

/* Grouped by the party that writes the fields. */
struct thread {
    /* ---- The thread itself, at every switch; or read at every switch. Two cache lines. ---- */
    struct fibre *current; /* NULL: in the loop, or between two fibres */
    struct fibre *from;    /* of a switch that is under way, unless it leaves the loop or an ended strand */
    enum after after;
    int32_t ticks;     /* operations until the next thread_tick */
    int32_t period;    /* what ticks starts from */
    bool concurrent;   /* the run has several threads: atomics are needed. Set while this thread is the only one */
    bool stealing;     /* the scheduler is the default one: its hot functions are called directly */
    uint8_t fair_turn; /* which list it tries first */
    struct slow_flags slow_pick, slow_switch; /* PICK_*, SWITCH_*; part of them is for other threads to set */
    struct fibre *next;   /* made runnable by the end of the strand that ran here: goes on at once, in its place */
    struct arch_cxx *cxx; /* the system's thread's state of C++ exceptions; NULL: there is no C++ runtime */

    uint64_t locals; /* arch_locals_generation, when the C++ runtime was looked for last */
    struct pool *pool;
    struct subprocess *sub;
    const struct platform *platform; /* NULL: the machine itself */
    arch_context loop;               /* the thread's own stack */
    struct stack *dead;              /* left by AFTER_END */
    struct arch_san dead_san;
    uint64_t switches;

    /* ---- The thread itself, at a strand's begin and end. ---- */
    struct stack_user stacks;
    size_t usual; /* the usual size of a stack */

    /* ---- The thread itself, less often. ---- */
    struct fibre *late; /* to be run as soon as the switch away from it is complete */
    struct {
        struct fibre *fibre; /* could not start: no stack */
        int error;
    } refused;
    struct arch_san loop_san;
    struct arch_san *here;    /* whose stack this is; kept for the second platform only */
    struct arch_cxx loop_cxx; /* what *cxx was before the thread ran strands: that of the caller of strand_run */
    uint64_t ticked;          /* platform_ticks of the last tick */
    int64_t limit;   /* one that is driven returns to the caller of pool_drive at this instant; else ARCH_FOREVER */
    uint32_t awaits; /* in all spin loops so far */
    bool waits;      /* one that is driven waits for what becomes ready */
    bool census;     /* sub->census */
    struct thread_pass pass;
    struct thread_search search;
    struct service service; /* read by busy threads of the pool, too */
    int64_t now;            /* the clock a millisecond ago, at most, if it is busy: for "since when", not for waiting */
    int64_t busy_since;     /* about when it found something to do, after it had nothing; diagnostics only */
    struct rng rng;
    struct thread_counts counts;
    uint64_t steals, wakes, sleeps; /* diagnostics only */

    /* ---- Shared with other threads of the pool: each has its own protocol block. ---- */
    struct runq runq;
    struct pinned pinned;

    /* ---- Under the pool's lock. ---- */
    enum thread_state state;
    struct link sleeping; /* in pool->sleepers */
    bool timed;           /* sleeps with a time limit */

    /* ---- Other threads, to wake or to stop this one. ---- */
    _Alignas(CACHE_LINE) _Atomic uint32_t wake; /* futex: 1 = go on */
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
