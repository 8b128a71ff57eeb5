/*
 * Offloaded calls: what a strand does with a crew (crew.h). Page: docs/protocols/offload.md; model:
 * tests/models/offload.pml.
 *
 * PARTIES   the strand that calls; the crew's thread that runs the function; the thread of the strand's pool that takes
 *           the post; interrupters of the strand.
 * STATE     a job, in memory of its own: `state`, `left`, `in_stop`, and `over` and the epoch of its arrival, under the
 *           crew's lock.
 *             QUEUED --a thread--> RUNNING --the same--> RETURNED --the post--> over
 *             QUEUED --the strand, interrupted--> the strand owns it again
 *             QUEUED --there is no thread--> AGAIN, over --the strand--> QUEUED
 *             QUEUED --the crew ends--> REFUSED, over
 *             RUNNING --the strand, interrupted, unless the function borrows--> RUNNING, left
 * PROTOCOL  the strand queues the job, then arms its wait and sets the epoch under the lock: either it finds `over`, or
 *           the post finds the epoch. If interrupted while the function runs, it waits again, uninterruptibly, or
 *           leaves the job to the crew's thread. That thread reads `left` in the step that sets RETURNED, and posts, or
 *           frees the job. While the strand calls `stop` the job is `in_stop`: the last of the two to finish frees it.
 * OWNERSHIP the job belongs to the strand; a job that was left belongs to the crew's thread, unless it is in_stop. What
 *           the function works with (arg, copy, result) belongs to the thread from RUNNING to RETURNED.
 * INVARIANTS [O4] a job is run once, or taken back, never both. [O5] it is left, or posted, never both. [O6] it is
 *           freed once, by the strand or by the thread.
 * NOT DONE  calling `stop` in the interrupter: that may be any thread, under locks. Arming the wait before the job is
 *           queued: a system call would come between arming and parking.
 * TESTED BY tests/models/offload.pml, tests/spec/offload.c, tests/spec/offload_with.c, tests/sim/crews.c,
 *           tests/sim/interrupts.c.
 */
#include "offload.h"

#include "crew.h"

#include "../strand/escape.h"
#include "../strand/exception.h"
#include "../strand/misuse.h"
#include "../strand/sized.h"
#include "../strand/throw.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The request; on the strand's stack, and private to the strand. */
struct call {
    const char *function;
    strand_fn *fn;
    void *args;
    size_t size; /* size of the copied arguments; 0: args itself is passed */
    strand_offload_attr attr;
    enum run_crew own; /* the run's crew to use if attr names no crew */
    bool surely;       /* not interruptible */
    bool keeps;        /* attr.release is for a call that was left, only */
    unsigned why;      /* a reason of io_blocked.h; 0: an offloaded call */
};

static unsigned why_of(const struct call *call)
{
    return call->why ? call->why : BLOCKED_OFFLOAD;
}

/* ---- making a job ----------------------------------------------------------------------------------------- */

/* Returns NULL if there is no memory. */
static struct job *make_job(struct thread *thread, struct cb *me, struct crew *crew, const struct call *call)
{
    if (call->size > PTRDIFF_MAX - sizeof(struct job))
        return NULL;
    struct job *job = platform_malloc(thread, sizeof *job + call->size);
    if (!job)
        return NULL;
    *job = (struct job){
        .arrival = {.node.waiter = me, .pool = me->member.fibre->pool, .crew = crew},
        .function = call->function,
        .fn = call->fn,
        .arg = call->size ? job->copy : call->args,
        .drop = call->attr.drop,
        .release = call->attr.release,
    };
    if (call->size)
        memcpy(job->copy, call->args, call->size);
    return job;
}

/* ---- waiting for it --------------------------------------------------------------------------------------- */

/* The outcome of a call: the function has returned; it was never called; or the job belongs to the crew's thread. A
 * negated errno code: it will never be called. */
enum fate { DONE, INTERRUPTED = OFFLOAD_INTERRUPTED, LEFT = OFFLOAD_LEFT };

