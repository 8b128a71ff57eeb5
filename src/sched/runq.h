/*
 * A thread's run queue, and the lock that costs its owner no atomic operation.
 *
 * PARTIES   the owner (the thread whose queue it is), in every push and pick; a thief (the seeker of the pool: one at a
 *           time), rarely; any thread, at the inbox, which is outside of the lock.
 * STATE     busy: the owner is inside. thief: a thief is inside, or wants to be. The queue itself is plain data.
 * PROTOCOL  owner: busy = 1; if thief == 0 it is inside, else busy = 0, wait until thief == 0, again. Leaves by busy
 *           = 0. thief: takes `thief` by exchange; membarrier; waits until busy == 0; is inside. Leaves by thief = 0.
 * INVARIANT [R1] never both inside. It is Dekker's algorithm: store mine, then read yours. The owner's store and load
 *           may be reordered by the processor; the thief's membarrier makes that harmless: an owner whose load came
 *           before it has its store visible after it, so the thief waits; an owner whose load comes after it sees
 *           `thief`.
 * ORDERING  [R2] busy = 0 (release) pairs with the thief's load (acquire): it sees the owner's changes. thief = 0
 *           (release) pairs with the owner's load of thief (acquire). [R3] the store of `served` (release) pairs with
 *           the load of runq_length (acquire), which may be outside: a fibre that it counts as served it counts as put.
 *           [R4] a post into an inbox pairs with the exchange that takes it: what the poster did happens before the
 *           fibre runs. Both are seq_cst, and so is the look whether an inbox is empty, for [K1], [P2] and [Z1].
 * WITHOUT   membarrier (old kernels, TSan, valgrind) the owner pays for a fence between the store and the load.
 * PROGRESS  the owner enters by two plain accesses unless it meets a thief. Then runq_enter waits for the thief and
 *           pays for a fence, and runq_try_enter steps back and returns false. A thief is inside while it moves 32
 *           fibres at most, a balancing thread 64.
 * NOT DONE  a deque with a fence-free bottom (Chase-Lev with the thief paying): it serves one end only, and first
 *           come, first served for yielders needs another, and a joiner takes its own child from the middle; a lock
 *           covers any structure, and any field can be added. A mutex, or compare-and-swap at each push and pop: every
 *           spawn and join would pay for it, although thefts are rare. Several thieves at a time: the thief has the
 *           role of the seeker, and there is one.
 * TESTED BY tests/models/runq.pml, tests/stress. Page: docs/protocols/runq.md.
 */
#ifndef SCHED_RUNQ_H
#define SCHED_RUNQ_H

#include "fibre.h"
#include "platform.h"

void runq_enter_slow_(struct thread *owner, struct runq *queue);

/* Enters the owner's own queue. A thief waits until runq_leave. */
OWN_INLINE void runq_enter(struct thread *owner, struct runq *queue)
{
    if (!owner->concurrent)
        return;
    atomic_store_explicit(&queue->busy, 1, memory_order_relaxed);
    if (LIKELY(arch_membarrier_works))
        atomic_signal_fence(memory_order_seq_cst); /* [R1] */
    else
        atomic_thread_fence(memory_order_seq_cst);                           /* [R1] */
    if (UNLIKELY(atomic_load_explicit(&queue->thief, memory_order_acquire))) /* [R1] [R2] */
        runq_enter_slow_(owner, queue);
}

/* As runq_enter, but returns false if a thief is there. */
OWN_INLINE bool runq_try_enter(const struct thread *owner, struct runq *queue)
{
    if (!owner->concurrent)
        return true;
    atomic_store_explicit(&queue->busy, 1, memory_order_relaxed);
    if (LIKELY(arch_membarrier_works))
        atomic_signal_fence(memory_order_seq_cst); /* [R1] */
    else
        atomic_thread_fence(memory_order_seq_cst);                          /* [R1] */
    if (LIKELY(!atomic_load_explicit(&queue->thief, memory_order_acquire))) /* [R1] [R2] */
        return true;
    atomic_store_explicit(&queue->busy, 0, memory_order_release); /* [R2] */
    return false;
}

