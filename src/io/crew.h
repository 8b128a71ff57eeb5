/*
 * Crews: thread pools for calls that block. What a strand does with a crew is in offload.c. Page:
 * docs/protocols/offload.md; models: tests/models/crew.pml (threads), tests/models/offload.pml (a call).
 *
 * PARTIES   callers (strands); the crew's threads; the threads of pools that take posts; the closer of the crew: the
 *           strand that leaves its scope, or the end of the run.
 * STATE     under the crew's lock: `queue`, of `queued` jobs; `asleep`, of `sleeping` threads; the number of `threads`,
 *           including those being created; how many of them are `running` a job; how many `callers` are inside;
 *           `closing`; and each job's state (offload.c).
 * PROTOCOL  a caller enters, queues its job, and in the same step provides for it: a thread is awake and looks for a
 *           job (there are threads - running - sleeping of them), or the caller wakes one, or creates one, or the job
 *           has to wait. A thread that finds no job goes to sleep in the same step. If its sleep has timed out or the
 *           crew is closing, it exits.
 * OWNERSHIP of a job: offload.c. A thread's record belongs to the thread until it exits; then to the thread or closer
 *           that joins it: the next thread that exits, or the end of the crew. The crew exists while there is a caller
 *           or a thread.
 * INVARIANTS [O1] as many threads look for a job as jobs are queued; or else all available threads run one, and look
 *           afterwards. [O2] if no thread can be created and there is none, all callers with queued jobs try again:
 *           each then tries to create a thread itself, and throws if that fails. [O3] when `threads` and `callers` of a
 *           closing crew are counted down, the last party to do so notifies the closer, once, and touches the crew no
 *           more.
 * ORDERING  the lock; the post, which is a full barrier.
 * NOT DONE  handing the job to the woken thread: threads that have finished theirs meanwhile would pass it by. Spinning
 *           before sleep: docs/decisions.md. A crew for each process: its threads would outlive the run. One crew whose
 *           callers take permits: a slow disk would fill it although permits are left for others. Growing the pool: a
 *           thread that blocks in the system would take its queue with it. One time limit for all sleepers, by a timer
 *           of the pool: it would wake an idle pool.
 * TESTED BY tests/models/crew.pml, tests/models/offload.pml, tests/sim/crews.c, tests/spec/crew.c.
 */
#ifndef IO_CREW_H
#define IO_CREW_H

#include "../../include/strand/io.h"

#include "../strand/interrupt.h"
#include "io_layer.h"

#define MARK_CREW (UINT64_C(1) << 60) /* in the serial of a handle: core.h */

/* What a strand waits for until a post, or another strand, completes it. */
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
    JOB_AGAIN,  /* there is no thread to run it: over, and the caller queues it again [O2] */
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
    bool left;    /* its caller has gone */
    bool in_stop; /* but the caller is still in `stop` */
    _Alignas(16) char copy[];
};

/* The description of a crew in messages. */
struct crew_origin {
    void *site; /* where it was opened; NULL: a crew of the run */
    char name[32];
};

struct crew {
    struct subprocess *sub;
    atomic_flag lock;
    bool closing;
    bool calls;                /* functions of the program, not only the library's own */
    size_t most, most_waiting; /* the second: 0 for no limit */
    int64_t idle_ns;
    struct link queue;  /* jobs, FIFO */
    struct link asleep; /* threads, LIFO, so that surplus threads time out */
    struct link all;    /* threads that have not been joined */
    size_t queued, sleeping, threads, running, callers;
    struct crew_thread *gone; /* the last thread that exited */
    struct arrival end;       /* notifies the closer; pool NULL: no closer waits */
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

/* ---- crew_open.c ---- */

/* Find the crew behind a handle, and keep it until crew_leave. NULL: no memory. Misuse if the handle is stale. */
struct crew *crew_enter(struct thread *thread, strand_crew handle, const char *function);
/* Likewise, for one of the run's own crews. */
struct crew *crew_enter_own(struct thread *thread, enum run_crew which, const char *function);
void crew_leave(struct thread *thread, struct crew *crew);

/* ---- crew.c ---- */

/* Describe where the crew was opened. */
const char *crew_made(const struct crew_origin *origin, char *buffer, size_t size);

/* Queue a job, and provide a thread for it. Returns 0, or a negated errno code: then it will never run. */
int crew_submit(struct thread *thread, struct crew *crew, struct job *job);
/* Wait until it is over. Returns false if the wait was interrupted. */
bool crew_await(struct thread **thread, struct cb *me, struct arrival *arrival, unsigned why, uint32_t floor);

/* Call the hooks of a job that its caller has left, and free it. ran: its function has returned. */
void job_discard(struct job *job, bool ran);
/* Call a user's function that may neither block nor throw; NULL: none. crew NULL: it was not found yet. */
void crew_call_hook(struct crew *crew, const char *name, void (*fn)(void *), void *arg);

/* Under the lock: end all queued jobs without running them. */
void crew_turn_away(struct crew *crew, enum job_state why, struct batch *batch);
/* Under the lock, after counting down: whether that was the last thread or caller of a closing crew [O3]. */
bool crew_is_last(const struct crew *crew);
/* Notify the closer, after crew_is_last. The crew may be gone afterwards. */
void crew_notify_end(struct crew *crew);
/* Wake all sleeping threads of a closing crew. */
void crew_wake_all(struct thread *thread, struct crew *crew);
/* Join all threads of a closing crew, as its closer. Blocks while functions run there. */
void crew_join_all(struct crew *crew);

#endif
