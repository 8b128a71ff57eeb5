/*
 * The interface to a scheduler, which decides what runs next.
 */
#ifndef SCHED_SCHEDULER_H
#define SCHED_SCHEDULER_H

#include "../base/base.h"

struct fibre;
struct pool;
struct thread;

enum push {
    PUSH_NEW,     /* spawned, not started */
    PUSH_WOKEN,   /* made runnable by the strand that runs on this thread */
    PUSH_OUTSIDE, /* made runnable by a timer or another thread */
    PUSH_YIELDED  /* lets other fibres run first */
};

struct scheduler {
    const char *name;
    bool alone;      /* its pools have one thread */
    bool own_thread; /* the thread is never the caller of strand_run */
    bool common;     /* all threads take from pool.global */
    /* Called when a pool opens, and when it closes. open returns 0 or a negated errno code. NULL: nothing to do. */
    int (*open)(struct pool *pool);
    void (*close)(struct pool *pool);
    /* Queues a fibre. Returns whether the caller must notify a thread that there is work (pool_notify). */
    bool (*push)(struct thread *thread, struct fibre *fibre, enum push how);
    /* Queues a fibre, from a thread of another pool or of none (by: NULL). The caller must wake a thread. */
    void (*post)(struct pool *pool, struct thread *by, struct fibre *fibre);
    /* Removes and returns the next fibre for this thread, or NULL. */
    struct fibre *(*pick)(struct thread *thread);
    /* Removes this fibre from the thread's queue. Returns false if it is not there. */
    bool (*take)(struct thread *thread, struct fibre *fibre);
    /* Moves work from other queues into the seeker's own. Returns whether there was any. NULL: a pick takes all work of
     * the pool. */
    bool (*steal)(struct thread *thread);
    /* Takes fibres that wait too long in other queues. Called by a busy thread that has the role of the seeker. NULL:
     * fibres wait equally long on all threads. */
    void (*even_out)(struct thread *thread);
    /* Returns whether there is work for a thread that has none. */
    bool (*work)(struct pool *pool);
    /* Gives what only this thread would run to others, because the thread leaves. NULL: there is nothing of that
     * kind. */
    void (*leave)(struct thread *thread);
    /* Returns how many fibres wait for this thread, or for any thread of the pool, at least. Any thread, without a
     * lock. */
    size_t (*waiting)(const struct thread *thread);
};
extern const struct scheduler scheduler_stealing, scheduler_global, scheduler_dedicated, scheduler_current;
/* `work` and `waiting` of the schedulers whose threads take from pool.global. */
bool global_work(struct pool *pool);
size_t global_waiting(const struct thread *thread);
/* The names of the schedulers, for messages. */
#define SCHEDULER_NAMES "'stealing', 'global', 'dedicated' or 'current'"
/* Returns the scheduler of that name; NULL: there is none. A NULL name means the default. */
const struct scheduler *scheduler_find(const char *name);

#endif
