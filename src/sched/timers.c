/*
 * The timers of timers.h: one heap per pool, under one lock, which a sub-process of one thread does not take.
 * `next` mirrors the least key; it is written under the lock and read without it, to decide whether to look.
 */
#include "timers.h"

#include "driver.h"
#include "pool.h"
#include "thread.h"

/* Fired in one go under the lock; the others of the pool get at it in between. */
enum { FIRE_BATCH = 128 };

void timers_open(struct timers *timers)
{
    heap_init(&timers->heap);
    atomic_init(&timers->next, ARCH_FOREVER);
    atomic_flag_clear(&timers->lock);
}

void timers_close(struct timers *timers)
{
    heap_close(&timers->heap);
}

void timer_init(struct timer *timer, struct fibre *(*fire)(struct timer *))
{
    timer->node.place = HEAP_NOWHERE;
    timer->fire = fire;
}

static void lock(struct thread *thread, struct timers *timers)
{
    if (thread->shared)
        spin_lock(&timers->lock, thread);
}

static void unlock(struct thread *thread, struct timers *timers)
{
    atomic_store_explicit(&timers->next, heap_least(&timers->heap), memory_order_relaxed);
    if (thread->shared)
        spin_unlock(&timers->lock);
}

int timer_start(struct thread *thread, struct pool *pool, struct timer *timer, int64_t when)
{
    struct timers *timers = &pool->timers;
    lock(thread, timers);
    int64_t before = heap_least(&timers->heap);
    int error = heap_add(&timers->heap, when, &timer->node);
    unlock(thread, timers);
    if (!error && when < before)
        pool_retime(thread, pool, when);
    return error;
}

bool timer_stop(struct thread *thread, struct pool *pool, struct timer *timer)
{
    struct timers *timers = &pool->timers;
    lock(thread, timers);
    bool pending = timer->node.place != HEAP_NOWHERE;
    if (pending)
        heap_remove(&timers->heap, &timer->node);
    unlock(thread, timers);
    return pending;
}

/* Fires up to FIRE_BATCH and links what they wake, through the links that their fibres are queued by. */
static int fire_some(struct thread *thread, struct timers *timers, int64_t now, struct link *woken)
{
    int fired = 0;
    lock(thread, timers);
    while (fired < FIRE_BATCH && heap_least(&timers->heap) <= now) {
        struct timer *timer = CONTAINER(heap_pop(&timers->heap), struct timer, node);
        struct fibre *fibre = timer->fire(timer);
        if (fibre)
            list_push_back(woken, &fibre->queued);
        fired++;
    }
    unlock(thread, timers);
    return fired;
}

int timers_fire(struct thread *thread, struct pool *pool, int64_t now)
{
    int fired = 0, some;
    do {
        struct link woken, *link;
        list_init(&woken);
        fired += some = fire_some(thread, &pool->timers, now, &woken);
        while ((link = list_pop_front(&woken)))
            pool_deliver(thread, CONTAINER(link, struct fibre, queued));
    } while (some == FIRE_BATCH);
    return fired;
}
