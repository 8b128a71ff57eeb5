/*
 * The choice of an inbox for a fibre that another thread makes runnable. Model of posts to a thread that leaves:
 * tests/models/resize.pml.
 */
#include "inbox.h"

#include "platform.h"
#include "pool.h"
#include "runq.h"

/* Returns whether the thread still empties its inbox, now or before it has gone. */
static bool has_queue(struct thread *thread)
{
    return thread_life(thread) == THREAD_HERE || thread_life(thread) == THREAD_LEAVING;
}

/* Returns a thread that does not leave soon. Thread 0 always stays. */
static struct thread *one_of(struct pool *pool, struct thread *by)
{
    uint32_t size =
        (uint32_t)atomic_load_explicit(&pool->size, memory_order_acquire); /* with grow: the records [PB1] */
    struct thread *thread = pool->threads[by && size > 1 ? platform_choose(by, size) : 0];
    return thread_life(thread) == THREAD_HERE ? thread : pool->threads[0];
}

void pool_pass_on(struct thread *gone)
{
    struct link missed, *link;
    list_init(&missed);
    inbox_take(&gone->runq.inbox, &missed);
    while ((link = list_pop_front(&missed)))
        inbox_post(&gone->pool->threads[0]->runq.inbox, CONTAINER(link, struct fibre, queued));
}

void pool_post_fibre(struct pool *pool, struct thread *by, struct thread *home, struct fibre *fibre)
{
    if (!home || home->pool != pool)
        home = one_of(pool, by);
    inbox_post(&home->runq.inbox, fibre);
    if (UNLIKELY(!has_queue(home)))
        pool_pass_on(home); /* [Z1] the thread has gone, and may have taken its inbox before the post */
}
