/*
 * The scheduler with one queue for the whole pool, first come, first served (rules S-20, S-21). Simple and fair; every
 * operation takes one lock. It has no slot, and nothing to steal.
 */
#include "pool.h"
#include "runq.h"
#include "thread.h"

#include <string.h>

static void lock(struct thread *thread)
{
    if (thread->shared)
        spin_lock(&thread->pool->global_lock, thread);
}

static void unlock(struct thread *thread)
{
    if (thread->shared)
        spin_unlock(&thread->pool->global_lock);
}

static void push(struct thread *thread, struct fibre *fibre, enum push how)
{
    (void)how;
    struct runq *queue = &thread->pool->global;
    lock(thread);
    runq_append(queue, &queue->ready, fibre);
    unlock(thread);
    pool_notify(thread);
}

static void post(struct pool *pool, struct thread *by, struct fibre *fibre)
{
    spin_lock(&pool->global_lock, by);
    runq_append(&pool->global, &pool->global.ready, fibre);
    spin_unlock(&pool->global_lock);
}

/* In a seeded run any of the first few may be the next. */
static struct fibre *pick_by_seed(struct thread *thread, struct runq *queue)
{
    uint32_t skip = driver_choose(thread, 4);
    struct link *link = queue->ready.next;
    while (skip-- && link != &queue->ready)
        link = link->next;
    if (link == &queue->ready)
        return NULL;
    struct fibre *fibre = CONTAINER(link, struct fibre, queued);
    list_remove(link);
    runq_count(queue, -1);
    atomic_store_explicit(&fibre->in, NULL, memory_order_relaxed);
    return fibre;
}

static struct fibre *pick(struct thread *thread)
{
    struct runq *queue = &thread->pool->global;
    if (!atomic_load_explicit(&queue->count, memory_order_relaxed))
        return NULL;
    lock(thread);
    struct fibre *fibre = thread->driver ? pick_by_seed(thread, queue) : NULL;
    if (!fibre)
        fibre = runq_first(queue, &queue->ready);
    unlock(thread);
    return fibre;
}

static bool take(struct thread *thread, struct fibre *fibre)
{
    struct runq *queue = &thread->pool->global;
    lock(thread);
    bool here = atomic_load_explicit(&fibre->in, memory_order_relaxed) == queue;
    if (here) {
        list_remove(&fibre->queued);
        runq_count(queue, -1);
        atomic_store_explicit(&fibre->in, NULL, memory_order_relaxed);
    }
    unlock(thread);
    return here;
}

static bool work(struct pool *pool)
{
    return atomic_load_explicit(&pool->global.count, memory_order_relaxed) != 0;
}

static bool steal(struct thread *thread)
{
    return work(thread->pool);
}

const struct scheduler scheduler_global = {
    .name = "global", .push = push, .post = post, .pick = pick, .take = take, .steal = steal, .work = work};

const struct scheduler *scheduler_find(const char *name)
{
    if (!name || !strcmp(name, scheduler_stealing.name))
        return &scheduler_stealing;
    return strcmp(name, scheduler_global.name) ? NULL : &scheduler_global;
}
