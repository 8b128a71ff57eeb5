/*
 * Pruning: the waiter for a permit with the worst prospects is cancelled, so that its parent can fold it into something
 * smaller. The protocol block is in prio.h.
 */
#include "prio.h"

#include "../strand/cancel.h"
#include "../strand/exception.h"
#include "../strand/note.h"
#include "../strand/scope.h"
#include "../strand/wait.h"

/* Returns NULL if there is no memory. Nothing is pruned then, because a pruning would look like any other cancel. */
struct note *prio_note(struct thread *thread, struct cb *me, const char *why)
{
    struct note *note = note_new(thread, me, why);
    if (note)
        note->pruned = true;
    return note;
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
        if (!still_waits(ticket, atomic_load_explicit(&ticket->node->waiter->wait.state, memory_order_acquire)))
            queue_remove(sem, ticket);
    }
}

/* Whether a ticket may be removed. A root strand has no parent that would see the pruning; a shield keeps its strand
 * waiting [Q3]. A waiter that has gone may always be removed. */
static bool may_go(struct thread *thread, struct ticket *ticket)
{
    struct cb *c = ticket->node->waiter;
    uint64_t state = atomic_load_explicit(&c->wait.state, memory_order_acquire);
    return !still_waits(ticket, state) || (c != runtime_of(thread)->root && wait_floor(state) == 0);
}

enum pruned prio_prune_one(struct thread *thread, struct prio *sem, struct note *note, bool comes, const void *key,
                           struct batch *batch)
{
    struct ticket *worst = queue_worst(sem, may_go, thread);
    if (!worst)
        return PRUNED_NOBODY;
    struct cb *c = worst->node->waiter;
    uint64_t state = atomic_load_explicit(&c->wait.state, memory_order_acquire);
    bool gone = !still_waits(worst, state) || (atomic_load_explicit(&c->word, memory_order_relaxed) & WORD_CANCELLED);
    if (!gone && comes && !queue_is_before(sem, key, worst))
        return PRUNED_WHO_COMES;
    queue_remove(sem, worst);
    if (gone)
        return PRUNED_GONE;
    batch_add(batch, cancel_strand(thread, c, note, false));
    return PRUNED_ONE;
}

size_t strand_prio_prune(strand_prio_semaphore *handle, size_t keep, const char *why)
{
    struct thread *thread = must_be_strand("strand_prio_prune");
    struct prio *sem = prio_of(thread, handle, "strand_prio_prune");
    struct note *note = prio_note(thread, current_of(thread), why);
    struct batch batch;
    size_t count = 0;
    enum pruned pruned = note ? PRUNED_GONE : PRUNED_NOBODY;
    batch_init(&batch);
    prio_lock(thread, sem);
    if (sem->waiting > keep)
        prio_forget_gone(sem);
    while (pruned != PRUNED_NOBODY && sem->waiting > keep) {
        pruned = prio_prune_one(thread, sem, note, false, NULL, &batch);
        count += pruned == PRUNED_ONE;
    }
    prio_unlock(thread, sem);
    batch_deliver(thread, &batch);
    note_release(note);
    return count;
}
