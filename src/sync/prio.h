/*
 * Priority semaphores, and the limits that are made of them. Page: docs/protocols/prio.md.
 *
 * PARTIES   strands that acquire; selects with a case for it; strands that release, reconsider, prune; interrupters.
 * STATE     under the lock: how many permits are taken (in_flight), and a balanced tree of tickets, the best first
 *           (among equals in FIFO order). A ticket is a record of the run for one waiting strand; it names the strand's
 *           wait node.
 * PROTOCOL  a strand that finds no permit arms its wait and adds its ticket, under the lock. A releasing strand takes
 *           the best ticket out, then claims its wait; a claim fails if the waiter has gone, and the next best is
 *           tried. A waiter that was not claimed takes its own ticket out. Pruning takes the worst ticket out and
 *           cancels its strand, whose own interruption then ends the wait.
 * OWNERSHIP a ticket in the tree belongs to the lock holder; one that was taken out (node->linked = 0), to its strand.
 *           A waiter returns without the lock only if a permit claimed its wait: so a strand whose ticket was in the
 *           tree under the lock still lives.
 * INVARIANTS [PS1] in_flight <= limit. [PS2] with `compare`, or neither, no strand waits while a permit is free; with
 *           `priority`, no strand that was asked about since the last release or reconsideration and may go. [PS3] a
 *           pruned strand is cancelled, and a strand that is not cancelled keeps its place. [PS4] a permit is handed to
 *           one claimed wait.
 * ORDERING  the lock. In a run of one thread there is none: nothing here suspends. The user's functions run under it;
 *           they may neither suspend nor throw nor use the semaphore: all three are detected (hook.h, `asking`).
 * NOT DONE  a pairing heap: its first removal after n additions takes n steps, and it has one end only, while pruning
 *           needs the other. The tree has both, and no step is longer than the logarithm. Tickets in the control block:
 *           64 bytes for every strand, and a select may need several. With `priority`, asking all waiters at each
 *           acquire: n waiters would cost n * n questions. A heap in an array: the worst is among half of its entries.
 * TESTED BY tests/models/prio.pml, tests/spec/prio.c, tests/spec/limits.c, tests/sim/locks.c, tests/unit/base_tree.c.
 */
#ifndef SYNC_PRIO_H
#define SYNC_PRIO_H

#include "../../include/strand/limit.h"
#include "../base/tree.h"
#include "../sched/platform.h"
#include "../strand/core.h"

struct prio {
    uintptr_t self; /* the scrambled address: shows that it was initialised, and not copied */
    uint64_t serial;
    uint64_t run; /* the number of its run */
    atomic_flag lock;
    uint8_t on_full;
    size_t limit, in_flight, max_waiters, waiting;
    struct tree tickets;
    int (*compare)(const void *a, const void *b, void *arg);
    int64_t (*priority)(const void *key, void *arg);
    void *arg;
    const char *name;
    void *site;                  /* where it was made */
    _Atomic(struct cb *) asking; /* the strand that runs `compare` or `priority` under the lock, or NULL */
};
_Static_assert(sizeof(struct prio) <= sizeof(strand_prio_semaphore), "the user gives it its memory");

/* A waiting strand. It fits a cache line, so that a step down the tree touches one. */
struct ticket {
    uint64_t word; /* always 0: never matches a handle, whatever the memory was before */
    struct tree_node in_tree;
    const void *key;
    struct wait_node *node; /* in the control block of the strand, or in the record of a select */
    struct prio *sem;       /* the semaphore whose tree it is in, or NULL */
};
_Static_assert(sizeof(struct ticket) <= TICKET_SIZE, "tickets come from a slab");

static inline void prio_lock(struct thread *thread, struct prio *sem)
{
    spin_lock_if_concurrent(&sem->lock, thread);
}

static inline void prio_unlock(struct thread *thread, struct prio *sem)
{
    spin_unlock_if_concurrent(&sem->lock, thread);
}

static inline struct ticket *ticket_of(struct tree_node *node)
{
    return node ? CONTAINER(node, struct ticket, in_tree) : NULL;
}

/* Check a semaphore: misuse if it was not initialised, is of another run, or is used by one of its own functions. */
struct prio *prio_of(struct thread *thread, const strand_prio_semaphore *sem, const char *function);
const char *prio_made(const struct prio *sem, char *buffer, size_t size);
/* Initialise a semaphore. Misuse of `function` if strands wait at one in the same memory. */
void prio_make(struct thread *thread, strand_prio_semaphore *sem, const strand_prio_options *options, void *site,
               const char *function);

/* Take a permit, waiting for it. Returns 0, -ENOBUFS, -ENOMEM, or -EINTR: the strand is interrupted, without a
 * permit. */
int prio_take(struct thread **thread, struct cb *me, struct prio *sem, const void *key);
bool prio_try(struct thread *thread, struct prio *sem, const void *key);
void prio_give(struct thread *thread, struct prio *sem, const char *function);
/* Read a member of type size_t. */
size_t prio_read(const strand_prio_semaphore *sem, size_t offset, const char *function);

/* ---- under the lock: the queue, in prio_queue.c ----------------------------------------------------------------- */

void prio_queue_add(struct prio *sem, struct ticket *ticket);
void prio_queue_remove(struct prio *sem, struct ticket *ticket);
/* The ticket that goes next. NULL: the queue is empty, or no waiter may go. */
struct ticket *prio_queue_best(struct prio *sem);
/* The worst ticket for which `may` returns true, or NULL. */
struct ticket *prio_queue_worst(struct prio *sem, bool (*may)(struct thread *thread, struct ticket *ticket),
                                struct thread *thread);
/* A waiter and the priority that it had when `priority` was called for it. */
struct rated {
    int64_t priority;
    size_t age; /* 0: the newest */
    struct ticket *ticket;
};
/* With `priority`: call it once for each waiter for which `may` returns true, and fill `rated`, which has room for all
 * waiters, from the worst to the best. Returns their number. O(n log n). */
size_t prio_queue_rate(struct prio *sem, bool (*may)(struct thread *thread, struct ticket *ticket),
                       struct thread *thread, struct rated *rated);
/* The priority that a key has now. */
int64_t prio_queue_ask(struct prio *sem, const void *key);
/* Whether a newcomer with this key goes before a ticket. */
bool prio_queue_is_before(struct prio *sem, const void *key, struct ticket *ticket);

/* Under the lock: prune one waiter, unless all that can be pruned go before `key` (which stands for a further waiter if
 * `comes`). Returns what was done; fibres to be made runnable go to the batch. */
enum pruned { PRUNED_NOBODY, PRUNED_ONE, PRUNED_GONE, PRUNED_WHO_COMES };
struct batch;
enum pruned prio_prune_one(struct thread *thread, struct prio *sem, struct cancel_reason *reason, bool comes,
                           const void *key, struct batch *batch);
struct cancel_reason *prio_reason(struct thread *thread, struct cb *me, const char *why);
/* Under the lock: remove tickets of strands whose wait is over, but which have not run yet, so that they take up no
 * room. O(waiters). */
void prio_forget_gone(struct prio *sem);

#endif
