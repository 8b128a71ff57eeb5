/*
 * Crews: their queues, and the life of their threads. The protocol block is in crew.h; opening, finding and ending a
 * crew is in crew_open.c.
 */
#include "crew.h"

#include "outside.h"

#include "../strand/hook.h"
#include "../strand/misuse.h"
#include "../strand/print.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct crew_thread {
    struct crew *crew;
    struct link link;   /* in crew->asleep */
    struct link member; /* in crew->all, as soon as `thread` is known */
    _Atomic uint32_t woken;
    struct platform_thread thread;
};

/* ---- calling user functions --------------------------------------------------------------------------------- */

const char *crew_made(const struct crew_origin *origin, char *buffer, size_t size)
{
    char where[LOCATION_WORDS];
    if (!origin->site)
        return "the crew is the run's own";
    snprintf(buffer, size, "the crew '%s' was opened in %s", origin->name,
             print_location_line(origin->site, where, sizeof where));
    return buffer;
}

static const char *made_hook(const struct hook *hook, char *buffer, size_t size)
{
    const struct crew *crew = hook->object;
    return crew ? crew_made(&crew->origin, buffer, size) : "";
}

void crew_call_hook(struct crew *crew, const char *name, void (*fn)(void *), void *arg)
{
    if (!fn)
        return;
    struct hook hook HOOK = {.name = name, .made = made_hook, .object = crew};
    hook_enter(&hook);
    fn(arg);
    hook_over(&hook);
}

void job_discard(struct job *job, bool ran)
{
    struct crew *crew = job->arrival.crew;
    if (ran)
        crew_call_hook(crew, "strand_offload_attr.drop", job->drop, job->result);
    crew_call_hook(crew, "strand_offload_attr.release", job->release, job->arg);
    free(job);
}

/* Report misuse if a job's function has not returned. */
static void must_have_returned(struct job **running)
{
    if (*running)
        misuse(
            (*running)->function, crew_made(&(*running)->arrival.crew->origin, MADE_ROOM),
            "the function has ended its thread, or was left by an exception, instead of returning: let it return, and "
            "catch exceptions in it");
}

static void *call(struct job *job)
{
    struct job *running __attribute__((cleanup(must_have_returned))) = job;
    void *result = job->fn(job->arg);
    must_be_here((struct runtime *)job->arrival.crew->sub, "strand_offload");
    running = NULL;
    return result;
}

/* ---- arrivals --------------------------------------------------------------------------------------------- */

/* Under the lock. Returns the strand if the caller has to make it runnable. */
static struct member *arrive(struct arrival *arrival)
{
    struct cb *waiter = arrival->node.waiter;
    arrival->over = true;
    arch_san_release(&waiter->member);
    return wait_claim(&arrival->node, true) ? &waiter->member : NULL;
}

/* On a thread of the strand's pool. */
static struct member *arrive_by_post(struct post *post)
{
    struct arrival *arrival = CONTAINER(post, struct arrival, post);
    arch_san_acquire(post);
    struct crew *crew = arrival->crew;
    crew_lock(crew, thread_self());
    struct member *member = arrive(arrival);
    crew_unlock(crew);
    return member;
}

static void post(struct arrival *arrival)
{
    struct pool *pool = arrival->pool;
    arrival->post.run = arrive_by_post;
    arch_san_release(&arrival->post);
    pool_post(pool, &arrival->post);
}

bool crew_await(struct thread **thread, struct cb *me, struct arrival *arrival, unsigned why, uint32_t floor)
{
    wait_because(*thread, me, why, 0);
    uint32_t epoch = wait_arm(*thread, me, floor);
    crew_lock(arrival->crew, *thread);
    arrival->node.epoch = epoch;
    bool over = arrival->over;
    crew_unlock(arrival->crew);
    return outside_await(thread, me, over, floor);
}

/* ---- a crew's thread -------------------------------------------------------------------------------------- */

