/*
 * How many threads a pool has. Page: docs/protocols/resize.md.
 *
 * PARTIES   the resizer (one at a time: pool->resizing); the threads; posters to a thread's inbox.
 * STATE     life, of each thread's record: NONE -> HERE (resizer, before the thread of the system begins); HERE ->
 *           LEAVING and back (resizer, by compare-and-swap); LEAVING -> GONE (the thread, by compare-and-swap); GONE ->
 *           NONE (resizer, when the thread of the system has ended); HERE -> NONE (resizer, if the system has no thread
 *           for it). SWITCH_LEAVE mirrors LEAVING for the thread's own switch, which then goes to the loop, whichever
 *           fibre comes next.
 * PROTOCOL  the resizer shrinks from the end: LEAVING, SWITCH_LEAVE, pool_rouse. The thread, in its loop: GONE; then it
 *           empties its queue and its inbox into those of others; then it is not busy any more. Thread 0 stays.
 *           Growing: LEAVING -> HERE again if the thread has not gone yet; else it is joined, and another one begins. A
 *           pinner, which keeps a thread, excludes the resizer.
 * INVARIANT [Z1] a fibre that is posted to a thread's inbox is found: by the thread, before it goes; or by the poster,
 *           which checks after the post whether the thread has gone, and then takes the inbox itself; or by the
 *           resizer, if the system has no thread for the record. [Z2] a thread that strands are pinned to stays.
 *           [Z3] a thread that has to leave is awake, or is woken, and finds SWITCH_LEAVE set.
 * ORDERING  life and the inboxes: seq_cst. Poster: post, load life. Thread: store GONE, take the inbox [Z1].
 *           SWITCH_LEAVE is changed by release, after life, and loaded by acquire: a thread that finds it set finds
 *           LEAVING. Before it sleeps, a thread loads it under the pool's lock, or after it has released the lock with
 *           which it became claimable; pool_rouse takes that lock after the bit is set [Z3].
 * PROGRESS  resizing waits for threads that have gone and are about to end, no others: not for a strand that computes.
 * NOT DONE  queues without owners that thieves empty: under full load there is no thief.
 * TESTED BY tests/models/resize.pml.
 */
#include "resize.h"

#include "idle.h"
#include "pinned.h"
#include "pool.h"
#include "records.h"
#include "thread.h"
#include "thread_lifetime.h"

#include "../stack/stack.h"

#include <errno.h>

/* ---- the thread's side ----------------------------------------------------------------------------------- */

bool thread_goes_(struct thread *thread)
{
    struct pool *pool = thread->pool;
    uint32_t leaving = THREAD_LEAVING;
    if (!atomic_compare_exchange_strong_explicit(&thread->life, &leaving, THREAD_GONE, memory_order_seq_cst,
                                                 memory_order_seq_cst)) /* [Z1] */
        return false;                                                   /* the resizer has called it back */
    if (pool->scheduler->leave)
        pool->scheduler->leave(thread);
    stack_cache_flush(&thread->stacks);
    thread->sub->ops->thread_leave(thread);
    pool_leave(thread);
    if (atomic_load_explicit(&pool->kick, memory_order_seq_cst)) /* [K1] for fibres that it posted */
        pool_kick_(thread, pool);
    return true;
}

/* ---- the resizer's side ---------------------------------------------------------------------------------- */

/* Makes a thread that is HERE leave. */
static void send_away(struct thread *by, struct thread *thread)
{
    atomic_store_explicit(&thread->life, THREAD_LEAVING, memory_order_seq_cst);             /* [Z1] */
    atomic_fetch_or_explicit(&thread->slow_switch.any, SWITCH_LEAVE, memory_order_release); /* [Z3] */
    pool_rouse(by, thread);
}

/* Keeps a thread that is about to leave. Returns false if it has gone, or was not about to. */
static bool call_back(struct thread *thread)
{
    uint32_t leaving = THREAD_LEAVING;
    if (!atomic_compare_exchange_strong_explicit(&thread->life, &leaving, THREAD_HERE, memory_order_seq_cst,
                                                 memory_order_seq_cst)) /* [Z1] */
        return false;
    atomic_fetch_and_explicit(&thread->slow_switch.any, ~(uint32_t)SWITCH_LEAVE, memory_order_release); /* [Z3] */
    return true;
}

static int add_thread(struct thread *by, struct pool *pool, int index)
{
    int error = platform_refuses(by) ? -ENOMEM : pool_make_threads(pool, index + 1);
    if (error || call_back(pool->threads[index]))
        return error;
    pool_join_thread(pool->threads[index]);
    return pool_start_thread(pool, index);
}

/* Adds threads, as many as the system gives. Returns 0 or a negated errno code. */
static int grow(struct thread *by, struct pool *pool, int from, int to)
{
    int error = 0;
    for (int i = from; i < to && !(error = add_thread(by, pool, i)); i++)
        atomic_store_explicit(&pool->size, i + 1, memory_order_release); /* [PB1] */
    return error;
}

/* Makes the last threads leave, or none if strands are pinned to one of them. Returns 0 or -EBUSY. */
static int shrink(struct thread *by, struct pool *pool, int from, int to)
{
    for (int i = to; i < from; i++)
        if (atomic_load_explicit(&pool->threads[i]->pinned.strands, memory_order_relaxed))
            return -EBUSY; /* [Z2] */
    for (int i = from - 1; i >= to; i--) {
        atomic_store_explicit(&pool->size, i, memory_order_release); /* [PB1]; late posts to it: [Z1] */
        send_away(by, pool->threads[i]);
    }
    return 0;
}

/* Joins the threads that have gone. Only a resizer may wait for them. */
static void join_gone(struct pool *pool)
{
    for (int i = 0; i < pool_count(pool); i++)
        if (thread_life(pool->threads[i]) == THREAD_GONE)
            pool_join_thread(pool->threads[i]);
}

int pool_resize(struct thread *by, struct pool *pool, int threads)
{
    if (threads > 1)
        subprocess_share(by);
    spin_lock(&pool->resizing, by);
    if (atomic_load_explicit(&pool->state, memory_order_relaxed) != POOL_OPEN) {
        spin_unlock(&pool->resizing);
        return -ESHUTDOWN;
    }
    join_gone(pool);
    int from = atomic_load_explicit(&pool->size, memory_order_relaxed);
    int error = threads > from ? grow(by, pool, from, threads) : shrink(by, pool, from, threads);
    spin_unlock(&pool->resizing);
    return error;
}

int pool_threads(struct pool *pool)
{
    int here = 0;
    for (int i = 0; i < pool_count(pool); i++)
        here += thread_life(pool->threads[i]) == THREAD_HERE || thread_life(pool->threads[i]) == THREAD_LEAVING;
    return here;
}

/* ---- pinning --------------------------------------------------------------------------------------------- */

int pool_pin(struct thread *by, struct pool *pool, int index, struct thread **out)
{
    int error = 0;
    spin_lock(&pool->resizing, by);
    if (atomic_load_explicit(&pool->state, memory_order_relaxed) != POOL_OPEN && pool != by->pool)
        error = -ESHUTDOWN;
    else if (index >= atomic_load_explicit(&pool->size, memory_order_relaxed))
        error = -ENXIO;
    else
        atomic_fetch_add_explicit(&pool->threads[index]->pinned.strands, 1, memory_order_relaxed); /* [Z2] */
    spin_unlock(&pool->resizing);
    *out = error ? NULL : pool->threads[index];
    return error;
}

void pool_unpin(struct thread *thread)
{
    atomic_fetch_sub_explicit(&thread->pinned.strands, 1, memory_order_relaxed);
}
