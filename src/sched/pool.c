/*
 * Opening, running and closing a pool. Model of its end: tests/models/closing.pml.
 */
#include "pool.h"

#include "hold.h"
#include "idle.h"
#include "pool_uring.h"
#include "posts.h"
#include "quiescent.h"
#include "records.h"
#include "runq.h"
#include "thread.h"
#include "thread_lifetime.h"
#include "timers.h"
#include "trim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening -------------------------------------------------------------------------------------------- */

/* Prepares a record that belongs to the caller: a new one, or a free one. Fields that other threads read at any time
 * stay as they are. */
static int prepare(struct pool *pool, const struct pool_plan *plan)
{
    pool->scheduler = plan->scheduler;
    pool->custom = plan->custom;
    pool->spin_ns = plan->spin_ns;
    pool->balance = plan->balance;
    pool->cpus = plan->cpus;
    pool->cpus_count = plan->cpus_count;
    pool->busy = 0;
    pool->parked = pool->eager = false;
    pool->futile = 0;
    pool->gone = NULL; /* if one thread can't start, the others end without this call */
    pool->above = NULL;
    atomic_store_explicit(&pool->watched, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->unentered, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->record_refs, 1, memory_order_relaxed);
    atomic_store_explicit(&pool->stop, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->driving, POOL_UNDRIVEN, memory_order_relaxed);
    atomic_store_explicit(&pool->size, plan->threads, memory_order_relaxed);
    list_init(&pool->sleepers);
    runq_open(&pool->global);
    timers_open(&pool->timers);
    trim_open(pool);
    int error = pool_make_threads(pool, plan->threads);
    return error || !pool->scheduler->open ? error : pool->scheduler->open(pool);
}

/* Initialises a record that no other thread knows yet, and adds it to the list of the sub-process. */
static int make_record(struct subprocess *sub, struct pool *pool, int room)
{
    pool->sub = sub;
    pool->room = room;
    pool->threads = calloc((size_t)room, sizeof *pool->threads);
    if (!pool->threads)
        return -ENOMEM;
    struct pool *older = atomic_load_explicit(&sub->pools, memory_order_relaxed);
    do
        atomic_store_explicit(&pool->older, older, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&sub->pools, &older, pool, memory_order_release,
                                                  memory_order_relaxed)); /* [PB1] */
    return 0;
}

static int open_record(struct pool *pool, const struct pool_plan *plan)
{
    struct subprocess *sub = pool->sub;
    int error = prepare(pool, plan);
    if (!error && !sub->platform && (error = arch_poller_open(&pool->poller)) && pool->scheduler->close)
        pool->scheduler->close(pool);
    if (error)
        return error;
    atomic_store_explicit(&pool->state, POOL_OPEN, memory_order_release); /* [PB1] */
    return 0;
}

static int room_for(const struct pool_plan *plan)
{
    return plan->scheduler->alone ? 1 : THREADS_MOST;
}

/* Opens the pool that stands for all closed pools. It has no threads, and no strand can be spawned onto it. */
static void open_closed(struct subprocess *sub)
{
    sub->closed.sub = sub;
    sub->closed.scheduler = &scheduler_global;
    atomic_store_explicit(&sub->closed.record_refs, 1, memory_order_relaxed); /* never dropped */
    atomic_store_explicit(&sub->closed.state, POOL_CLOSED, memory_order_relaxed);
}

int pool_open_first(struct subprocess *sub, const struct pool_plan *plan)
{
    if (plan->threads > 1 || arch_san_separate()) /* TSan has to see the operations that order strands */
        sub->concurrent = true;
    sub->memory.seeded = sub->platform != NULL;
    open_closed(sub);
    int error = make_record(sub, &sub->pool, room_for(plan));
    return error ? error : open_record(&sub->pool, plan);
}

/* ---- closing --------------------------------------------------------------------------------------------- */

/* Runs the posts that came when no thread took them any more. */
static void run_late_posts(struct pool *pool)
{
    struct post *post;
    while ((post = posts_take(&pool->posts)))
        (void)post->run(post);
}

void pool_close(struct pool *pool)
{
    pool_await_kickers(pool);
    atomic_store_explicit(&pool->state, POOL_CLOSED, memory_order_seq_cst); /* [Q1] [Q4] */
    run_late_posts(pool);
    pool_uring_close(pool);
    trim_close(pool);
    timers_close(&pool->timers);
    if (pool->scheduler->close)
        pool->scheduler->close(pool);
    if (!pool->sub->platform)
        arch_poller_close(&pool->poller);
}