/* Under the lock, which it releases meanwhile. Returns false if the sleep has timed out. */
static bool sleep_until_called(struct crew_thread *own)
{
    struct crew *crew = own->crew;
    atomic_store_explicit(&own->woken, 0, memory_order_relaxed);
    list_push_front(&crew->asleep, &own->link);
    crew->sleeping++;
    crew_unlock(crew);
    int64_t now = platform_now(crew->sub);
    int64_t until = crew->idle_ns < ARCH_FOREVER - now ? now + crew->idle_ns : ARCH_FOREVER;
    do {
        platform_word_wait(crew->sub, &own->woken, 0, until);
        must_be_here((struct runtime *)crew->sub, "fork"); /* a signal handler may have forked */
    } while (!atomic_load_explicit(&own->woken, memory_order_relaxed) && platform_now(crew->sub) < until);
    crew_lock(crew, NULL);
    if (!own->link.next)
        return true;
    list_remove(&own->link);
    crew->sleeping--;
    return false;
}

/* Under the lock. Returns NULL if the thread has to exit. */
static struct job *next_job(struct crew_thread *own)
{
    struct crew *crew = own->crew;
    for (bool late = false; list_empty(&crew->queue); late = !sleep_until_called(own))
        if (late || crew->closing)
            return NULL;
    struct job *job = CONTAINER(list_pop_front(&crew->queue), struct job, link);
    job->state = JOB_RUNNING;
    crew->queued--;
    crew->running++;
    return job;
}

/* Decrements `running` before the post, so that a caller that makes one call after the other finds this thread looking
 * for a job. */
static void hand_over(struct crew *crew, struct job *job)
{
    crew->running--;
    crew_unlock(crew);
    post(&job->arrival);
    crew_lock(crew, NULL);
}

static void discard_left(struct crew *crew, struct job *job)
{
    bool mine = !job->in_stop; /* [O6] */
    crew_unlock(crew);
    if (mine)
        job_discard(job, true);
    atomic_fetch_add_explicit(&crew->sub->helpers, 1, memory_order_release); /* [Q5] */
    crew_lock(crew, NULL);
    crew->running--;
}

/* Under the lock, which it releases meanwhile. */
static void run(struct crew *crew, struct job *job)
{
    crew_unlock(crew);
    platform_plain_point(crew->sub);
    void *result = call(job);
    platform_plain_point(crew->sub);
    crew_lock(crew, NULL);
    job->result = result;
    job->state = JOB_RETURNED;
    if (job->left) /* [O5] */
        discard_left(crew, job);
    else
        hand_over(crew, job);
}

bool crew_is_last(const struct crew *crew)
{
    return crew->closing && !crew->threads && !crew->callers;
}

void crew_notify_end(struct crew *crew)
{
    if (crew->end.pool)
        post(&crew->end);
}

static void join(struct crew *crew, struct crew_thread *other)
{
    platform_thread_join(crew->sub, &other->thread);
    free(other);
}

/* Under the lock, which it releases: exit. Joins the thread that exited before, unless that one's id is not known yet:
 * so few threads are left for the end of the crew, which joins all. */
static void go(struct crew_thread *own)
{
    struct crew *crew = own->crew;
    struct crew_thread *before = NULL;
    if (!crew->closing) {
        before = crew->gone && crew->gone->member.next ? crew->gone : NULL;
        crew->gone = own;
    }
    if (before)
        list_remove(&before->member);
    crew->threads--;
    bool last = crew_is_last(crew);
    crew_unlock(crew);
    if (last)
        crew_notify_end(crew);
    if (before)
        join(crew, before);
}

static void *crew_main(void *arg)
{
    struct crew_thread *own = arg;
    struct crew *crew = own->crew;
    struct subprocess *sub = crew->sub;
    crew_lock(crew, NULL);
    for (struct job *job; (job = next_job(own));)
        run(crew, job);
    go(own);
    atomic_fetch_sub_explicit(&sub->helpers, 1, memory_order_release); /* [Q5] */
    return NULL;
}

/* ---- growing ---------------------------------------------------------------------------------------------- */

/* Under the lock: whether more jobs are queued than threads look for one [O1]. */
static bool is_short(const struct crew *crew)
{
    return crew->queued > crew->threads - crew->running - crew->sleeping;
}