OWN_INLINE void runq_leave(struct thread *owner, struct runq *queue)
{
    if (owner->concurrent)
        atomic_store_explicit(&queue->busy, 0, memory_order_release); /* [R2] */
}

void runq_open(struct runq *queue);
/* Enters another thread's queue as a thief, until runq_break_out. Returns false if another thief is there. */
bool runq_break_in(struct thread *thief, struct runq *queue);
void runq_break_out(struct runq *queue);

/* Returns how many fibres are in the lists. Exact for a caller inside, else a hint. */
OWN_INLINE uint32_t runq_length(const struct runq *queue)
{
    uint32_t served = atomic_load_explicit(&queue->served, memory_order_acquire); /* [R3] first */
    return atomic_load_explicit(&queue->put, memory_order_relaxed) - served;
}

/* From here to runq_remove the caller is inside, or excludes other threads in another way. change: 1 if a fibre has
 * come, -1 if one has left without being served here. */
OWN_INLINE void runq_count_put(struct runq *queue, int32_t change)
{
    uint32_t put = atomic_load_explicit(&queue->put, memory_order_relaxed);
    atomic_store_explicit(&queue->put, put + (uint32_t)change, memory_order_relaxed);
}

OWN_INLINE void runq_count_served(struct runq *queue)
{
    uint32_t served = atomic_load_explicit(&queue->served, memory_order_relaxed);
    atomic_store_explicit(&queue->served, served + 1, memory_order_release); /* [R3] */
}

OWN_INLINE void runq_append(struct runq *queue, struct link *list, struct fibre *fibre)
{
    atomic_store_explicit(&fibre->in, queue, memory_order_relaxed);
    list_push_back(list, &fibre->queued);
    runq_count_put(queue, 1);
}

OWN_INLINE void runq_prepend(struct runq *queue, struct link *list, struct fibre *fibre)
{
    atomic_store_explicit(&fibre->in, queue, memory_order_relaxed);
    list_push_front(list, &fibre->queued);
    runq_count_put(queue, 1);
}

OWN_INLINE struct fibre *runq_out_(struct runq *queue, struct link *link, bool served)
{
    if (!link)
        return NULL;
    if (served)
        runq_count_served(queue);
    else
        runq_count_put(queue, -1);
    struct fibre *fibre = CONTAINER(link, struct fibre, queued);
    atomic_store_explicit(&fibre->in, NULL, memory_order_relaxed);
    return fibre;
}

/* Removes and returns the first fibre of a list, which the owner runs next; NULL: the list is empty. */
OWN_INLINE struct fibre *runq_first(struct runq *queue, struct link *list)
{
    return runq_out_(queue, list_pop_front(list), true);
}

OWN_INLINE struct fibre *runq_last(struct runq *queue, struct link *list)
{
    return runq_out_(queue, list_pop_back(list), true);
}

/* Removes and returns the first fibre of a list, which goes to another queue; NULL: the list is empty. */
OWN_INLINE struct fibre *runq_move_first(struct runq *queue, struct link *list)
{
    return runq_out_(queue, list_pop_front(list), false);
}

OWN_INLINE struct fibre *runq_move_last(struct runq *queue, struct link *list)
{
    return runq_out_(queue, list_pop_back(list), false);
}

/* In a seeded run, removes and returns one of the first four fibres of a queue with the one list `ready`. NULL: the
 * seed has chosen none of them; the caller takes the first. */
struct fibre *runq_any(struct thread *thread, struct runq *queue);
/* Removes a fibre if it is in a list of the queue, the slot not included. Returns whether it was. */
OWN_INLINE bool runq_remove(struct runq *queue, struct fibre *fibre)
{
    if (atomic_load_explicit(&fibre->in, memory_order_relaxed) != queue)
        return false;
    list_remove(&fibre->queued);
    runq_count_served(queue);
    atomic_store_explicit(&fibre->in, NULL, memory_order_relaxed);
    return true;
}

OWN_INLINE bool runq_inbox_filled(struct runq *queue)
{
    return atomic_load_explicit(&queue->inbox, memory_order_relaxed) != NULL;
}

#endif
