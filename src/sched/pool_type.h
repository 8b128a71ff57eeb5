/*
 * A pool: threads that execute the same fibres. Functions: pool.h, idle.h.
 */
#ifndef SCHED_POOL_TYPE_H
#define SCHED_POOL_TYPE_H

#include "../arch/arch.h"
#include "posts.h"
#include "rest_type.h"
#include "runq_type.h"
#include "service.h"

struct scheduler;
struct shared_fibre;
struct subprocess;
struct thread;

enum { THREADS_MOST = 1024, COMMON_FIBRES = 3 };

struct pool {
    struct subprocess *sub;
    _Atomic(struct pool *)
        older; /* the next of the sub-process's: a record stays there, closed or not, until its end */
    const struct scheduler *scheduler;
    struct thread **threads; /* room for `room`; a record stays there, with a thread behind it or not */
    _Atomic int count;       /* how many records there are */
    int room;
    int64_t spin_ns;
    enum balance balance;
    const void *custom; /* the scheduler's own: what it was made with, and its state */
    void *scheduler_state;
    const int *cpus; /* thread i is bound to cpus[i % cpus_count]; none: NULL */
    int cpus_count;

    /* Its life: docs/protocols/pools.md. */
    _Atomic uint32_t state;          /* enum pool_state */
    _Atomic uint32_t stop;           /* its threads end when they have nothing to run */
    _Atomic uint64_t arrived;        /* strands that threads of other pools were about to spawn onto it */
    _Atomic uint64_t refused;        /* and were not */
    _Atomic uint32_t keepers;        /* pool_keep */
    _Atomic uint32_t alive;          /* threads that have begun, or are about to, and have not ended */
    void (*gone)(struct pool *pool); /* called by the last of them; NULL: the first pool */
    void *above;                     /* the layer's above */
    atomic_flag resizing;
    _Atomic int size;         /* so many threads are wanted */
    _Atomic uint32_t driver;  /* drive.c: the system's id of the thread that drives it; 0: none has yet */
    _Atomic uint32_t driving; /* enum pool_driving */
    struct shared_fibre *common[COMMON_FIBRES]; /* for tests: run.c */
    uint32_t common_turn;

    _Atomic uint32_t era; /* counts the rounds of `rests`: read at each visit of a shared fibre */
    struct arch_poller poller;
    _Atomic uint32_t watched; /* how many descriptors it watches: none are not asked for */
    struct timers timers;
    int64_t near_credit; /* of the seeker: how long it may wait for near timers without sleeping */
    int64_t near_seen;   /* up to when that has been reckoned */
    bool near_spins;     /* since then it has waited so */
    struct runq global;  /* of the scheduler with one queue */
    atomic_flag global_lock;

    /* Read by every producer. KICK_*: somebody has to be woken when there is work. */
    _Alignas(CACHE_LINE) _Atomic uint32_t kick;
    _Atomic uint32_t rung; /* somebody has to be woken, and the lock was taken: its holder does that */
    _Atomic int64_t until; /* how long a seeker that is parked waits at most */
    _Alignas(CACHE_LINE) struct posts posts;

    /* The states of the threads: docs/protocols/seeker.md. */
    _Alignas(CACHE_LINE) atomic_flag lock;
    _Atomic(struct thread *) seeker; /* the thread with the role; written under the lock */
    struct link sleepers;
    int busy;
    bool parked;              /* the seeker waits in the poller */
    _Atomic uint32_t kickers; /* so many have taken it upon themselves to wake it there, and are about to */
    bool eager;               /* and a push is to wake it */
    uint64_t stirs;           /* how often somebody of the pool has begun to move: quiet.h */
    int futile;               /* wake-ups and thefts in a row that were not worth it */

    _Alignas(CACHE_LINE) struct rests rests;
};
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

#endif