/* Under the lock: take the thread that went to sleep last, which the caller then wakes. NULL: no thread sleeps. */
static struct crew_thread *take_sleeper(struct crew *crew)
{
    struct link *link = list_pop_front(&crew->asleep);
    if (!link)
        return NULL;
    struct crew_thread *sleeper = CONTAINER(link, struct crew_thread, link);
    crew->sleeping--;
    atomic_store_explicit(&sleeper->woken, 1, memory_order_relaxed);
    return sleeper;
}

/* The thread may have exited meanwhile, and its memory been reused: only the address is used. */
static void wake(struct crew *crew, struct crew_thread *sleeper)
{
    if (sleeper)
        platform_word_wake(crew->sub, &sleeper->woken, 1);
}

/* The thread has been counted already. Without the lock: creating it may take long. */
static int make_thread(struct thread *thread, struct crew *crew)
{
    struct crew_thread *new = platform_calloc(thread, 1, sizeof *new);
    if (!new)
        return -ENOMEM;
    new->crew = crew;
    atomic_fetch_add_explicit(&crew->sub->helpers, 1, memory_order_relaxed);
    int error = platform_thread_start(crew->sub, &new->thread, crew_main, new, crew->origin.name, crew->calls);
    if (error) {
        atomic_fetch_sub_explicit(&crew->sub->helpers, 1, memory_order_relaxed);
        free(new);
        return error;
    }
    crew_lock(crew, thread);
    list_push_back(&crew->all, &new->member);
    crew_unlock(crew);
    return 0;
}

void crew_turn_away(struct crew *crew, enum job_state why, struct batch *batch)
{
    struct link *link;
    while ((link = list_pop_front(&crew->queue))) {
        struct job *job = CONTAINER(link, struct job, link);
        job->state = why;
        crew->queued--;
        batch_add(batch, arrive(&job->arrival));
    }
}

/* Create one more thread, for this job among others. If that fails, the existing threads have to do. */
static int grow(struct thread *thread, struct crew *crew, struct job *job)
{
    platform_point(thread);
    int error = make_thread(thread, crew);
    if (!error)
        return 0;
    struct batch batch;
    batch_init(&batch);
    crew_lock(crew, thread);
    bool none = --crew->threads == 0, refused = none && job->state == JOB_QUEUED;
    if (refused) {
        list_remove(&job->link);
        crew->queued--;
    }
    if (none)
        crew_turn_away(crew, JOB_AGAIN, &batch); /* [O2] their callers may have counted on this thread */
    struct crew_thread *sleeper = is_short(crew) ? take_sleeper(crew) : NULL; /* another thread, likewise [O1] */
    crew_unlock(crew);
    batch_deliver(thread, &batch);
    wake(crew, sleeper);
    return refused ? error : 0;
}

/* Under the lock: whether as many jobs wait as may. */
static bool is_full(const struct crew *crew)
{
    bool grows = crew->threads < crew->most || crew->sleeping;
    return crew->most_waiting && !grows && crew->queued >= crew->threads - crew->running + crew->most_waiting;
}

int crew_submit(struct thread *thread, struct crew *crew, struct job *job)
{
    struct crew_thread *sleeper = NULL;
    bool grows = false;
    crew_lock(crew, thread);
    int error = crew->closing ? -ECANCELED : is_full(crew) ? -ENOBUFS : 0;
    if (!error) {
        job->state = JOB_QUEUED;
        job->arrival.over = false;
        list_push_back(&crew->queue, &job->link);
        crew->queued++;
        bool more = is_short(crew);
        sleeper = more ? take_sleeper(crew) : NULL;
        grows = more && !sleeper && crew->threads < crew->most;
        crew->threads += grows;
    }
    crew_unlock(crew);
    wake(crew, sleeper);
    return grows ? grow(thread, crew, job) : error;
}

/* ---- the end of a crew -------------------------------------------------------------------------------------- */

void crew_wake_all(struct thread *thread, struct crew *crew)
{
    struct crew_thread *sleeper;
    do {
        crew_lock(crew, thread);
        sleeper = take_sleeper(crew);
        crew_unlock(crew);
        wake(crew, sleeper);
    } while (sleeper);
}

void crew_join_all(struct crew *crew)
{
    struct link *link;
    while ((link = list_pop_front(&crew->all)))
        join(crew, CONTAINER(link, struct crew_thread, member));
}
