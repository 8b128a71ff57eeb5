/*
 * A scheduler of the user's (strand/scheduler.h): an order of runnable strands, called under one lock of the pool's.
 * What is runnable, who is woken, and how many there are is the library's business, so no order can lose a strand; one
 * that keeps a strand for ever keeps it from running, which is the order's right.
 */
#include "../../include/strand/scheduler.h"

#include "pool.h"
#include "runq.h"
#include "thread.h"

#include <errno.h>
#include <stdlib.h>

_Static_assert(sizeof(strand_task) == sizeof(struct link), "a task is the link of a fibre");
_Static_assert((int)PUSH_NEW == STRAND_TASK_NEW && (int)PUSH_WOKEN == STRAND_TASK_WOKEN &&
                   (int)PUSH_OUTSIDE == STRAND_TASK_OUTSIDE && (int)PUSH_YIELDED == STRAND_TASK_YIELDED,
               "they mean the same");

static strand_task *task_of(struct fibre *fibre)
{
    return (strand_task *)(void *)&fibre->queued;
}

static struct fibre *fibre_of(strand_task *task)
{
    return CONTAINER((struct link *)(void *)task, struct fibre, queued);
}

int32_t strand_task_rank(const strand_task *task)
{
    const struct link *link = (const struct link *)(const void *)task;
    return CONTAINER(link, const struct fibre, queued)->rank;
}

static void lock(struct pool *pool, struct thread *thread)
{
    spin_lock(&pool->global_lock, thread);
}

static void unlock(struct pool *pool)
{
    spin_unlock(&pool->global_lock);
}

/* index: of the thread, -1: of none of the pool's. */
static void put(struct pool *pool, struct thread *by, struct fibre *fibre, enum push how, int index)
{
    lock(pool, by);
    atomic_store_explicit(&fibre->in, &pool->global, memory_order_relaxed);
    runq_count(&pool->global, 1);
    pool->custom->push(pool->custom_state, task_of(fibre), (enum strand_task_comes)how, index);
    unlock(pool);
}

static void push(struct thread *thread, struct fibre *fibre, enum push how)
{
    put(thread->pool, thread, fibre, how, thread->index);
    pool_notify(thread);
}

static void post(struct pool *pool, struct thread *by, struct fibre *fibre)
{
    put(pool, by, fibre, fibre->stack ? PUSH_OUTSIDE : PUSH_NEW, -1);
}

static bool work(struct pool *pool)
{
    return atomic_load_explicit(&pool->global.count, memory_order_relaxed) != 0;
}

static void taken(struct pool *pool, struct fibre *fibre)
{
    runq_count(&pool->global, -1);
    atomic_store_explicit(&fibre->in, NULL, memory_order_relaxed);
}

static struct fibre *pick(struct thread *thread)
{
    struct pool *pool = thread->pool;
    if (!work(pool))
        return NULL;
    lock(pool, thread);
    bool some = work(pool);
    strand_task *task = some ? pool->custom->pick(pool->custom_state, thread->index) : NULL;
    struct fibre *fibre = task ? fibre_of(task) : NULL;
    if (fibre)
        taken(pool, fibre);
    unlock(pool);
    if (UNLIKELY(!fibre && some))
        pool->sub->ops->no_task(pool->custom->name);
    return fibre;
}

static bool take(struct thread *thread, struct fibre *fibre)
{
    struct pool *pool = thread->pool;
    if (pool->custom->size < sizeof(strand_scheduler) || !pool->custom->take)
        return false;
    lock(pool, thread);
    bool here = atomic_load_explicit(&fibre->in, memory_order_relaxed) == &pool->global &&
                pool->custom->take(pool->custom_state, task_of(fibre));
    if (here)
        taken(pool, fibre);
    unlock(pool);
    return here;
}

static bool steal(struct thread *thread)
{
    return work(thread->pool);
}

int custom_open(struct pool *pool)
{
    const strand_scheduler *custom = pool->custom;
    pool->custom_state = calloc(1, custom->state_size ? custom->state_size : 1);
    if (!pool->custom_state)
        return -ENOMEM;
    int error = custom->open ? custom->open(pool->custom_state) : 0;
    if (error) {
        free(pool->custom_state);
        pool->custom_state = NULL;
    }
    return error;
}

void custom_close(struct pool *pool)
{
    if (!pool->custom_state)
        return;
    if (pool->custom->close)
        pool->custom->close(pool->custom_state);
    free(pool->custom_state);
    pool->custom_state = NULL;
}

const char *custom_name(const struct pool *pool)
{
    return pool->custom->name;
}

const struct scheduler scheduler_custom = {
    .name = "custom", .push = push, .post = post, .pick = pick, .take = take, .steal = steal, .work = work};
