/*
 * Channels. Page: docs/protocols/chan.md.
 *
 * PARTIES   senders, receivers, selects with both; strands and plain threads that post; closers; the scope that the
 *           channel ends with.
 * STATE     under the lock: `closed`; a ring of `count` values; two queues of wait nodes. A node without a waiter is a
 *           value that was posted while there was no room: it lies in a record of its own. Without the lock: `word`
 *           (serial and references: whether a handle is stale), `posts` (closed, and how many values were accepted from
 *           plain threads and are not in the channel yet).
 * PROTOCOL  a strand that finds a partner in the other queue claims the partner's wait, unlinks its node, releases the
 *           lock, moves the value straight between the two, and makes the partner runnable. Otherwise it uses the ring;
 *           otherwise it arms its wait, links its node, and parks. A claim fails if the partner has gone: its node is
 *           unlinked.
 * OWNERSHIP the node of a claimed partner, and the memory that node->value points to, belong to the claimer until the
 *           partner is runnable. The channel has no owner without the lock: it may end while a value moves between two
 *           strands.
 * INVARIANTS [H1] no receiver waits while there is a value; no sender waits while there is room. [H2] a value is in one
 *           place: its sender's, the ring, a record, its receiver's. [H3] a closed channel reports that to receivers
 *           only when nothing is left in it, nor on its way (posts). [H4] between the call of an operation and its end,
 *           or its queueing, nothing else runs on the thread: no later operation overtakes it.
 * ORDERING  the lock. In a run of one thread there is none: nothing here suspends.
 * NOT DONE  locking all channels of a select at once (in the order of addresses): its wait decides instead, see
 *           select.md. Separate locks for ring and queues: one more exchange on the path that counts. A post that is
 *           refused when the channel is full: without the lock no thread knows that. A queue of posted values beside
 *           the senders: the two would need an order.
 * TESTED BY tests/models/select.pml, tests/models/close.pml, tests/models/post.pml, tests/spec/chan.c,
 *           tests/spec/chan_close.c, tests/spec/chan_post.c, tests/spec/order.c.
 */
#ifndef SYNC_CHAN_H
#define SYNC_CHAN_H

#include "../../include/strand/chan.h"
#include "../sched/platform.h"
#include "../strand/core.h"

#include <string.h>

struct chan {
    _Atomic uint64_t word; /* serial << WORD_SERIAL | references of plain threads; every change is atomic */
    void *link_[2];        /* the slab's */
    atomic_flag lock;
    bool closed;
    size_t size, capacity, head, count;
    char *ring;
    struct link senders, receivers;
    _Atomic uint64_t posts; /* count << 1 | closed */
    struct runtime *runtime;
    void (*drop)(void *element);
    char name[32];
    void *site; /* where it was made */
    struct owned owned;
};
_Static_assert(sizeof(struct chan) <= OBJECT_SIZE && offsetof(struct chan, lock) == OBJECT_LOCK,
               "a channel is one of the run's objects");

enum { POSTS_CLOSED = 1, POSTS_ONE = 2 };

/* A posted value that is on its way or has found no room. */
struct posted {
    struct post post;
    struct wait_node node; /* waiter: NULL */
    strand_chan chan;
    struct runtime *runtime;
    void (*drop)(void *element);
    _Alignas(16) char value[];
};

static inline void chan_lock(struct thread *thread, struct chan *chan)
{
    spin_lock_if_concurrent(&chan->lock, thread);
}

static inline void chan_unlock(struct thread *thread, struct chan *chan)
{
    spin_unlock_if_concurrent(&chan->lock, thread);
}

/* Find the channel behind a handle, without a lock: in a run of several threads it may be gone at any moment. NULL: it
 * is gone. */
static inline __attribute__((always_inline)) struct chan *chan_seen(struct thread *thread, strand_chan handle)
{
    struct chan *chan = (struct chan *)(uintptr_t)handle.bits[0];
    if (UNLIKELY(!arch_in_handles(chan)))
        return NULL;
    if (UNLIKELY(word_serial(atomic_load_explicit(&chan->word, memory_order_relaxed)) != handle.bits[1] ||
                 plain_load(&chan->runtime, memory_order_relaxed) != runtime_of(thread)))
        return NULL;
    return chan;
}

/* Find and lock the channel behind a handle. NULL: it is gone. */
static inline __attribute__((always_inline)) struct chan *chan_find(struct thread *thread, strand_chan handle)
{
    struct chan *chan = chan_seen(thread, handle);
    if (UNLIKELY(!chan) || !thread->concurrent)
        return chan;
    spin_lock(&chan->lock, thread);
    if (LIKELY(word_serial(atomic_load_explicit(&chan->word, memory_order_relaxed)) == handle.bits[1]))
        return chan;
    spin_unlock(&chan->lock);
    return NULL;
}

/* Likewise, for an operation with *value. Misuse if the channel is gone, or value is NULL and should not be. */
struct chan *chan_misused_(struct thread *thread, struct chan *chan, strand_chan handle, const char *function);
static inline __attribute__((always_inline)) struct chan *chan_of(struct thread *thread, strand_chan handle,
                                                                  const void *value, const char *function)
{
    struct chan *chan = chan_find(thread, handle);
    return LIKELY(chan && (value || !chan->size)) ? chan : chan_misused_(thread, chan, handle, function);
}

static inline void value_move(size_t size, void *to, const void *from)
{
    if (size == sizeof(uint64_t))
        memcpy(to, from, sizeof(uint64_t));
    else if (size)
        memcpy(to, from, size);
}

/* Under the lock; the ring has room. */
static inline void chan_put(struct chan *chan, const void *value)
{
    size_t at = chan->head + chan->count++;
    value_move(chan->size, chan->ring + (at < chan->capacity ? at : at - chan->capacity) * chan->size, value);
}

/* Under the lock; the ring has a value. */
static inline void *chan_take(struct chan *chan)
{
    void *value = chan->ring + chan->head * chan->size;
    chan->head = chan->head + 1 < chan->capacity ? chan->head + 1 : 0;
    chan->count--;
    return value;
}

static inline void chan_link(struct link *queue, struct wait_node *node)
{
    list_push_back(queue, &node->link);
    atomic_store_explicit(&node->linked, 1, memory_order_relaxed);
}

static inline void chan_unlink(struct wait_node *node)
{
    list_remove(&node->link);
    atomic_store_explicit(&node->linked, 0, memory_order_relaxed);
}

/* Under the lock: the channel is closed, and nothing is on its way into it. If it is also empty, nothing will ever be
 * received [H3]. */
static inline bool chan_is_over(struct chan *chan)
{
    return chan->closed && atomic_load_explicit(&chan->posts, memory_order_acquire) == POSTS_CLOSED; /* [H3] */
}

/* Under the lock, when the channel is over and empty: end the waits of all receivers, with -EPIPE. */
void chan_wake_receivers(struct thread *thread, struct chan *chan, struct batch *woken);

#endif
