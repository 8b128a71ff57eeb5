/*
 * Crews: plain threads that make calls which block. What a strand does with one is offload.c. Page:
 * docs/protocols/offload.md; models: tests/models/crew.pml (threads), tests/models/offload.pml (a call).
 *
 * PARTIES   callers (strands); the crew's threads; the threads of pools that take posts; who ends the crew: the
 *           strand that leaves its scope, or the end of the run.
 * STATE     under the crew's lock: `queue`, of `queued` jobs; `asleep`, of `sleeping` threads; how many `threads`
 *           there are, those included that are being made; how many of them are `running` a job; how many `callers`
 *           are inside; `closing`; and each job's state (offload.c).
 * PROTOCOL  a caller enters, queues its job, and in the same step decides who is to take it up: a thread that is awake
 *           and looks for one (there are threads - running - sleeping of them), one that it wakes, one that it makes,
 *           or nobody. A thread that finds no job goes to sleep in the same step, or, if it has slept its time or the
 *           crew is closing, goes for good.
 * OWNERSHIP of a job: offload.c. Of a thread's record: its own until it goes; then of who joins it: the next one that
 *           goes, or the end of the crew. The crew is there as long as there is a caller or a thread.
 * INVARIANTS [O1] as many threads look for a job as there are in the queue; else all that can be had run one, and look
 *           afterwards. [O2] if a thread cannot be had and there is none, all whose jobs are queued try again: each
 *           tries to make one by itself then, and throws if that fails. [O3] of those who count down `threads` and
 *           `callers` of a crew that is closing the last one tells who ends it, once, and touches it no more.
 * ORDERING  the lock; the post, which is a full barrier.
 * NOT DONE  handing the job to the thread that is woken: others that have finished theirs meanwhile would pass it by.
 *           Spinning before sleep: docs/decisions.md.
 */
#ifndef IO_CREW_H
#define IO_CREW_H

#include "../../include/strand/io.h"

#include "../strand/interrupt.h"

/* What a strand waits for until a post brings it, or another strand does. */
struct arrival {
    struct post post;
    struct wait_node node; /* never linked; its epoch and `over` under the crew's lock */
    struct pool *pool;     /* the strand's */
    struct crew *crew;
    bool over;
};

enum job_state {
    JOB_QUEUED,
    JOB_RUNNING,
    JOB_RETURNED,
    JOB_AGAIN,  /* nobody is there to take it up: over, and to be queued again [O2] */
    JOB_REFUSED /* the crew has ended: over */
};

struct job {
    struct arrival arrival;
    struct link link; /* in crew->queue */
    const char *function;
    strand_fn *fn;
    void *arg, *result;
    void (*drop)(void *result);
    void (*release)(void *arg);
    /* Under the lock. */
    enum job_state state;
    bool left; /* its caller has gone */
    bool held; /* but is calling `stop` yet */
    _Alignas(16) char copy[];
};

/* What is said of a crew. */
struct crew_origin {
    void *site; /* where it was opened; NULL: it is the run's */
    char name[32];
};

struct crew {
    struct subprocess *sub;
    atomic_flag lock;
    bool closing;
    size_t most, most_waiting; /* the second: 0 for any number */
    int64_t idle_ns;
    struct link queue;  /* jobs: first come, first served */
    struct link asleep; /* threads: the newest in front, so that the others grow old */
    struct link all;    /* threads that nobody has joined */
    size_t queued, sleeping, threads, running, callers;
    struct crew_thread *gone; /* the last one that went */
    struct arrival end;       /* for who ends it; pool NULL: nobody waits */
    struct crew_origin origin;
};

static inline void crew_lock(struct crew *crew, struct thread *thread)
{
    spin_lock(&crew->lock, thread);
}

static inline void crew_unlock(struct crew *crew)
{
    spin_unlock(&crew->lock);
}

/* ---- opening.c ---- */

/* The crew behind a handle, which stays until crew_leave. NULL: no memory. Misuse if the handle is stale. */
struct crew *crew_enter(struct thread *thread, strand_crew handle, const char *function);
/* The same of one of the run's own. */
struct crew *crew_enter_own(struct thread *thread, enum run_crew which, const char *function);
void crew_leave(struct thread *thread, struct crew *crew);

/* ---- crew.c ---- */

/* Where it was opened, in words. */
const char *crew_made(const struct crew_origin *origin, char *buffer, size_t size);

/* Queue a job, and see to somebody who takes it up. Returns 0, or a negated errno code: then nobody ever will. */
int crew_submit(struct thread *thread, struct crew *crew, struct job *job);
/* Wait until it is over: true. False: interrupted. */
bool crew_await(struct thread **thread, struct cb *me, struct arrival *arrival, enum blocked why, uint32_t floor);

/* The job was left, and is the caller's: its hooks, and its memory. ran: its function has returned. */
void job_discard(struct job *job, bool ran);
/* Call a function of the user's that may neither block nor throw; NULL: none. crew NULL: it was not found yet. */
void crew_call_hook(struct crew *crew, const char *name, void (*fn)(void *), void *arg);

/* Under the lock: those that are queued are over, and nobody will make them. */
void crew_turn_away(struct crew *crew, enum job_state why, struct batch *batch);
/* Under the lock: whether who has just counted down is the last that is there [O3]. */
bool crew_is_last(const struct crew *crew);
/* After it, by the last. */
void crew_tell_end(struct crew *crew);
/* It is closing: so that all threads see it. */
void crew_wake_all(struct thread *thread, struct crew *crew);
/* Of one that is closing, by who ends it. Blocks as long as functions run there. */
void crew_join_all(struct crew *crew);

#endif
