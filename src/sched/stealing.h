/*
 * The hot paths of the default scheduler, which its threads call directly. Each thread has a queue: the slot for the
 * newest fibre, `woken` for strands that go on (FIFO), `young` for those that have not started (LIFO: depth first keeps
 * fork-join small), `ready` for those that yielded. What has begun comes before what has not: it may end, and leave its
 * stack to others. See docs/protocols/runq.md. Model of the slot: tests/models/slot.pml.
 */
#ifndef SCHED_STEALING_H
#define SCHED_STEALING_H

#include "runq.h"
#include "scheduler.h"

/* Moves the fibre that a newer one replaces in the slot to a list. The caller is inside. */
OWN_INLINE void stealing_displace(struct runq *queue, struct fibre *fibre)
{
    if (fibre->home) /* else it has not begun, though it may have a stack */
        runq_append(queue, &queue->woken, fibre);
    else
        runq_prepend(queue, &queue->young, fibre);
}

/* Puts the newest fibre into the slot. Returns whether a thread must be notified. The caller is inside. */
OWN_INLINE_ALWAYS bool stealing_put(struct runq *queue, struct fibre *fibre)
{
    struct fibre *old = queue->slot;
    queue->slot = fibre;
    atomic_store_explicit(&fibre->in, queue, memory_order_relaxed);
    if (!old)
        return false; /* thieves leave the newest to its owner for a moment */
    stealing_displace(queue, old);
    return true;
}

/* Queues a fibre. Returns whether a thread must be notified. */
OWN_INLINE_ALWAYS bool stealing_push(struct thread *thread, struct fibre *fibre, enum push how)
{
    struct runq *queue = &thread->runq;
    runq_enter(thread, queue);
    bool more = true;
    if (how >= PUSH_OUTSIDE)
        runq_append(queue, how == PUSH_YIELDED ? &queue->ready : &queue->woken, fibre);
    else
        more = stealing_put(queue, fibre);
    runq_leave(thread, queue);
    return more;
}

struct fibre *stealing_pick_slow_(struct thread *thread);

/* Does what scheduler.pick does. */
OWN_INLINE_ALWAYS struct fibre *stealing_pick(struct thread *thread)
{
    struct runq *queue = &thread->runq;
    runq_enter(thread, queue);
    struct fibre *fibre = queue->slot;
    if (fibre) {
        queue->slot = NULL;
        atomic_store_explicit(&fibre->in, NULL, memory_order_relaxed);
    } else if (!(fibre = runq_first(queue, &queue->woken))) {
        thread->pass.young_reached = true;
        if (!(fibre = runq_first(queue, &queue->young)))
            fibre = runq_first(queue, &queue->ready);
    }
    runq_leave(thread, queue);
    return LIKELY(fibre != NULL) || !runq_inbox_filled(queue) ? fibre : stealing_pick_slow_(thread);
}

/* Does what scheduler.take does. */
OWN_INLINE_ALWAYS bool stealing_take(struct thread *thread, struct fibre *fibre)
{
    struct runq *queue = &thread->runq;
    runq_enter(thread, queue);
    if (UNLIKELY(atomic_load_explicit(&fibre->in, memory_order_relaxed) != queue)) {
        runq_leave(thread, queue);
        return false;
    }
    if (queue->slot == fibre) {
        queue->slot = NULL;
    } else {
        list_remove(&fibre->queued);
        runq_count_served(queue);
    }
    atomic_store_explicit(&fibre->in, NULL, memory_order_relaxed);
    runq_leave(thread, queue);
    return true;
}

#endif
