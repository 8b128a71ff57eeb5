/*
 * Calls that block their thread, on a bounded crew of plain threads. Page: docs/protocols/offload.md.
 *
 * PARTIES   the strand; a crew thread; the pool's thread that takes the crew's post.
 * STATE     a job, in memory of its own: queued, running, over. The crew's lock covers the queue and every job's
 *           state and epoch.
 * PROTOCOL  the strand arms its wait, queues the job, parks. A crew thread runs it and posts; the post, on a thread
 *           of the pool, sets `over` and claims the wait of the epoch that it finds. An interrupted strand takes a
 *           queued job back; a running one it waits for again, uninterruptibly, under a new epoch, which it sets
 *           under the lock: so either the post finds the new epoch or the strand finds `over`. Of a job that may be
 *           left, it says `left` under the lock and goes; the crew thread sees that before it would post.
 * OWNERSHIP the job is the strand's to free: after the post has claimed, or (seen under the lock) set `over`. One that
 *           was left is the crew thread's.
 */
#include "../../include/strand/io.h"

#include "offload.h"

#include "../strand/exception.h"
#include "../strand/fibre.h"
#include "../strand/interrupt.h"
#include "../strand/misuse.h"

#include <errno.h>
#include <stdlib.h>

enum job_state { JOB_QUEUED, JOB_RUNNING, JOB_LEFT, JOB_POSTED, JOB_OVER };
enum { CREW_USUAL = 8, CREW_MOST = 1024 };

struct job {
    struct link link; /* in crew->queue */
    struct post post;
    struct crew *crew;
    strand_fn *fn;
    void *arg, *result;
    void (*left)(void *arg); /* NULL: it is waited for */
    struct wait_node node;   /* of its waiter; never linked */
    enum job_state state;
};

struct place {
    struct driver_thread thread;
    bool taken;
};

struct crew {
    struct pool *pool;
    atomic_flag lock;
    bool closing;
    struct link queue;
    int running, idle;
    int queued;             /* jobs in the queue, or about to be put there */
    int taken, most;        /* places: of those that run or are about to be hired; all */
    _Atomic uint32_t calls; /* futex: changes with every job */
    struct place places[];
};

static void lock(struct crew *crew)
{
    spin_lock(&crew->lock, NULL);
}

static void unlock(struct crew *crew)
{
    spin_unlock(&crew->lock);
}

/* ---- the crew's side ------------------------------------------------------------------------------------- */

/* On a thread of the pool. */
static struct member *job_over(struct post *post)
{
    struct job *job = CONTAINER(post, struct job, post);
    arch_note_acquire(post);
    struct cb *waiter = job->node.waiter;
    struct crew *crew = job->crew;
    lock(crew);
    job->state = JOB_OVER;
    arch_note_release(&waiter->member);
    bool claimed = wait_claim(&job->node, true);
    unlock(crew);
    return claimed ? &waiter->member : NULL;
}

/* The next job, or NULL: the crew is closing. Sleeps when there is none. */
static struct job *next_job(struct crew *crew)
{
    for (;;) {
        lock(crew);
        struct link *link = list_pop_front(&crew->queue);
        bool closing = crew->closing;
        uint32_t calls = atomic_load_explicit(&crew->calls, memory_order_relaxed);
        if (link) {
            CONTAINER(link, struct job, link)->state = JOB_RUNNING;
            crew->queued--;
        } else {
            crew->idle++;
        }
        unlock(crew);
        if (link)
            return CONTAINER(link, struct job, link);
        if (!closing)
            driver_word_wait(crew->pool->sub, &crew->calls, calls);
        lock(crew);
        crew->idle--;
        unlock(crew);
        if (closing)
            return NULL;
    }
}

static void *crew_main(void *arg)
{
    struct crew *crew = arg;
    struct job *job;
    while ((job = next_job(crew))) {
        job->result = job->fn(job->arg);
        must_be_here((struct runtime *)crew->pool->sub, "strand_offload");
        lock(crew);
        bool left = job->state == JOB_LEFT;
        job->state = JOB_POSTED;
        unlock(crew);
        if (left) {
            job->left(job->arg);
            free(job);
            continue;
        }
        job->post.run = job_over;
        arch_note_release(&job->post);
        pool_post(job->node.waiter->member.fibre->pool, &job->post);
    }
    return NULL;
}

static void crew_close(struct crew *crew)
{
    lock(crew);
    crew->closing = true;
    unlock(crew);
    atomic_fetch_add_explicit(&crew->calls, 1, memory_order_release);
    driver_word_wake(crew->pool->sub, &crew->calls, crew->running);
    for (int i = 0; i < crew->most; i++)
        if (crew->places[i].taken)
            driver_thread_join(crew->pool->sub, &crew->places[i].thread);
    free(crew);
}

/* ---- the strands' side ----------------------------------------------------------------------------------- */

/* The run's crew, made by the first who needs it. NULL: no memory. */
static struct crew *crew_of(struct thread *thread)
{
    struct runtime *runtime = runtime_of(thread);
    struct crew *crew = atomic_load_explicit(&runtime->crew, memory_order_acquire), *none = NULL;
    if (crew)
        return crew;
    int most = runtime->options.offload_threads > 0 ? runtime->options.offload_threads : CREW_USUAL;
    most = most < CREW_MOST ? most : CREW_MOST;
    crew = driver_calloc(thread, 1, sizeof *crew + (size_t)most * sizeof *crew->places);
    if (!crew)
        return NULL;
    crew->pool = thread->pool;
    crew->most = most;
    list_init(&crew->queue);
    if (atomic_compare_exchange_strong_explicit(&runtime->crew, &none, crew, memory_order_acq_rel,
                                                memory_order_acquire)) {
        runtime->crew_close = crew_close;
        return crew;
    }
    free(crew);
    return none;
}

