/*
 * The lives of the system threads in a pool's records.
 *
 * ORDERING  [DV1] `driving` is a lock for those that drive a pool from outside: taken by acquire (strand_pool_drive),
 *           released by release. One drive happens before the next. `drive_tid` is only compared, under it.
 */
#include "thread_lifetime.h"

#include "hold.h"
#include "idle.h"
#include "inbox.h"
#include "pool.h"
#include "records.h"
#include "thread.h"
#include "timers.h"

#include <errno.h>

/* ---- living ---------------------------------------------------------------------------------------------- */

void thread_call_watched(void (*fn)(void *), void *arg)
{
    void *memory;
    if (arch_signals_thread_enter(&memory) < 0)
        memory = NULL; /* an overflow then ends the program without a report */
    arch_exits_watched(fn, arg);
    if (memory)
        arch_signals_thread_leave(memory);
}

static void loop(void *thread)
{
    thread_loop(thread);
    arch_san_thread_end(&((struct thread *)thread)->loop_san);
}

void thread_live(struct thread *thread)
{
    struct thread *before = thread_self();
    thread_adopt(thread);
    thread->os_id = arch_thread_id();
    pool_move(thread);
    if (thread->platform)
        thread_loop(thread);
    else
        thread_call_watched(loop, thread);
    pool_mark_parked(thread);
    thread_adopt(before);
}

/* Counts a thread out. The last one calls pool->gone. Thread 0 stays until the pool is stopped, so the last one leaves
 * after that. */
static void leave_pool(struct pool *pool)
{
    if (atomic_fetch_sub_explicit(&pool->alive, 1, memory_order_acq_rel) != 1) /* [RF1] */
        return;
    arch_san_acquire(&pool->gone);
    if (pool->gone)
        pool->gone(pool);
}

void thread_leave_for_good(struct thread *thread)
{
    leave_pool(thread->pool);
    atomic_store_explicit(&thread->life, THREAD_NONE, memory_order_seq_cst); /* [Z1] */
}

/* ---- by one who drives ------------------------------------------------------------------------------------ */

static void drive_loop(void *thread)
{
    thread_drive(thread);
    arch_san_thread_end(&((struct thread *)thread)->loop_san);
}

/* Drives the pool until `until`. While no thread drives it, thread 0 counts as a seeker that waits: work makes the
 * poller's descriptor readable. */
static void drive(struct thread *thread, int64_t until)
{
    struct pool *pool = thread->pool;
    thread_adopt(thread);
    thread->os_id = arch_thread_id();
    thread->limit = until;
    pool_move(thread);
    pool_unsettle(thread);
    thread_call_watched(drive_loop, thread);
    thread->limit = ARCH_FOREVER;
    if (pool_settle(thread))
        arch_poller_kick(&pool->poller);
    else
        arch_poller_arm(&pool->poller, timers_next(&pool->timers));
    pool_mark_parked(thread);
    thread_adopt(NULL);
}

int pool_drive(struct pool *pool, int64_t until, bool waits)
{
    struct thread *thread = pool->threads[0];
    uint32_t me = arch_thread_id(), none = 0;
    if (!atomic_compare_exchange_strong_explicit(&pool->drive_tid, &none, me, memory_order_relaxed,
                                                 memory_order_relaxed) &&
        none != me) {
        atomic_store_explicit(&pool->driving, POOL_UNDRIVEN, memory_order_release); /* [DV1] */
        return -EPERM;
    }
    thread->waits = waits;
    if (!pool_stops(pool))
        drive(thread, until);
    if (!pool_stops(pool)) {
        atomic_store_explicit(&pool->driving, POOL_UNDRIVEN, memory_order_release); /* [DV1] */
        return 1;
    }
    pool_unsettle(thread); /* the next pool in this record may have a thread of its own */
    atomic_store_explicit(&pool->driving, POOL_DRIVEN_TO_ITS_END, memory_order_release); /* [DV1] */
    thread_leave_for_good(thread);
    return 0;
}

/* ---- by one of the pool's own ------------------------------------------------------------------------------ */

/* All that the C library has made for the thread, such as its errno, was there before any strand came here. */
static void *thread_main(void *arg)
{
    struct thread *thread = arg;
    struct pool *pool = thread->pool;
    arch_san_release(&thread->sub->pool);
    if (pool->cpus && !thread->platform && arch_thread_bind(pool->cpus[thread->index % pool->cpus_count]) < 0)
        thread->sub->ops->warn(thread->sub, "a thread can't be bound to the CPU that it was opened for");
    thread_live(thread);
    leave_pool(pool);
    return NULL;
}

int pool_start_thread(struct pool *pool, int index)
{
    struct thread *thread = pool->threads[index];
    struct subprocess *sub = pool->sub;
    thread_prepare(thread);
    pool_hold_new(thread);
    pool_enter(thread);
    atomic_fetch_add_explicit(&pool->alive, 1, memory_order_relaxed);
    int error = sub->platform ? sub->platform->start(thread, thread_main)
                              : arch_thread_start(&thread->os, thread_main, thread, "strand");
    if (error) {
        atomic_fetch_sub_explicit(&pool->alive, 1, memory_order_relaxed);
        atomic_store_explicit(&thread->life, THREAD_NONE, memory_order_seq_cst); /* [Z1] */
        pool_pass_on(thread); /* [Z1] it was HERE for a moment: others may have posted to it */
        pool_leave(thread);
        if (atomic_load_explicit(&pool->kick, memory_order_seq_cst)) /* [K1] */
            pool_kick_(NULL, pool);
    }
    return error;
}

/* Waits until the driver has left the pool. The library can't join that thread. */
static void await_driver(struct thread *thread)
{
    while (thread_life(thread) != THREAD_NONE)
        platform_await(thread_self());
}

void pool_join_thread(struct thread *thread)
{
    if (thread_life(thread) == THREAD_NONE)
        return;
    if (pool_is_driven(thread->pool))
        await_driver(thread);
    else if (thread->platform)
        thread->platform->join(thread);
    else
        arch_thread_join(thread->os);
    atomic_store_explicit(&thread->life, THREAD_NONE, memory_order_seq_cst); /* [Z1] */
}

void pool_join_threads(struct pool *pool, int first)
{
    for (int i = first; i < pool_count(pool); i++)
        pool_join_thread(pool->threads[i]);
}
