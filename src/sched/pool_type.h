/*
 * A pool: threads that execute the same fibres. Functions: pool.h, and the headers that it lists.
 */
#ifndef SCHED_POOL_TYPE_H
#define SCHED_POOL_TYPE_H

#include "../arch/arch.h"
#include "balance.h"
#include "posts.h"
#include "runq_type.h"
#include "trim_type.h"

struct scheduler;
struct pool_uring;
struct shared_fibre;
struct subprocess;
struct thread;

enum { THREADS_MOST = 1024, COMMON_FIBRES = 3 };

enum pool_state {
    POOL_NONE, /* the record is free */
    POOL_OPEN,
    POOL_CLOSING, /* it ends after its last strand */
    POOL_CLOSED,  /* its threads and its poller are gone; references keep the record */
};
/* For a pool that a plain thread drives. */
enum pool_driving { POOL_UNDRIVEN, POOL_DRIVEN, POOL_DRIVEN_TO_ITS_END };
/* KICK_SEEKER: the seeker waits; timers and posts must wake it. KICK_PUSH: pushes must wake it, too. KICK_SLEEPER: no
 * thread has the role, and a thread sleeps. */
enum { KICK_SEEKER = 1, KICK_PUSH = 2, KICK_SLEEPER = 4 };

/* How long the seeker may wait for near timers without sleeping. */
struct pool_near {
    int64_t credit;
    int64_t seen; /* the credit is computed up to this instant */
    bool spins;   /* since then the seeker has waited in this way */
};

/* Grouped by the party that writes the fields. */
struct pool {
    /* ---- Fixed while the pool is open. ---- */
    struct subprocess *sub;
    /* The next record of the sub-process's list. A record, closed or not, stays there until the end of the
     * sub-process. */
    _Atomic(struct pool *) older;
    const struct scheduler *scheduler;
    struct thread **threads; /* `room` places; a record stays there, with a system thread in it or not */
    int room;
    enum balance balance;
    int64_t spin_ns;
    const void *custom; /* the scheduler's: what it was made with, and its state */
    void *scheduler_state;
    const int *cpus; /* thread i is bound to cpus[i % cpus_count]; NULL: to none */
    int cpus_count;
    void *above;                                /* belongs to the layer above */
    struct shared_fibre *common[COMMON_FIBRES]; /* shared fibres, for tests: src/strand/pool.c */
    uint32_t next_common;                       /* next index of `common`; changed by any thread */

    /* ---- The resizer: resize.c. ---- */
    atomic_flag resizing;
    _Atomic int size;  /* how many threads are wanted */
    _Atomic int count; /* how many records exist */

    /* ---- Its life, by any thread: docs/protocols/pools.md. ---- */
    _Atomic uint32_t state;          /* enum pool_state */
    _Atomic uint32_t stop;           /* the threads end when they have nothing to run */
    _Atomic uint64_t arrived;        /* strands that threads of other pools were about to spawn onto it */
    _Atomic uint64_t refused;        /* those of them that were not spawned */
    _Atomic uint32_t record_refs;    /* references to the record: pool_record_ref */
    struct pool *next_free;          /* links free records, under subprocess.free_lock */
    _Atomic uint32_t alive;          /* threads that have begun, or are about to, and have not ended */
    void (*gone)(struct pool *pool); /* called by the last thread; NULL: the first pool */

    /* ---- The plain thread that drives it: drive.c. ---- */
    _Atomic uint32_t drive_tid; /* the system's id of that thread; 0: no thread has driven the pool */
    _Atomic uint32_t driving;   /* enum pool_driving */

    /* ---- The seeker. ---- */
    struct arch_poller poller;
    struct pool_near near;
    _Atomic uint32_t trim_round; /* the number of the round of `trimmer`: read at each visit of a shared fibre */

    /* ---- Any thread of the pool. ---- */
    _Atomic uint32_t uring_state; /* pool_uring.h */
    _Atomic uint32_t unentered;   /* calls that the kernel has not begun: no thread parks [UR2] */
    struct pool_uring *uring;     /* NULL: none */
    _Atomic uint32_t watched;     /* how many descriptors the poller watches; 0: no thread asks it */
    struct timers timers;         /* has its own lock */
    struct runq global;           /* the queue of schedulers with one queue, under global_lock */
    atomic_flag global_lock;

    /* ---- Under the lock; read by every producer. `kick_pending`: also by a poster that found the lock taken. ---- */
    _Alignas(CACHE_LINE) _Atomic uint32_t kick; /* KICK_*: a producer must wake a thread for new work */
    _Atomic uint32_t kick_pending;              /* a thread must be woken, by the thread that releases the lock */
    _Atomic int64_t until;                      /* the instant until which a parked seeker waits at most */

    /* ---- Any thread of the process, or the handler of a signal: posts.h. ---- */
    _Alignas(CACHE_LINE) struct posts posts;

    /* ---- Under the lock: the states of the threads, docs/protocols/seeker.md. ---- */
    _Alignas(CACHE_LINE) atomic_flag lock;
    _Atomic(struct thread *) seeker; /* the thread with the role; also read without the lock */
    struct link sleepers;
    int busy;
    bool parked;              /* the seeker waits in the poller */
    _Atomic uint32_t kickers; /* how many threads are about to wake it there; each subtracts itself without the lock */
    bool eager;               /* a push wakes the parked seeker */
    uint64_t stirs;           /* how often a thread of the pool has begun to move: quiescent.h */
    int futile;               /* wake-ups and thefts in a row that were not worth it; written by the seeker */

    /* ---- The holders of shared fibres under its lock, and the seeker. ---- */
    _Alignas(CACHE_LINE) struct trimmer trimmer;
};

#endif