/* Under the lock. NULL: all are taken. */
static struct place *take_place(struct crew *crew)
{
    if (crew->taken == crew->most)
        return NULL;
    struct place *place = crew->places;
    while (place->taken)
        place++;
    place->taken = true;
    crew->taken++;
    return place;
}

/* For a job that is about to be queued: one more thread if all are busy, and another may be had; that is made outside
 * of the lock, for it may take long. Returns a negated errno code if there is none at all. */
static int hire(struct thread *thread, struct crew *crew)
{
    struct place *place = NULL;
    for (bool some = false; !some;) {
        lock(crew);
        if (crew->queued >= crew->idle) /* an idle one may be on its way to a job already */
            place = take_place(crew);
        some = place || crew->running;
        crew->queued += some;
        unlock(crew);
        if (!some)
            driver_await(thread); /* the first are being hired */
    }
    if (!place)
        return 0;
    int error = driver_thread_start(crew->pool->sub, &place->thread, crew_main, crew, "strand-crew");
    lock(crew);
    if (error) {
        place->taken = false;
        crew->taken--;
    }
    crew->running += !error;
    bool some = crew->running > 0;
    crew->queued -= !some;
    unlock(crew);
    return some ? 0 : error;
}

static void enqueue(struct crew *crew, struct job *job)
{
    lock(crew);
    list_push_back(&crew->queue, &job->link);
    unlock(crew);
    atomic_fetch_add_explicit(&crew->calls, 1, memory_order_release);
    driver_word_wake(crew->pool->sub, &crew->calls, 1);
}

/* The strand was interrupted: true if the job had not been taken up, and now never will be. */
static bool take_back(struct crew *crew, struct job *job)
{
    lock(crew);
    bool queued = job->state == JOB_QUEUED;
    if (queued) {
        list_remove(&job->link);
        crew->queued--;
    }
    unlock(crew);
    return queued;
}

/* The same: true if it runs, and may be left to the crew. */
static bool leave(struct crew *crew, struct job *job)
{
    lock(crew);
    bool may = job->left && job->state == JOB_RUNNING;
    if (may)
        job->state = JOB_LEFT;
    unlock(crew);
    return may;
}

/* Wait on, uninterruptibly. */
static void see_it_through(struct thread *thread, struct cb *me, struct crew *crew, struct job *job)
{
    uint32_t epoch = wait_arm(thread, me, WAIT_FLOOR_MOST);
    lock(crew);
    job->node.epoch = epoch;
    bool over = job->state == JOB_OVER;
    unlock(crew);
    if (over && wait_retract(thread, me))
        return;
    thread_park(thread);
    wait_over(me);
}

/* Nothing runs, or ever will. */
static void take_away(struct job *job)
{
    if (job->left)
        job->left(job->arg);
    free(job);
}

/* Until it is over: true. False: interrupted, and the job is nothing to this strand any more. */
static bool do_job(struct thread **thread, struct cb *me, struct crew *crew, struct job *job)
{
    wait_because(*thread, me, BLOCKED_OFFLOAD, 0);
    job->node.epoch = wait_arm(*thread, me, own_of(me)->floor);
    enqueue(crew, job);
    if (interrupted(me) && take_back(crew, job)) { /* [W4] nobody but an interruption can have claimed it */
        if (!wait_retract(*thread, me)) {
            *thread = thread_park(*thread);
            wait_over(me);
        }
        take_away(job);
        return false;
    }
    *thread = thread_park(*thread);
    if (wait_over(me) == WAIT_WON)
        return true;
    if (take_back(crew, job)) {
        take_away(job);
        return false;
    }
    if (leave(crew, job))
        return false;
    see_it_through(*thread, me, crew, job);
    return true;
}

/* left: NULL, or as for offload_or_leave. */
static void *offload(struct thread *thread, strand_fn *fn, void *arg, void (*left)(void *), const char *function)
{
    struct cb *me = current_of(thread);
    struct crew *crew = crew_of(thread);
    struct job *job = crew ? driver_malloc(thread, sizeof *job) : NULL;
    int error = job ? hire(thread, crew) : -ENOMEM;
    if (error) {
        free(job);
        if (left)
            left(arg);
        if (error == -ENOMEM)
            throw_no_memory(me, function);
        throw_system(me, error, left ? "no thread can be had to call for it" : "strand_offload: no thread can be had");
    }
    *job = (struct job){.crew = crew, .fn = fn, .arg = arg, .left = left, .node.waiter = me, .state = JOB_QUEUED};
    if (!do_job(&thread, me, crew, job))
        interrupt_throw(thread, me, 0);
    void *result = job->result;
    free(job);
    return result;
}

void *offload_or_leave(struct thread *thread, strand_fn *fn, void *arg, void (*left)(void *), const char *function)
{
    return offload(thread, fn, arg, left, function);
}

void *strand_offload(strand_fn *fn, void *arg)
{
    struct thread *thread = must_be_strand("strand_offload");
    may_block(thread, current_of(thread), "strand_offload");
    if (!fn)
        MISUSE("strand_offload", "", "the function is NULL");
    must_not_escape(thread, arg, "the argument", "strand_offload");
    return offload(thread, fn, arg, NULL, "strand_offload");
}
