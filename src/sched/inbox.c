/*
 * Into which thread's inbox a fibre goes that another thread makes runnable. Model of what is posted to a thread that
 * goes: tests/models/resize.pml.
 */
#include "platform.h"
#include "pool.h"
#include "runq.h"

/* It empties its inbox, now or before it goes. */
static bool has_queue(struct thread *thread)
{
    return thread_life(thread) == THREAD_HERE || thread_life(thread) == THREAD_LEAVING;
}

/* One that stays: thread 0 does. */
static struct thread *one_of(struct pool *pool, struct thread *by)
{
    uint32_t size =
        (uint32_t)atomic_load_explicit(&pool->size, memory_order_acquire); /* with grow: their records [PB1] */
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
        pool_pass_on(home); /* [Z1] it has gone, and may have taken its inbox before that */
}