/* Call `stop` while the function may be returning. The last of the two to finish frees the job. */
static void stop_and_leave(struct thread *thread, struct job *job, void (*stop)(void *))
{
    struct crew *crew = job->arrival.crew;
    crew_call_hook(crew, "strand_offload_attr.stop", stop, job->arg);
    crew_lock(crew, thread);
    job->in_stop = false;
    bool mine = job->state == JOB_RETURNED;
    crew_unlock(crew);
    if (mine)
        job_discard(job, true);
}

/* The wait was interrupted. */
static enum fate interrupted_call(struct thread **thread, struct cb *me, struct job *job, const struct call *call)
{
    struct crew *crew = job->arrival.crew;
    crew_lock(crew, *thread);
    enum job_state state = job->state;
    bool leaves = state == JOB_RUNNING && !call->attr.borrows;
    if (state == JOB_QUEUED) { /* [O4] */
        list_remove(&job->link);
        crew->queued--;
    }
    job->left = leaves; /* [O5] */
    job->in_stop = leaves && call->attr.stop;
    if (leaves) /* no strand waits for the function: it counts as a plain thread until it returns */
        atomic_fetch_sub_explicit(&crew->sub->helpers, 1, memory_order_release); /* [Q5] */
    crew_unlock(crew);
    if (state != JOB_RUNNING && state != JOB_RETURNED)
        return INTERRUPTED;
    if (leaves) {
        if (call->attr.stop)
            stop_and_leave(*thread, job, call->attr.stop);
        return LEFT;
    }
    if (state == JOB_RUNNING)
        crew_call_hook(crew, "strand_offload_attr.stop", call->attr.stop, job->arg);
    (void)crew_await(thread, me, &job->arrival, why_of(call), WAIT_FLOOR_MOST);
    return DONE;
}

static int do_job(struct thread **thread, struct cb *me, struct job *job, const struct call *call)
{
    for (;;) {
        int error = crew_submit(*thread, job->arrival.crew, job);
        if (error)
            return error;
        while (!crew_await(thread, me, &job->arrival, why_of(call), call->surely ? WAIT_FLOOR_MOST : own_of(me)->floor))
            if (interrupted_here(me))
                return interrupted_call(thread, me, job, call);
        if (job->state == JOB_RETURNED)
            return DONE;
        if (job->state == JOB_REFUSED)
            return -ECANCELED;
    }
}

/* ---- calls ------------------------------------------------------------------------------------------------ */

static const char *refusal(int error)
{
    switch (error) {
    case -ENOBUFS:
        return "the crew's queue is full";
    case -ECANCELED:
        return "the crew has ended: its scope has been left";
    case -ENOMEM:
        return "an offloaded call";
    default:
        return "no thread is available for an offloaded call";
    }
}

/* The function has returned: pass its results to the caller, and free the job. */
static void *take_result(struct job *job, const struct call *call)
{
    void *result = job->result;
    char *answer = call->attr.answer;
    size_t at = (size_t)((uintptr_t)result - (uintptr_t)job->copy);
    if (call->size && at < call->size)
        result = answer ? answer + at : NULL;
    if (call->size && answer)
        memcpy(answer, job->copy, call->size);
    free(job);
    return result;
}

/* Release the arguments; there is no job, and the caller will throw. */
static void give_up(struct crew *crew, const struct call *call)
{
    if (!call->keeps)
        crew_call_hook(crew, "strand_offload_attr.release", call->attr.release, call->args);
}

/* *out is a valid job only if the outcome is DONE. */
static int make_call(struct thread **thread, struct cb *me, const struct call *call, struct job **out)
{
    struct crew *crew = call->own ? crew_enter_own(*thread, call->own, call->function)
                                  : crew_enter(*thread, call->attr.crew, call->function);
    struct job *job = crew ? make_job(*thread, me, crew, call) : NULL;
    int fate = job ? do_job(thread, me, job, call) : -ENOMEM;
    if (!job)
        give_up(crew, call);
    else if (fate == INTERRUPTED || fate < 0)
        call->keeps ? free(job) : job_discard(job, false);
    if (crew)
        crew_leave(*thread, crew);
    *out = job;
    return fate;
}

