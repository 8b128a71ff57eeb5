/*
 * Inboxes, and the choice of an inbox for a fibre that another thread makes runnable. Model of posts to a thread that
 * leaves: tests/models/resize.pml.
 */
#include "inbox.h"

#include "platform.h"
#include "pool.h"
#include "runq.h"

/* In an inbox a fibre's queued.next points to the link of the next older fibre, NULL at the end. */
void inbox_post(inbox *box, struct fibre *fibre)
{
    struct fibre *first = atomic_load_explicit(box, memory_order_relaxed);
    do
        fibre->queued.next = first ? &first->queued : NULL;
    while (!atomic_compare_exchange_weak_explicit(box, &first, fibre, memory_order_seq_cst,
                                                  memory_order_relaxed)); /* [R4] */
}

bool inbox_take(inbox *box, struct link *list)
{
    if (!atomic_load_explicit(box, memory_order_seq_cst)) /* [R4] */
        return false;
    struct fibre *fibre = atomic_exchange_explicit(box, NULL, memory_order_seq_cst); /* [R4] */
    struct link *last = list->prev;
    bool any = fibre != NULL;
    while (fibre) { /* the inbox has the newest first */
        struct link *next = fibre->queued.next;
        list_insert_(last, last->next, &fibre->queued);
        fibre = next ? CONTAINER(next, struct fibre, queued) : NULL;
    }
    return any;
}

/* ---- the choice --------------------------------------------------------------------------------------------- */

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
