/*
 * User-made schedulers: they decide in which order a pool runs its runnable strands.
 *
 * A scheduler is a queue of tasks: push inserts a task, pick removes the next one. The library calls these functions
 * under the pool's lock, so they need no synchronisation of their own. The library also parks and unparks threads,
 * keeps pinned strands apart, and moves the tasks of threads that leave the pool. docs/schedulers.md shows how to write
 * a scheduler; tests/spec/schedulers.c has several.
 *
 * Which callers:
 *
 *   push, pick and take of a scheduler    strand_task_rank
 *   other code                            no function
 *
 * Suspension: strand_task_rank never suspends, and the functions of a scheduler must not.
 *
 * Cost: a few nanoseconds for strand_task_rank, unless its text says otherwise. Every switch and every wake-up in the
 * pool calls a function of the scheduler under the pool's lock, and takes as long.
 */
#ifndef STRAND_SCHEDULER_H
#define STRAND_SCHEDULER_H

#include "../strand.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A strand that is runnable and not running. The scheduler may use both fields to link tasks that it holds. */
typedef struct strand_task {
    struct strand_task *next, *prev;
} strand_task;

/** Why a task became runnable. */
enum strand_task_origin {
    STRAND_TASK_NEW,     /* a strand was spawned and has not started */
    STRAND_TASK_WOKEN,   /* a strand on the same thread woke it */
    STRAND_TASK_OUTSIDE, /* another thread, a timer or a descriptor woke it */
    STRAND_TASK_YIELDED  /* it yielded */
};

/** Get the rank of a task's strand (strand_attr.rank), or 0 if it has none. Only the functions push, pick and take of a
 * scheduler may call it. */
int32_t strand_task_rank(const strand_task *task);

/**
 * A scheduler. The struct must live as long as the pools that use it. Each pool has a `state` of state_size bytes,
 * zeroed before open is called.
 *
 * The library calls these functions on any thread of the run and under the pool's lock. They must not wait, suspend,
 * throw, or call any function of the library but strand_task_rank. The argument `thread` is the index of the calling
 * thread in the pool, or -1 if it is not a thread of the pool.
 */
typedef struct strand_scheduler {
    size_t size;       /* sizeof(strand_scheduler); required */
    const char *name;  /* diagnostics only; required */
    size_t state_size; /* in bytes */
    /* Called before the first push. Returns 0, or a negated errno code if the pool cannot be opened. May be NULL. */
    int (*open)(void *state);
    /* Called after the last pick. May be NULL. */
    void (*close)(void *state);
    /* Insert a task. Required. */
    void (*push)(void *state, strand_task *task, enum strand_task_origin how, int thread);
    /* Remove and return the next task. The queue is not empty, so returning NULL is misuse. Required. */
    strand_task *(*pick)(void *state, int thread);
    /* Remove this task, which is in the queue, so that a strand that joins it can run it at once. Returns false to keep
     * it. NULL keeps all. */
    bool (*take)(void *state, strand_task *task);
} strand_scheduler;
/** Initialise a scheduler, with `size` filled in: STRAND_SCHEDULER(.name = "fifo", .push = push, .pick = pick). C++
 * requires the order of the fields. */
#define STRAND_SCHEDULER(...) STRAND_SIZED_INIT_(strand_scheduler, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