static void *offload(struct thread *thread, struct cb *me, const struct call *call)
{
    struct job *job;
    int fate = make_call(&thread, me, call, &job);
    if (fate < 0)
        throw_system(me, fate, refusal(fate));
    if (fate != DONE)
        interrupt_throw(thread, me, 0);
    return take_result(job, call);
}

/* Check the call and the caller, like may_block. */
static void may_offload(struct thread *thread, struct cb *me, const struct call *call)
{
    may_suspend(thread, me, call->function);
    thread_tick(thread);
    cxx_settle(thread, me);
    if (interrupted_at_start(thread, me)) {
        give_up(NULL, call);
        interrupt_refuse(thread, me);
    }
    if (!call->fn)
        MISUSE(call->function, "", "the function is NULL: pass the one to run");
    if (!call->size)
        must_not_escape(thread, call->args, "the argument", call->function);
    else if (!call->args)
        MISUSE(call->function, "",
               "the size of the arguments is %zu, but their address is NULL: pass their address, or the size 0",
               call->size);
    else
        must_not_escape_copied(thread, call->args, call->size, NULL, "the arguments", call->function);
}

void *offload_or_leave(struct thread *thread, enum run_crew own, strand_fn *fn, void *arg, void (*left)(void *),
                       const char *function)
{
    struct call call = {.function = function, .fn = fn, .args = arg, .attr.release = left, .own = own};
    return offload(thread, current_of(thread), &call);
}

bool offload_surely(struct thread *thread, enum run_crew own, strand_fn *fn, void *arg, const char *function)
{
    struct call call = {.function = function, .fn = fn, .args = arg, .attr.borrows = true, .own = own, .surely = true};
    struct job *job;
    bool done = make_call(&thread, current_of(thread), &call, &job) == DONE;
    if (done)
        (void)take_result(job, &call);
    return done;
}

int offload_own(struct thread **thread, enum run_crew own, unsigned why, strand_fn *fn, void *arg,
                void (*left)(void *arg), const char *function)
{
    struct call call = {.function = function,
                        .fn = fn,
                        .args = arg,
                        .attr = {.release = left, .borrows = !left},
                        .own = own,
                        .keeps = true,
                        .why = why};
    struct job *job;
    int fate = make_call(thread, current_of(*thread), &call, &job);
    if (fate == DONE)
        (void)take_result(job, &call);
    return fate;
}

static void *borrow(const char *function, strand_crew crew, strand_fn *fn, void *arg)
{
    struct thread *thread = must_be_strand(function);
    struct call call = {.function = function, .fn = fn, .args = arg, .attr = {.crew = crew, .borrows = true}};
    may_offload(thread, current_of(thread), &call);
    return offload(thread, current_of(thread), &call);
}

void *strand_offload(strand_fn *fn, void *arg)
{
    return borrow("strand_offload", (strand_crew){{0, 0}}, fn, arg);
}

void *strand_offload_on(strand_crew crew, strand_fn *fn, void *arg)
{
    return borrow("strand_offload_on", crew, fn, arg);
}

void *strand_offload_with(const strand_offload_attr *attr, strand_fn *fn, const void *args, size_t size)
{
    struct thread *thread = must_be_strand("strand_offload_with");
    struct call call = {.function = "strand_offload_with", .fn = fn, .args = (void *)(uintptr_t)args, .size = size};
    if (attr) {
        must_have_size(attr->size, offsetof(strand_offload_attr, answer), "strand_offload_attr", call.function);
        sized_take(&call.attr, sizeof call.attr, attr, attr->size);
    }
    may_offload(thread, current_of(thread), &call);
    return offload(thread, current_of(thread), &call);
}
