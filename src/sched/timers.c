/*
 * The timers of timers.h: one heap per pool, under one lock, which a sub-process of one thread does not take.
 * `next` mirrors the least key; it is written under the lock and read without it, to decide whether to look.
 */
#include "timers.h"

#include "platform.h"
#include "thread.h"

#include <errno.h>

/* How many timers fire in one go under the lock. Other threads of the pool can take it in between. */
enum { FIRE_BATCH = 128 };

void timers_open(struct timers *timers)
{
    heap_init(&timers->heap);
    atomic_init(&timers->next, ARCH_FOREVER);
    atomic_init(&timers->count, 0);
    atomic_init(&timers->excused, 0);
    atomic_flag_clear_explicit(&timers->lock, memory_order_relaxed);
}

void timers_close(struct timers *timers)
{
    heap_close(&timers->heap);
}

void timer_init(struct timer *timer, enum timer_type type, uint32_t index)
{
    timer->node.index = HEAP_NOWHERE;
    timer->type = type;
    timer->excused = false;
    timer->index = index & 0xffffff;
}

static void lock(struct thread *thread, struct timers *timers)
{
    spin_lock_if_concurrent(&timers->lock, thread);
}

static void unlock(struct thread *thread, struct timers *timers)
{
    atomic_store_explicit(&timers->next, heap_least(&timers->heap), memory_order_relaxed);
    atomic_store_explicit(&timers->count, timers->heap.count, memory_order_relaxed);
    spin_unlock_if_concurrent(&timers->lock, thread);
}

int timer_start(struct thread *thread, struct pool *pool, struct timer *timer, int64_t when)
{
    struct timers *timers = &pool->timers;
    lock(thread, timers);
    int64_t before = heap_least(&timers->heap);
    int error = platform_refuses(thread) ? -ENOMEM : heap_add(&timers->heap, when, &timer->node);
    unlock(thread, timers);
    if (!error && when < before)
        pool_retime(thread, pool, when);
    return error;
}

bool timer_move(struct thread *thread, struct pool *pool, struct timer *timer, int64_t when)
{
    struct timers *timers = &pool->timers;
    lock(thread, timers);
    int64_t before = heap_least(&timers->heap);
    bool pending = timer->node.index != HEAP_NOWHERE;
    if (pending) {
        heap_remove(&timers->heap, &timer->node);
        int error = heap_add(&timers->heap, when, &timer->node);
        ASSERT(!error); /* the removal has left room */
        (void)error;
    }
    unlock(thread, timers);
    if (pending && when < before)
        pool_retime(thread, pool, when);
    return pending;
}

bool timer_stop(struct thread *thread, struct pool *pool, struct timer *timer)
{
    struct timers *timers = &pool->timers;
    lock(thread, timers);
    bool pending = timer->node.index != HEAP_NOWHERE;
    if (pending)
        heap_remove(&timers->heap, &timer->node);
    unlock(thread, timers); /* [TM1] */
    return pending;
}

/* Changes whether a timer is excused. Under the lock. */
static void excuse(struct timers *timers, struct timer *timer, bool excused)
{
    uint32_t count = atomic_load_explicit(&timers->excused, memory_order_relaxed) + excused - timer->excused;
    atomic_store_explicit(&timers->excused, count, memory_order_relaxed);
    timer->excused = excused;
}

void timer_excuse(struct thread *thread, struct pool *pool, struct timer *timer, bool excused)
{
    struct timers *timers = &pool->timers;
    lock(thread, timers);
    if (timer->node.index != HEAP_NOWHERE)
        excuse(timers, timer, excused);
    unlock(thread, timers);
}

uint32_t timers_due(struct thread *outside, struct pool *pool, int64_t now)
{
    enum { DUE_MOST = 500 };
    struct timers *timers = &pool->timers;
    if (!pool->sub->concurrent)
        return timers_next(timers) <= now;
    lock(outside, timers);
    uint32_t count = heap_count_until(&timers->heap, now, DUE_MOST);
    unlock(outside, timers);
    return count;
}

uint32_t timers_see(struct thread *thread, struct pool *pool, uint32_t most,
                    void (*see)(const struct timer *timer, int64_t when, void *arg), void *arg)
{
    struct timers *timers = &pool->timers;
    struct heap_entry first[HEAP_FIRST_MOST];
    if (pool->sub->concurrent)
        spin_lock(&timers->lock, thread);
    uint32_t count = heap_first(&timers->heap, most, first), pending = timers->heap.count;
    for (uint32_t i = 0; i < count; i++)
        see(CONTAINER(first[i].node, struct timer, node), first[i].key, arg);
    if (pool->sub->concurrent)
        spin_unlock(&timers->lock);
    return pending;
}

/* Prefetches the record of the next sleeper, which ends with its timer. If many sleep, it is not in the processor's
 * caches. */
static inline void fetch_next(const struct heap *heap)
{
    enum { RECORD = 192 };
    if (!heap->count)
        return;
    for (size_t before = 0; before < RECORD; before += CACHE_LINE)
        __builtin_prefetch((const char *)heap->entries[0].node - before);
}

/* Fires up to FIRE_BATCH timers and links the strands that they wake. Returns how many timers fired. */
static int fire_some(struct thread *thread, struct timers *timers, int64_t now, struct batch *woken)
{
    int fired = 0;
    lock(thread, timers);
    while (fired < FIRE_BATCH && heap_least(&timers->heap) <= now) {
        struct timer *timer = CONTAINER(heap_pop(&timers->heap), struct timer, node);
        fetch_next(&timers->heap);
        if (UNLIKELY(timer->excused))
            excuse(timers, timer, false);
        batch_add(woken, thread->sub->ops->fire[timer->type](timer)); /* [TM1] */
        fired++;
    }
    unlock(thread, timers);
    return fired;
}

int timers_fire(struct thread *thread, struct pool *pool, int64_t now)
{
    int fired = 0, some;
    do {
        struct batch woken;
        struct member *member;
        batch_init(&woken);
        fired += some = fire_some(thread, &pool->timers, now, &woken);
        while ((member = batch_take(&woken)))
            pool_deliver(thread, member);
    } while (some == FIRE_BATCH);
    return fired;
}
