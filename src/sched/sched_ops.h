/*
 * The functions of the layers above that the scheduler calls. It reaches those layers through these functions alone,
 * and knows nothing of scopes, cancellation or exceptions.
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

/* Says what a number of stack bytes means to the census. SUSPENDS: the strand suspends with so many in use. USED: the
 * strand has used so many. ENDS: the strand ends, and has used so many since the last record. */
enum census_what { CENSUS_SUSPENDS, CENSUS_USED, CENSUS_ENDS };

struct sched_ops {
    size_t thread_size; /* of the thread's record, which begins with struct thread */
    int (*thread_open)(struct thread *thread);
    void (*thread_close)(struct thread *thread);
    /* Gives back what a thread keeps for its own use. The thread leaves, and may come back. Called on the thread
     * itself. */
    void (*thread_leave)(struct thread *thread);
    /* Called on a new stack. Runs the strand of thread->current to its end and calls switch_serve_next, again and
     * again. Each strand calls thread_detach before it lets go of the fibre, and may set thread->next. Never
     * returns. */
    void (*serve)(struct thread *thread);
    /* Called on the new stack of a shared fibre. Calls shared_fibre_wait, then runs the fibre's active strands one
     * after the other, by switch_serve_shared. above: above_size bytes for its own use. Never returns. */
    void (*serve_shared)(struct shared_fibre *shared, void *above);
    size_t above_size;
    /* Ends a strand that can't be started with this error, on the thread's own stack. */
    void (*refuse)(struct member *member, int error);
    void (*overflow)(struct thread *thread); /* the canary of the current stack is damaged */
    /* There is no memory for the frames of this strand, and no way to refuse it. Does not return. */
    void (*starved)(struct member *member, size_t bytes);
    void (*warn)(struct subprocess *sub, const char *text);
    /* The child of a fork has returned into a run that stayed in the parent. Does not return. */
    void (*orphaned)(struct subprocess *sub);
    void (*census)(struct thread *thread, struct member *member, size_t used, enum census_what what);
    /* Decides whether the pool, or the run, is quiescent, and puts the strands that this wakes into the batch. Called
     * by the seeker of a pool that is about to wait, while no thread of the pool is busy. If the batch has strands, the
     * call has passed through quiescent_stir: the pool does not wait then. Returns whether the seeker must call again
     * soon, even if no thread moves. asked: how many times in a row the call has asked for that, up to
     * QUIESCENT_ASKED_MOST. */
    bool (*quiescent)(struct thread *thread, struct batch *batch, uint32_t asked);
    /* Called when a parked thread moves while subprocess.drowsy is set. Called on that thread, possibly more than
     * once. */
    void (*moved)(struct subprocess *sub);
    /* Called once when the time of a timer has come, under the lock of the timers, where it may claim a wait but run
     * nothing. Returns a strand that must be made runnable, or NULL. */
    struct member *(*fire[TIMER_TYPES])(struct timer *timer);
};

#endif
