/*
 * The scheduler with one FIFO queue for the whole pool (rules S-20, S-21): simple and fair. Every operation takes one
 * lock. There is no slot, and no thread steals.
 */
#include "runq.h"
#include "thread.h"

#include <string.h>

static void lock(struct thread *thread)
{
    spin_lock_if_concurrent(&thread->pool->global_lock, thread);
}

static void unlock(struct thread *thread)
{
    spin_unlock_if_concurrent(&thread->pool->global_lock, thread);
}

static bool push(struct thread *thread, struct fibre *fibre, enum push how)
{
    (void)how;
    struct runq *queue = &thread->pool->global;
    lock(thread);
    runq_append(queue, &queue->ready, fibre);
    unlock(thread);
    return true;
}

static void post(struct pool *pool, struct thread *by, struct fibre *fibre)
{
    spin_lock(&pool->global_lock, by);
    runq_append(&pool->global, &pool->global.ready, fibre);
    spin_unlock(&pool->global_lock);
}

static struct fibre *pick(struct thread *thread)
{
    struct runq *queue = &thread->pool->global;
    if (!runq_length(queue))
        return NULL;
    lock(thread);
    struct fibre *fibre = thread->platform ? runq_any(thread, queue) : NULL;
    if (!fibre)
        fibre = runq_first(queue, &queue->ready);
    unlock(thread);
    return fibre;
}

static bool take(struct thread *thread, struct fibre *fibre)
{
    struct runq *queue = &thread->pool->global;
    lock(thread);
    bool here = runq_remove(queue, fibre);
    unlock(thread);
    return here;
}

bool global_work(struct pool *pool)
{
    return runq_length(&pool->global) != 0;
}

size_t global_waiting(const struct thread *thread)
{
    return runq_length(&thread->pool->global);
}

const struct scheduler scheduler_global = {.name = "global",
                                           .common = true,
                                           .push = push,
                                           .post = post,
                                           .pick = pick,
                                           .take = take,
                                           .work = global_work,
                                           .waiting = global_waiting};

const struct scheduler *scheduler_find(const char *name)
{
    if (!name || !strcmp(name, scheduler_stealing.name))
        return &scheduler_stealing;
    static const struct scheduler *const all[] = {&scheduler_global, &scheduler_dedicated, &scheduler_current};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(name, all[i]->name))
            return all[i];
    return NULL;
}
