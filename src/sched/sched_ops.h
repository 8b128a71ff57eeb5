/*
 * What the scheduler calls in the layers above it. It reaches them through these functions alone, and knows nothing of
 * scopes, cancellation or exceptions.
 */
#ifndef SCHED_SCHED_OPS_H
#define SCHED_SCHED_OPS_H

#include "../base/base.h"
#include "timers.h"

struct batch;
struct member;
struct shared_fibre;
struct subprocess;
struct thread;

/* What is recorded of the bytes of a stack: that it suspends with so many; that it has used so many; that it ends, and
 * has used so many since it was recorded last. */
enum census_what { CENSUS_SUSPENDS, CENSUS_USED, CENSUS_ENDS };

struct sched_ops {
    size_t thread_size; /* struct thread is the first member of something bigger */
    int (*thread_open)(struct thread *thread);
    void (*thread_close)(struct thread *thread);
    /* It goes, and may come back: what it keeps for its own use is given back. On the thread itself. */
    void (*thread_leave)(struct thread *thread);
    /* On a new stack: run thread->current's strand to its end, call switch_serve_next, again and again. For each:
     * thread_detach before it lets go of the fibre; it may set thread->next. Never returns. */
    void (*serve)(struct thread *thread);
    /* On a new stack that is a shared fibre's: call shared_fibre_wait, then run its active strands, one after the
     * other, by switch_serve_shared. Never returns. above: so many bytes for its own use. */
    void (*serve_shared)(struct shared_fibre *shared, void *above);
    size_t above_size;
    /* It can't be started: end it with this error, on the thread's own stack. */
    void (*refuse)(struct member *member, int error);
    void (*overflow)(struct thread *thread); /* the canary of its strand's stack is damaged */
    /* There is no memory for the frames of this strand, and no way to go on. Does not return. */
    void (*starved)(struct member *member, size_t bytes);
    void (*warn)(struct subprocess *sub, const char *text);
    /* The child of a fork has come back into a run that has stayed in the parent. Does not return. */
    void (*orphaned)(struct subprocess *sub);
    void (*census)(struct thread *thread, struct member *member, size_t used, enum census_what what);
    /* The seeker of a pool is about to wait, and no thread of the pool is busy. Decides whether the pool, or the run,
     * is quiescent, and puts the strands that this wakes into the batch. Then the pool is not about to wait any more:
     * the call has passed through quiescent_stir. Returns whether the seeker has to call again soon, even if nobody
     * moves. asked: how often that was so in a row, up to QUIESCENT_ASKED_MOST. */
    bool (*quiescent)(struct thread *thread, struct batch *batch, uint32_t asked);
    /* A thread that rested moves, and subprocess.drowsy is set. On that thread; it may be called more than once. */
    void (*moved)(struct subprocess *sub);
    /* Called once when the time has come, under the lock of the timers: they may claim, not run. They return a strand
     * that has to be made runnable, or NULL. */
    struct member *(*fire[TIMER_KINDS])(struct timer *timer);
};

#endif
