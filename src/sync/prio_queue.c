/*
 * The order of the waiters at a priority semaphore: the tree of tickets. Everything here runs under the semaphore's
 * lock. The protocol block is in prio.h.
 */
#include "prio.h"

#include "../base/sort.h"

#include "../strand/hook.h"

/* ---- calling the user's functions --------------------------------------------------------------------------- */

/* Releases the lock, since the user's misuse hook may read the semaphore. */
static const char *made(const struct hook *hook, char *buffer, size_t size)
{
    struct prio *sem = hook->object;
    atomic_store_explicit(&sem->asking, NULL, memory_order_relaxed);
    prio_unlock(thread_self(), sem);
    return prio_made(sem, buffer, size);
}

#define ASKING(sem) HOOK = {.name = asks_for(sem), .made = made, .object = (sem)}

static inline const char *asks_for(const struct prio *sem)
{
    return sem->compare ? "strand_prio_options.compare" : "strand_prio_options.priority";
}

static void ask(struct hook *hook)
{
    struct prio *sem = hook->object;
    hook_enter(hook);
    atomic_store_explicit(&sem->asking, hook->me, memory_order_relaxed);
}

static void asked(struct hook *hook)
{
    struct prio *sem = hook->object;
    atomic_store_explicit(&sem->asking, NULL, memory_order_relaxed);
    hook_over(hook);
}

NOINLINE int64_t prio_queue_ask(struct prio *sem, const void *key)
{
    struct hook hook ASKING(sem);
    ask(&hook);
    int64_t priority = sem->priority(key, sem->arg);
    asked(&hook);
    return priority;
}

/* Whether `late` goes before `early`, which came first. Called between ask and asked. */
static inline bool goes_before(struct prio *sem, const void *late, const void *early)
{
    return sem->compare(late, early, sem->arg) < 0;
}

/* ---- the tree ------------------------------------------------------------------------------------------------- */

/* Find the parent of a new key, and the side below it. No search is needed at either end. */
static struct tree_node *find_parent(struct prio *sem, const void *key, int *side)
{
    struct tree_node *parent = sem->tickets.end[1];
    struct hook hook ASKING(sem);
    ask(&hook);
    if (goes_before(sem, key, ticket_of(parent)->key)) {
        parent = sem->tickets.end[0];
        *side = 0;
        if (!goes_before(sem, key, ticket_of(parent)->key)) {
            for (struct tree_node *at = sem->tickets.root; at; at = at->child[*side]) {
                parent = at;
                __builtin_prefetch(at->child[0]); /* the next step, and the comparison too, waits for memory */
                __builtin_prefetch(at->child[1]);
                *side = !goes_before(sem, key, ticket_of(at)->key);
            }
        }
    }
    asked(&hook);
    return parent;
}

/* Add the newest ticket. Without `compare` it goes behind the last one: so FIFO costs O(1). */
void prio_queue_add(struct prio *sem, struct ticket *ticket)
{
    struct tree_node *parent = sem->tickets.end[1];
    int side = 1;
    if (sem->compare && parent)
        parent = find_parent(sem, ticket->key, &side);
    sem->waiting++;
    ticket->sem = sem;
    tree_add(&sem->tickets, parent, side, &ticket->in_tree);
    atomic_store_explicit(&ticket->node->linked, 1, memory_order_relaxed);
}

void prio_queue_remove(struct prio *sem, struct ticket *ticket)
{
    tree_remove(&sem->tickets, &ticket->in_tree);
    sem->waiting--;
    ticket->sem = NULL;
    atomic_store_explicit(&ticket->node->linked, 0, memory_order_relaxed);
}

/* With `priority` the tree is in FIFO order: so the first ticket with the greatest priority is the right one. */
static struct ticket *ask_for_best(struct prio *sem)
{
    struct ticket *best = NULL;
    int64_t greatest = STRAND_NOT_NOW;
    struct hook hook ASKING(sem);
    ask(&hook);
    for (struct tree_node *at = sem->tickets.end[0]; at; at = tree_step(at, 1)) {
        int64_t priority = sem->priority(ticket_of(at)->key, sem->arg);
        if (priority > greatest) {
            greatest = priority;
            best = ticket_of(at);
        }
    }
    asked(&hook);
    return best;
}

struct ticket *prio_queue_best(struct prio *sem)
{
    return UNLIKELY(sem->priority != NULL) ? ask_for_best(sem) : ticket_of(sem->tickets.end[0]);
}

static struct ticket *ask_for_worst(struct prio *sem, bool (*may)(struct thread *thread, struct ticket *ticket),
                                    struct thread *thread)
{
    struct ticket *worst = NULL;
    int64_t least = INT64_MAX;
    struct hook hook ASKING(sem);
    ask(&hook);
    for (struct tree_node *at = sem->tickets.end[1]; at; at = tree_step(at, 0)) {
        struct ticket *ticket = ticket_of(at);
        if (!may(thread, ticket))
            continue;
        int64_t priority = sem->priority(ticket->key, sem->arg);
        if (!worst || priority < least) {
            least = priority;
            worst = ticket;
        }
    }
    asked(&hook);
    return worst;
}

struct ticket *prio_queue_worst(struct prio *sem, bool (*may)(struct thread *thread, struct ticket *ticket),
                                struct thread *thread)
{
    if (sem->priority)
        return ask_for_worst(sem, may, thread);
    for (struct tree_node *at = sem->tickets.end[1]; at; at = tree_step(at, 0))
        if (may(thread, ticket_of(at)))
            return ticket_of(at);
    return NULL;
}

/* Among equals the latest is the worst. */
static bool is_worse(const void *a, const void *b)
{
    const struct rated *one = a, *other = b;
    return one->priority != other->priority ? one->priority < other->priority : one->age < other->age;
}

size_t prio_queue_rate(struct prio *sem, bool (*may)(struct thread *thread, struct ticket *ticket),
                       struct thread *thread, struct rated *rated)
{
    size_t count = 0;
    struct hook hook ASKING(sem);
    ask(&hook);
    for (struct tree_node *at = sem->tickets.end[1]; at; at = tree_step(at, 0)) {
        struct ticket *ticket = ticket_of(at);
        if (may(thread, ticket)) {
            rated[count] = (struct rated){sem->priority(ticket->key, sem->arg), count, ticket};
            count++;
        }
    }
    asked(&hook);
    sort_in_place(rated, count, sizeof *rated, is_worse);
    return count;
}

bool prio_queue_is_before(struct prio *sem, const void *key, struct ticket *ticket)
{
    if (sem->priority)
        return prio_queue_ask(sem, key) > prio_queue_ask(sem, ticket->key);
    if (!sem->compare)
        return false;
    struct hook hook ASKING(sem);
    ask(&hook);
    bool before = goes_before(sem, key, ticket->key);
    asked(&hook);
    return before;
}
