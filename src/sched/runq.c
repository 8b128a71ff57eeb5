/*
 * The slow paths of a run queue. The protocol block is in runq.h.
 */
#include "runq.h"

void runq_open(struct runq *queue)
{
    atomic_init(&queue->busy, 0);
    atomic_init(&queue->thief, 0);
    atomic_init(&queue->put, 0);
    atomic_init(&queue->served, 0);
    atomic_init(&queue->inbox, NULL);
    queue->slot = queue->stale = NULL;
    list_init(&queue->young);
    list_init(&queue->woken);
    list_init(&queue->ready);
}

void runq_enter_slow_(struct thread *owner, struct runq *queue)
{
    do {
        atomic_store_explicit(&queue->busy, 0, memory_order_release);     /* [R2] */
        while (atomic_load_explicit(&queue->thief, memory_order_acquire)) /* [R2] */
            platform_await(owner);
        atomic_store_explicit(&queue->busy, 1, memory_order_relaxed);
        atomic_thread_fence(memory_order_seq_cst); /* [R1] after it met a thief, the owner pays as well */
    } while (atomic_load_explicit(&queue->thief, memory_order_acquire)); /* [R1] [R2] */
}

bool runq_break_in(struct thread *thief, struct runq *queue)
{
    if (atomic_exchange_explicit(&queue->thief, 1, memory_order_seq_cst)) /* [R1] */
        return false;
    if (arch_membarrier_works)
        arch_membarrier(); /* [R1] */
    else
        atomic_thread_fence(memory_order_seq_cst);                   /* [R1] */
    while (atomic_load_explicit(&queue->busy, memory_order_acquire)) /* [R1] [R2] */
        platform_await(thief);
    return true;
}

void runq_break_out(struct runq *queue)
{
    atomic_store_explicit(&queue->thief, 0, memory_order_release); /* [R2] */
}

struct fibre *runq_any(struct thread *thread, struct runq *queue)
{
    uint32_t skip = platform_choose(thread, 4);
    struct link *link = queue->ready.next;
    while (skip-- && link != &queue->ready)
        link = link->next;
    if (link == &queue->ready)
        return NULL;
    struct fibre *fibre = CONTAINER(link, struct fibre, queued);
    (void)runq_remove(queue, fibre);
    return fibre;
}
