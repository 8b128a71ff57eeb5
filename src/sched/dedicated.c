/*
 * The scheduler of a pool with one thread (rules S-40, S-43): a FIFO queue that only the thread uses, without a lock.
 * Other threads post to the inbox; the thread appends what it finds there to the queue. The scheduler "current" is the
 * same on a thread that is not the library's own.
 */
#include "inbox.h"
#include "runq.h"
#include "thread.h"

static struct runq *queue_of(struct pool *pool)
{
    return &pool->threads[0]->runq;
}

static bool push(struct thread *thread, struct fibre *fibre, enum push how)
{
    (void)how;
    runq_append(&thread->runq, &thread->runq.ready, fibre);
    return false;
}

static void post(struct pool *pool, struct thread *by, struct fibre *fibre)
{
    (void)by;
    inbox_post(&queue_of(pool)->inbox, fibre);
}

static void empty_inbox(struct runq *queue)
{
    struct link taken, *link;
    list_init(&taken);
    if (!runq_inbox_filled(queue) || !inbox_take(&queue->inbox, &taken))
        return;
    while ((link = list_pop_front(&taken)))
        runq_append(queue, &queue->ready, CONTAINER(link, struct fibre, queued));
}

static struct fibre *pick(struct thread *thread)
{
    struct runq *queue = &thread->runq;
    empty_inbox(queue);
    return runq_first(queue, &queue->ready);
}

static bool take(struct thread *thread, struct fibre *fibre)
{
    return runq_remove(&thread->runq, fibre);
}

static bool work(struct pool *pool)
{
    struct runq *queue = queue_of(pool);
    return runq_length(queue) || runq_inbox_filled(queue);
}

static size_t waiting(const struct thread *thread)
{
    const struct runq *queue = &thread->runq;
    return runq_length(queue) + (atomic_load_explicit(&queue->inbox, memory_order_relaxed) != NULL);
}

const struct scheduler scheduler_dedicated = {.name = "dedicated",
                                              .alone = true,
                                              .own_thread = true,
                                              .push = push,
                                              .post = post,
                                              .pick = pick,
                                              .take = take,
                                              .work = work,
                                              .waiting = waiting};
const struct scheduler scheduler_current = {.name = "current",
                                            .alone = true,
                                            .push = push,
                                            .post = post,
                                            .pick = pick,
                                            .take = take,
                                            .work = work,
                                            .waiting = waiting};
