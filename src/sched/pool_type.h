/*
 * A pool: threads that execute the same fibres. Functions: pool.h, idle.h.
 */
#ifndef SCHED_POOL_TYPE_H
#define SCHED_POOL_TYPE_H

#include "../arch/arch.h"
#include "posts.h"
#include "runq_type.h"
#include "service.h"
#include "trim_type.h"

struct scheduler;
struct shared_fibre;
struct subprocess;
struct thread;

enum { THREADS_MOST = 1024, COMMON_FIBRES = 3 };

enum pool_state {
    POOL_NONE, /* the record is free */
    POOL_OPEN,
    POOL_CLOSING, /* it ends as soon as its last strand has */
    POOL_CLOSED,  /* its threads and its poller are gone; somebody keeps the record still */
};
/* For a pool that a plain thread drives. */
enum pool_driving { POOL_UNDRIVEN, POOL_DRIVEN, POOL_DRIVEN_TO_ITS_END };
/* The seeker waits: wake it for timers and posts. It wants pushes as well. Nobody seeks, and somebody sleeps. */
enum { KICK_SEEKER = 1, KICK_PUSH = 2, KICK_SLEEPER = 4 };

/* How long the seeker may wait for near timers without sleeping. */
struct pool_near {
    int64_t credit;
    int64_t seen; /* up to when the credit has been reckoned */
    bool spins;   /* since then the seeker has waited so */
};

/* Grouped by the party that writes the fields. */
struct pool {
    /* ---- Fixed while the pool is open. ---- */
    struct subprocess *sub;
    /* The next of the sub-process's: a record stays there, closed or not, until its end. */
    _Atomic(struct pool *) older;
    const struct scheduler *scheduler;
    struct thread **threads; /* room for `room`; a record stays there, with a thread behind it or not */
    int room;
    enum balance balance;
    int64_t spin_ns;
    const void *custom; /* the scheduler's own: what it was made with, and its state */
    void *scheduler_state;
    const int *cpus; /* thread i is bound to cpus[i % cpus_count]; none: NULL */
    int cpus_count;
    void *above;                                /* the layer's above */
    struct shared_fibre *common[COMMON_FIBRES]; /* for tests: run.c */
    uint32_t common_turn;                       /* by any thread */

    /* ---- The resizer: resize.c. ---- */
    atomic_flag resizing;
    _Atomic int size;  /* so many threads are wanted */
    _Atomic int count; /* how many records there are */

    /* ---- Its life, by any thread: docs/protocols/pools.md. ---- */
    _Atomic uint32_t state;          /* enum pool_state */
    _Atomic uint32_t stop;           /* its threads end when they have nothing to run */
    _Atomic uint64_t arrived;        /* strands that threads of other pools were about to spawn onto it */
    _Atomic uint64_t refused;        /* and were not */
    _Atomic uint32_t record_refs;    /* pool_record_ref */
    struct pool *next_free;          /* of a free record: under subprocess.free_lock */
    _Atomic uint32_t alive;          /* threads that have begun, or are about to, and have not ended */
    void (*gone)(struct pool *pool); /* called by the last of them; NULL: the first pool */

    /* ---- The plain thread that drives it: drive.c. ---- */
    _Atomic uint32_t drive_tid; /* the system's id of that thread; 0: none has yet */
    _Atomic uint32_t driving;   /* enum pool_driving */

    /* ---- The seeker. ---- */
    struct arch_poller poller;
    struct pool_near near;
    _Atomic uint32_t trim_round; /* counts the rounds of `trimmer`: read at each visit of a shared fibre */

    /* ---- Any thread of the pool. ---- */
    _Atomic uint32_t watched; /* how many descriptors the poller watches: none are not asked for */
    struct timers timers;     /* has its own lock */
    struct runq global;       /* of the scheduler with one queue, under global_lock */
    atomic_flag global_lock;

    /* ---- Under the lock; read by every producer. `rung`: also by a poster that found the lock taken. ---- */
    _Alignas(CACHE_LINE) _Atomic uint32_t kick; /* KICK_*: a thread has to be woken when there is work */
    _Atomic uint32_t rung;                      /* a thread has to be woken: the holder of the lock does that */
    _Atomic int64_t until;                      /* how long a seeker that is parked waits at most */

    /* ---- Any thread of the process, or the handler of a signal: posts.h. ---- */
    _Alignas(CACHE_LINE) struct posts posts;

    /* ---- Under the lock: the states of the threads, docs/protocols/seeker.md. ---- */
    _Alignas(CACHE_LINE) atomic_flag lock;
    _Atomic(struct thread *) seeker; /* the thread with the role; read without the lock, too */
    struct link sleepers;
    int busy;
    bool parked;              /* the seeker waits in the poller */
    _Atomic uint32_t kickers; /* so many threads are about to wake it there; each subtracts itself without the lock */
    bool eager;               /* and a push wakes it */
    uint64_t stirs;           /* how often a thread of the pool has begun to move: quiescent.h */
    int futile;               /* wake-ups and thefts in a row that were not worth it: by the seeker */

    /* ---- The holders of shared fibres under its lock, and the seeker. ---- */
    _Alignas(CACHE_LINE) struct trimmer trimmer;
};

#endif
