/*
 * Schedulers of one's own: in which order a pool runs what is runnable.
 *
 * A scheduler is an order of tasks: push puts one in, pick takes the next one out. The library does the rest: it calls
 * these functions under a lock of the pool's, so nothing in them has to be guarded; it wakes and parks threads, keeps
 * what is pinned to a thread apart, and hands over what threads leave behind. docs/schedulers.md shows how to write
 * one; tests/spec/schedulers.c has some.
 */
#ifndef STRAND_SCHEDULER_H
#define STRAND_SCHEDULER_H

#include "../strand.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A strand that is runnable and not running. The two words are the scheduler's while it has the task: to link it. */
typedef struct strand_task {
    struct strand_task *next, *prev;
} strand_task;

/** How a task comes. */
enum strand_task_comes {
    STRAND_TASK_NEW,     /* spawned: it has not started */
    STRAND_TASK_WOKEN,   /* made runnable by a strand that runs on the same thread */
    STRAND_TASK_OUTSIDE, /* by another thread, a timer, a descriptor */
    STRAND_TASK_YIELDED  /* it gave way */
};

/** strand_attr.rank of the task's strand; 0 if it has none. For push, pick and take. */
int32_t strand_task_rank(const strand_task *task);

/**
 * A scheduler; it has to live as long as the pools that have it. `state` is memory of the pool's, zero at its opening.
 * The functions are called on any thread of the run, under the pool's lock: they may not wait, suspend, throw, or call
 * functions of the library other than strand_task_rank. thread: the index of the calling thread in the pool, -1: it is
 * none of the pool's.
 */
typedef struct strand_scheduler {
    size_t size;       /* sizeof(strand_scheduler); required */
    const char *name;  /* for people; required */
    size_t state_size; /* in bytes */
    /* Before the first push; returns 0 or a negated errno code: then the pool is not opened. NULL: nothing to do. */
    int (*open)(void *state);
    /* After the last pick, or after open. NULL: nothing to do. */
    void (*close)(void *state);
    /* Take in a task. Required. */
    void (*push)(void *state, strand_task *task, enum strand_task_comes how, int thread);
    /* Give the next one out: there is one, so NULL is misuse. Required. */
    strand_task *(*pick)(void *state, int thread);
    /* Give this very one out, which push has taken in and pick has not given out: whoever joins it runs it at once, in
     * its own place. false: it stays. NULL: they all stay. */
    bool (*take)(void *state, strand_task *task);
} strand_scheduler;

#ifdef __cplusplus
}
#endif
#endif
