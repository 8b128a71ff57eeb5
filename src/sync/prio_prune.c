/*
 * Pruning: the waiter for a permit with the worst prospects is cancelled, so that its parent can fold it into something
 * smaller. The protocol block is in prio.h.
 */
#include "prio.h"

#include "../strand/cancel.h"
#include "../strand/cancel_reason.h"
#include "../strand/exception.h"
#include "../strand/scope.h"
#include "../strand/wait.h"

#include <stdlib.h>

/* Returns NULL if there is no memory. Nothing is pruned then, because a pruning would look like any other cancel. */
struct cancel_reason *prio_reason(struct thread *thread, struct cb *me, const char *why)
{
    struct cancel_reason *reason = cancel_reason_new(thread, me, why);
    if (reason)
        reason->pruned = true;
    return reason;
}

/* Whether the wait is neither claimed nor interrupted. */
static bool still_waits(struct ticket *ticket, uint64_t state)
{
    uint32_t tag = wait_tag(state);
    return wait_epoch(state) == ticket->node->epoch && (tag == WAIT_ARMED || tag == WAIT_TRYING);
}

void prio_forget_gone(struct prio *sem)
{
    for (struct tree_node *at = sem->tickets.end[1], *next; at; at = next) {
        struct ticket *ticket = CONTAINER(at, struct ticket, in_tree);
        next = tree_step(at, 0);
        if (!still_waits(ticket,
                         atomic_load_explicit(&ticket->node->waiter->wait.state, memory_order_acquire))) /* [W1] */
            prio_queue_remove(sem, ticket);
    }
}

/* Whether a ticket may be removed. A root strand has no parent that would see the pruning; a shield keeps its strand
 * waiting [PS3]. A waiter that has gone may always be removed. */
static bool may_go(struct thread *thread, struct ticket *ticket)
{
    struct cb *c = ticket->node->waiter;
    uint64_t state = atomic_load_explicit(&c->wait.state, memory_order_acquire); /* [W1] */
    return !still_waits(ticket, state) || (c != runtime_of(thread)->root && wait_floor(state) == 0);
}

/* Whether the waiter has gone, or was cancelled before. */
static bool is_gone(struct ticket *ticket)
{
    struct cb *c = ticket->node->waiter;
    uint64_t state = atomic_load_explicit(&c->wait.state, memory_order_acquire); /* [W1] */
    return !still_waits(ticket, state) || (atomic_load_explicit(&c->word, memory_order_relaxed) & WORD_CANCELLED);
}

static enum pruned prune(struct thread *thread, struct prio *sem, struct ticket *ticket, struct cancel_reason *reason,
                         struct batch *batch)
{
    bool gone = is_gone(ticket);
    prio_queue_remove(sem, ticket);
    if (gone)
        return PRUNED_GONE;
    batch_add(batch, cancel_strand(thread, ticket->node->waiter, reason, false));
    return PRUNED_ONE;
}

enum pruned prio_prune_one(struct thread *thread, struct prio *sem, struct cancel_reason *reason, bool comes,
                           const void *key, struct batch *batch)
{
    struct ticket *worst = prio_queue_worst(sem, may_go, thread);
    if (!worst)
        return PRUNED_NOBODY;
    if (comes && !is_gone(worst) && !prio_queue_is_before(sem, key, worst))
        return PRUNED_WHO_COMES;
    return prune(thread, sem, worst, reason, batch);
}

/* Under the lock. `rated` is not NULL with `priority`: then each waiter is asked about once. */
static size_t prune_all(struct thread *thread, struct prio *sem, size_t keep, struct rated *rated,
                        struct cancel_reason *reason, struct batch *batch)
{
    size_t count = 0;
    prio_forget_gone(sem);
    if (rated) {
        size_t all = prio_queue_rate(sem, may_go, thread, rated);
        for (size_t i = 0; i < all && sem->waiting > keep; i++)
            count += prune(thread, sem, rated[i].ticket, reason, batch) == PRUNED_ONE;
        return count;
    }
    for (enum pruned pruned = PRUNED_GONE; pruned != PRUNED_NOBODY && sem->waiting > keep;) {
        pruned = prio_prune_one(thread, sem, reason, false, NULL, batch);
        count += pruned == PRUNED_ONE;
    }
    return count;
}

/* Take the lock; with `priority` there is room to rate all waiters then. Returns false without memory, and then does
 * not hold the lock. */
static bool lock_to_prune(struct thread *thread, struct prio *sem, struct rated **rated)
{
    size_t room = 0;
    for (*rated = NULL;;) {
        prio_lock(thread, sem);
        if (!sem->priority || sem->waiting <= room)
            return true;
        room = sem->waiting;
        prio_unlock(thread, sem);
        free(*rated);
        if (!(*rated = platform_calloc(thread, room, sizeof **rated)))
            return false;
    }
}

size_t strand_prio_prune(strand_prio_semaphore *handle, size_t keep, const char *why)
{
    struct thread *thread = must_be_strand("strand_prio_prune");
    struct prio *sem = prio_of(thread, handle, "strand_prio_prune");
    struct cancel_reason *reason = prio_reason(thread, current_of(thread), why);
    struct batch batch;
    struct rated *rated = NULL;
    size_t count = 0;
    batch_init(&batch);
    if (reason && lock_to_prune(thread, sem, &rated)) {
        if (sem->waiting > keep)
            count = prune_all(thread, sem, keep, rated, reason, &batch);
        prio_unlock(thread, sem);
    }
    batch_deliver(thread, &batch);
    free(rated);
    cancel_reason_release(reason);
    return count;
}
