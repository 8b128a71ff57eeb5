/*
 * Values from strand to strand: the common case, which is inlined into an operation and into a case of a select, and
 * the general one, in chan_transfer.c. The protocol block is in chan.h.
 */
#ifndef SYNC_CHAN_TRANSFER_H
#define SYNC_CHAN_TRANSFER_H

#include "chan.h"
#include "source.h"

#include "../sched/switch.h"
#include "../strand/escape.h"
#include "../strand/wait.h"

/* The operation of a case, in any state of the channel: do it, or link the node, if there is one. Under the channel's
 * lock, which it releases. */
enum answer chan_transfer_stand(struct thread *thread, struct cb *me, struct chan *chan, strand_case *c,
                                struct wait_node *node, bool send);
/* Likewise, but the channel has ended. */
enum answer chan_transfer_stand_with_none(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node);

/* The common case: the first waiter can be claimed. Returns NULL if the slow path has to look. */
static inline struct wait_node *chan_transfer_claim(struct thread *thread, struct link *queue)
{
    struct wait_node *node = CONTAINER(queue->next, struct wait_node, link);
    if (UNLIKELY(!node->waiter || !wait_claim(node, thread->concurrent)))
        return NULL;
    chan_unlink(node);
    return node;
}

/* Under the lock, which they release: move the value to and from a claimed partner. */
static inline void chan_transfer_give(struct thread *thread, struct chan *chan, struct wait_node *partner,
                                      const void *value)
{
    size_t size = chan->size;
    chan_unlock(thread, chan);
    platform_point(thread); /* the channel may end here */
    value_move(size, partner->value, value);
    partner->result = 0;
    thread_ready(thread, &partner->waiter->member);
}

static inline void chan_transfer_take(struct thread *thread, struct chan *chan, struct wait_node *partner, void *value)
{
    size_t size = chan->size;
    chan_unlock(thread, chan);
    platform_point(thread); /* as in chan_transfer_give */
    value_move(size, value, partner->value);
    partner->result = 0;
    thread_ready(thread, &partner->waiter->member);
}

/* The common case, for a strand that is not armed. DONE: the lock is released. SLOW: take the slow path. */
enum quick { QUICK_DONE, QUICK_NOT, QUICK_SLOW };

static inline __attribute__((always_inline)) enum quick chan_transfer_quick_send(struct thread *thread,
                                                                                 struct chan *chan, const void *value)
{
    if (UNLIKELY(chan->closed))
        return QUICK_SLOW;
    if (!list_empty(&chan->receivers)) {
        struct wait_node *partner = chan_transfer_claim(thread, &chan->receivers);
        if (UNLIKELY(!partner))
            return QUICK_SLOW;
        chan_transfer_give(thread, chan, partner, value);
        return QUICK_DONE;
    }
    if (chan->count == chan->capacity)
        return QUICK_NOT;
    chan_put(chan, value);
    chan_unlock(thread, chan);
    return QUICK_DONE;
}

static inline __attribute__((always_inline)) enum quick chan_transfer_quick_receive(struct thread *thread,
                                                                                    struct chan *chan, void *value)
{
    if (list_empty(&chan->senders)) {
        if (!chan->count)
            return LIKELY(!chan->closed) ? QUICK_NOT : QUICK_SLOW;
        value_move(chan->size, value, chan_take(chan));
        chan_unlock(thread, chan);
        return QUICK_DONE;
    }
    struct wait_node *partner = chan->count ? NULL : chan_transfer_claim(thread, &chan->senders);
    if (UNLIKELY(!partner))
        return QUICK_SLOW;
    chan_transfer_take(thread, chan, partner, value);
    return QUICK_DONE;
}

/* The channel is locked. */
static inline void chan_transfer_check(struct thread *thread, struct chan *chan, const void *value,
                                       const char *function)
{
    must_not_escape_copied(thread, value, chan->size, &chan->lock, "the value", function);
}

#endif
