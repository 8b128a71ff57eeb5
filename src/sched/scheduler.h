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
    PUSH_NEW,     /* spawned: not started */
    PUSH_WOKEN,   /* made runnable by the strand that runs here */
    PUSH_OUTSIDE, /* by a timer, or another thread */
    PUSH_YIELDED  /* lets others go first */
};

struct scheduler {
    const char *name;
    bool alone;      /* a pool has one thread */
    bool own_thread; /* which is never the caller's of strand_run */
    bool common;     /* all threads take from pool.global */
    /* At the pool's opening, and its end. open returns 0 or a negated errno code. NULL: nothing to do. */
    int (*open)(struct pool *pool);
    void (*close)(struct pool *pool);
    /* True: a thread has to be notified that there is work (pool_notify), which is the caller's business. */
    bool (*push)(struct thread *thread, struct fibre *fibre, enum push how);
    /* The same from a thread of another pool, or none (by: NULL). The caller wakes somebody. */
    void (*post)(struct pool *pool, struct thread *by, struct fibre *fibre);
    /* The next one for this thread, or NULL. fair: not the newest. */
    struct fibre *(*pick)(struct thread *thread);
    /* Take this very fibre out of the thread's queue; false if it is not there. */
    bool (*take)(struct thread *thread, struct fibre *fibre);
    /* For the seeker: get work from elsewhere into its own queue; false if there was none. NULL: a pick takes all work
     * of the pool. */
    bool (*steal)(struct thread *thread);
    /* For a busy thread that has the role of the seeker: take what waits too long elsewhere. NULL: nobody has more to
     * wait for than others. */
    void (*even_out)(struct thread *thread);
    /* Whether there is work that a thread without any could take. */
    bool (*work)(struct pool *pool);
    /* The thread goes: what only it would run is given to others. NULL: there is nothing of that kind. */
    void (*leave)(struct thread *thread);
    /* How many wait for this thread, or for any of the pool, at least. Any thread, without a lock. */
    size_t (*waiting)(const struct thread *thread);
};
extern const struct scheduler scheduler_stealing, scheduler_global, scheduler_dedicated, scheduler_current;
/* `work` and `waiting` of the schedulers whose threads take from pool.global. */
bool global_work(struct pool *pool);
size_t global_waiting(const struct thread *thread);
/* For messages. */
#define SCHEDULER_NAMES "'stealing', 'global', 'dedicated' or 'current'"
/* NULL: unknown. A NULL name is the default's. */
const struct scheduler *scheduler_find(const char *name);

#endif
