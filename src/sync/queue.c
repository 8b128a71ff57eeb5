/*
 * The order of those that wait for a permit: the tree of tickets. All under the semaphore's lock. The protocol block is
 * in prio.h.
 */
#include "prio.h"

/* Of two keys of which the second came first. */
static inline bool goes_before(struct prio *sem, const void *late, const void *early)
{
    return sem->compare && sem->compare(late, early, sem->arg) < 0;
}

/* The newest ticket. Behind the last, or before the first, without a search: so first come, first served costs O(1). */
void queue_add(struct prio *sem, struct ticket *ticket)
{
    struct tree_node *parent = sem->tickets.end[1];
    int side = 1;
    sem->waiting++;
    if (parent && goes_before(sem, ticket->key, ticket_of(parent)->key)) {
        parent = sem->tickets.end[0];
        side = 0;
        if (!goes_before(sem, ticket->key, ticket_of(parent)->key)) {
            for (struct tree_node *at = sem->tickets.root; at; at = at->child[side]) {
                parent = at;
                __builtin_prefetch(at->child[0]); /* the next step waits for memory, and the comparison too */
                __builtin_prefetch(at->child[1]);
                side = !goes_before(sem, ticket->key, ticket_of(at)->key);
            }
        }
    }
    tree_add(&sem->tickets, parent, side, &ticket->place);
    atomic_store_explicit(&ticket->node->linked, 1, memory_order_relaxed);
}

void queue_remove(struct prio *sem, struct ticket *ticket)
{
    tree_remove(&sem->tickets, &ticket->place);
    sem->waiting--;
    atomic_store_explicit(&ticket->node->linked, 0, memory_order_relaxed);
}

/* With `priority` the tree is in the order of coming: so the first of the greatest is the right one. */
static struct ticket *ask_for_best(struct prio *sem)
{
    struct ticket *best = NULL;
    int64_t greatest = STRAND_NOT_NOW;
    for (struct tree_node *at = sem->tickets.end[0]; at; at = tree_step(at, 1)) {
        int64_t priority = sem->priority(ticket_of(at)->key, sem->arg);
        if (priority > greatest) {
            greatest = priority;
            best = ticket_of(at);
        }
    }
    return best;
}

struct ticket *queue_best(struct prio *sem)
{
    return UNLIKELY(sem->priority != NULL) ? ask_for_best(sem) : ticket_of(sem->tickets.end[0]);
}

struct ticket *queue_worst(struct prio *sem, bool (*may)(struct thread *thread, struct ticket *ticket),
                           struct thread *thread)
{
    struct ticket *worst = NULL;
    int64_t least = INT64_MAX;
    for (struct tree_node *at = sem->tickets.end[1]; at; at = tree_step(at, 0)) {
        struct ticket *ticket = ticket_of(at);
        if (!may(thread, ticket))
            continue;
        if (!sem->priority)
            return ticket;
        int64_t priority = sem->priority(ticket->key, sem->arg);
        if (!worst || priority < least) {
            least = priority;
            worst = ticket;
        }
    }
    return worst;
}

bool queue_is_before(struct prio *sem, const void *key, struct ticket *ticket)
{
    if (sem->priority)
        return sem->priority(key, sem->arg) > sem->priority(ticket->key, sem->arg);
    return goes_before(sem, key, ticket->key);
}