void pools_free(struct subprocess *sub)
{
    struct pool *pool = atomic_load_explicit(&sub->pools, memory_order_acquire), *older; /* [PB1] */
    for (; pool; pool = older) {
        older = atomic_load_explicit(&pool->older, memory_order_relaxed);
        run_late_posts(pool);
        pool_unmake_threads(pool);
        if (pool != &sub->pool)
            free(pool);
    }
}

/* ---- running --------------------------------------------------------------------------------------------- */

static int start(struct pool *pool, int first)
{
    int size = atomic_load_explicit(&pool->size, memory_order_relaxed);
    for (int i = first; i < size; i++) {
        int error = pool_start_thread(pool, i);
        if (error) {
            /* The threads that did start must end; the others must not be waited for. */
            pool_stop(NULL, pool);
            pool_join_threads(pool, first);
            return error;
        }
    }
    return 0;
}

/* Makes thread 0 of a driven pool a seeker that waits, until a thread drives the pool. */
static void settle(struct pool *pool)
{
    thread_prepare(pool->threads[0]);
    pool_hold_new(pool->threads[0]);
    atomic_store_explicit(&pool->drive_tid, 0, memory_order_relaxed);
    atomic_fetch_add_explicit(&pool->alive, 1, memory_order_relaxed); /* the thread that drives the pool later */
    pool_enter(pool->threads[0]);
    (void)pool_settle(pool->threads[0]);
}

int pool_make(struct thread *thread, const struct pool_plan *plan, struct pool **out)
{
    struct subprocess *sub = thread->sub;
    struct pool *pool = pool_take_record(thread, room_for(plan));
    int error = 0;
    subprocess_share(thread);
    if (!pool) {
        pool = platform_refuses(thread) ? NULL : aligned_alloc(CACHE_LINE, sizeof *pool);
        if (!pool)
            return -ENOMEM;
        memset(pool, 0, sizeof *pool);
        atomic_store_explicit(&pool->state, POOL_CLOSING, memory_order_relaxed);
        if ((error = make_record(sub, pool, room_for(plan)))) {
            free(pool);
            return error;
        }
    }
    error = open_record(pool, plan);
    if (!error && (error = pool_is_driven(pool) ? 0 : start(pool, 0)))
        pool_close(pool);
    if (!error && pool_is_driven(pool))
        settle(pool);
    if (error)
        pool_record_unref(thread, pool);
    *out = pool;
    return error;
}

void pool_unmake(struct thread *thread, struct pool *pool)
{
    pool_stop(thread, pool);
    if (pool_is_driven(pool)) {
        pool_unsettle(pool->threads[0]);
        thread_leave_for_good(pool->threads[0]);
    }
    pool_join_threads(pool, 0);
    pool_close(pool);
}

/* Makes the first fibre runnable. Thread 0, which may be running already, runs it, or any thread of a common queue.
 * Only after that may a thread find the run out of work. */
static void launch(struct pool *pool, struct fibre *root, bool adopt)
{
    struct subprocess *sub = pool->sub;
    if (adopt)
        thread_push(pool->threads[0], root, PUSH_NEW);
    else
        pool_send(NULL, root);
    if (!sub->acts_when_quiescent)
        return;
    atomic_fetch_or_explicit(&sub->quiescence_waiters, QUIESCENT_VERDICT, memory_order_seq_cst); /* [Q2] */
    if (!adopt)
        pool_kick_(NULL, pool); /* the run may be quiescent by now, and no seeker has checked that */
}

static void play_threads(void *arg)
{
    struct subprocess *sub = arg;
    sub->platform->play(sub);
}

static int play(struct pool *pool, struct fibre *root)
{
    struct subprocess *sub = pool->sub;
    launch(pool, root, true);
    int error = start(pool, 0);
    if (error)
        return error;
    thread_call_watched(play_threads, sub);
    arch_san_acquire(sub);
    return 0;
}

int pool_run(struct pool *pool, struct fibre *root, bool adopt)
{
    if (pool->sub->platform)
        return play(pool, root);
    int first = adopt ? 1 : 0;
    if (adopt) {
        thread_prepare(pool->threads[0]);
        pool_enter(pool->threads[0]);
    }
    int error = start(pool, first);
    if (error)
        return error;
    launch(pool, root, adopt);
    if (adopt)
        thread_live(pool->threads[0]);
    pool_join_threads(pool, first);
    arch_san_acquire(pool->sub);
    return 0;
}
