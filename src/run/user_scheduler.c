/*
 * Schedulers of the user (strand/scheduler.h). Such a scheduler orders runnable strands; it is called under a lock of
 * the pool. The library decides which strands are runnable and woken, and counts them, so no order can lose a strand. A
 * scheduler may keep a strand for ever; the strand then never runs.
 */
#include "../../include/strand/scheduler.h"

#include "user_scheduler.h"

#include "../sched/runq.h"
#include "../strand/misuse.h"
#include "../strand/sized.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

_Static_assert(sizeof(strand_task) == sizeof(struct link), "a task is the link of a fibre");
_Static_assert((int)PUSH_NEW == STRAND_TASK_NEW && (int)PUSH_WOKEN == STRAND_TASK_WOKEN &&
                   (int)PUSH_OUTSIDE == STRAND_TASK_OUTSIDE && (int)PUSH_YIELDED == STRAND_TASK_YIELDED,
               "they mean the same");

static const strand_scheduler *custom_of(const struct pool *pool)
{
    return pool->custom;
}

static strand_task *task_of(struct fibre *fibre)
{
    return (strand_task *)(void *)&fibre->queued;
}

static struct fibre *fibre_behind(strand_task *task)
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

/* Queues a fibre. index: the thread's, or -1 for a thread outside the pool. */
static void put(struct pool *pool, struct thread *by, struct fibre *fibre, enum push how, int index)
{
    lock(pool, by);
    atomic_store_explicit(&fibre->in, &pool->global, memory_order_relaxed);
    runq_count_put(&pool->global, 1);
    custom_of(pool)->push(pool->scheduler_state, task_of(fibre), (enum strand_task_origin)how, index);
    unlock(pool);
}

static bool push(struct thread *thread, struct fibre *fibre, enum push how)
{
    put(thread->pool, thread, fibre, how, thread->index);
    return true;
}

static void post(struct pool *pool, struct thread *by, struct fibre *fibre)
{
    put(pool, by, fibre, fibre->stack ? PUSH_OUTSIDE : PUSH_NEW, -1);
}

/* Counts out a fibre that the scheduler has given out. For TSan, the scheduler's reads come before the strand runs. */
static void taken(struct pool *pool, struct fibre *fibre)
{
    if (!fibre_is_shared(fibre))
        arch_san_release(fibre->current);
    runq_count_served(&pool->global);
    atomic_store_explicit(&fibre->in, NULL, memory_order_relaxed);
}

static struct fibre *pick(struct thread *thread)
{
    struct pool *pool = thread->pool;
    if (!runq_length(&pool->global))
        return NULL;
    lock(pool, thread);
    bool some = runq_length(&pool->global);
    strand_task *task = some ? custom_of(pool)->pick(pool->scheduler_state, thread->index) : NULL;
    struct fibre *fibre = task ? fibre_behind(task) : NULL;
    if (fibre)
        taken(pool, fibre);
    unlock(pool);
    if (UNLIKELY(!fibre && some))
        MISUSE("strand_scheduler.pick", "", "the scheduler '%s': pick returned NULL, but tasks are queued",
               custom_of(pool)->name);
    return fibre;
}

static bool take(struct thread *thread, struct fibre *fibre)
{
    struct pool *pool = thread->pool;
    if (custom_of(pool)->size < sizeof(strand_scheduler) || !custom_of(pool)->take)
        return false;
    lock(pool, thread);
    bool here = atomic_load_explicit(&fibre->in, memory_order_relaxed) == &pool->global &&
                custom_of(pool)->take(pool->scheduler_state, task_of(fibre));
    if (here)
        taken(pool, fibre);
    unlock(pool);
    return here;
}

static int open(struct pool *pool)
{
    const strand_scheduler *custom = custom_of(pool);
    pool->scheduler_state = calloc(1, custom->state_size ? custom->state_size : 1);
    if (!pool->scheduler_state)
        return -ENOMEM;
    int error = custom->open ? custom->open(pool->scheduler_state) : 0;
    if (error) {
        free(pool->scheduler_state);
        pool->scheduler_state = NULL;
    }
    return error;
}

static void close(struct pool *pool)
{
    if (!pool->scheduler_state)
        return;
    if (custom_of(pool)->close)
        custom_of(pool)->close(pool->scheduler_state);
    free(pool->scheduler_state);
    pool->scheduler_state = NULL;
}

static const struct scheduler scheduler_custom = {.name = "custom",
                                                  .common = true,
                                                  .open = open,
                                                  .close = close,
                                                  .push = push,
                                                  .post = post,
                                                  .pick = pick,
                                                  .take = take,
                                                  .work = global_work,
                                                  .waiting = global_waiting};

/* ---- the choice of a scheduler ------------------------------------------------------------------------------ */

static const char *lack_of(const strand_scheduler *custom)
{
    if (!size_is_plausible(custom->size, offsetof(strand_scheduler, pick) + sizeof custom->pick))
        return "size is not sizeof(strand_scheduler)";
    return !custom->name || !custom->push || !custom->pick ? "name, push or pick is NULL" : NULL;
}

const struct scheduler *scheduler_for(const char *name, const strand_scheduler *custom, const char *whose, char *text,
                                      size_t room)
{
    const struct scheduler *found = custom ? &scheduler_custom : scheduler_find(name);
    const char *lacks = custom ? lack_of(custom) : NULL;
    if (!found)
        snprintf(text, room, "%s.scheduler is '%s', not " SCHEDULER_NAMES, whose, name);
    else if (custom && name)
        snprintf(text, room, "%s.scheduler and custom are both given", whose);
    else if (lacks)
        snprintf(text, room, "%s.custom: %s", whose, lacks);
    else
        return found;
    return NULL;
}
