/*
 * Values from plain threads. A posted value travels in a record of its own through the posts of the pool to one of its
 * threads, which puts it into the channel as a sender would; where there is no room, the record stands in the queue.
 * Between the two, `posts` counts it, so that a closed channel does not say that nothing is left. Model:
 * tests/models/post.pml.
 */
#include "chan.h"

#include "../sched/pool.h"
#include "../strand/fibre.h"
#include "../strand/hook.h"
#include "../strand/quiet.h"
#include "../strand/wait.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static const char *made(const struct hook *hook, char *buffer, size_t size)
{
    (void)hook;
    snprintf(buffer, size, "the value was posted into a channel that was gone when it came there");
    return buffer;
}

/* On whatever strand runs here, or on none. */
static void give_up(struct posted *posted)
{
    if (posted->drop) {
        struct hook hook HOOK = {.name = "strand_chan_attr.drop", .made = made};
        hook_enter(&hook);
        posted->drop(posted->value);
        hook_over(&hook);
    }
    free(posted);
}

/* Under the lock. The receiver that gets it, with the value; or NULL: it is in the ring, or the queue. */
static struct wait_node *place(struct thread *thread, struct chan *chan, struct posted *posted)
{
    struct link *link;
    while ((link = chan->receivers.next) != &chan->receivers) {
        struct wait_node *node = CONTAINER(link, struct wait_node, link);
        chan_unlink(node);
        if (!wait_claim(node, thread->shared))
            continue;
        value_move(chan->size, node->value, posted->value);
        node->result = 0;
        free(posted);
        return node;
    }
    if (chan->count < chan->capacity) {
        chan_put(chan, posted->value);
        free(posted);
    } else {
        chan_link(&chan->senders, &posted->node);
    }
    return NULL;
}

/* On a thread of the pool; or, of a run that has ended, on any. */
static struct member *arrive(struct post *post)
{
    struct posted *posted = CONTAINER(post, struct posted, post);
    struct thread *thread = thread_self();
    arch_note_acquire(post);
    struct chan *chan = thread && runtime_of(thread) == posted->runtime ? chan_find(thread, posted->chan) : NULL;
    if (!chan) {
        give_up(posted);
        return NULL;
    }
    struct batch woken;
    struct member *member;
    batch_init(&woken);
    struct wait_node *receiver = place(thread, chan, posted);
    atomic_fetch_sub_explicit(&chan->posts, POSTS_ONE, memory_order_acq_rel);
    if (chan_is_over(chan) && !chan->count && list_empty(&chan->senders))
        chan_wake_receivers(thread, chan, &woken);
    chan_unlock(thread, chan);
    while ((member = batch_take(&woken)))
        pool_deliver(thread, member);
    if (!receiver)
        return NULL;
    member = &receiver->waiter->member;
    arch_note_release(member); /* from here on the node is the receiver's again */
    return member;
}

/* Keep the channel from ending; false: it is gone. Any thread. */
static bool pin_chan(struct chan *chan, uint64_t serial)
{
    uint64_t word = atomic_load_explicit(&chan->word, memory_order_acquire);
    while (word_serial(word) == serial)
        if ((word & WORD_PINS) == WORD_PINS)
            word = atomic_load_explicit(&chan->word, memory_order_acquire);
        else if (atomic_compare_exchange_weak_explicit(&chan->word, &word, word + WORD_PIN, memory_order_acq_rel,
                                                       memory_order_acquire))
            return true;
    return false;
}

/* Count one in, unless it is closed. */
static bool accept(struct chan *chan)
{
    uint64_t posts = atomic_load_explicit(&chan->posts, memory_order_relaxed);
    do {
        if (posts & POSTS_CLOSED)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&chan->posts, &posts, posts + POSTS_ONE, memory_order_acq_rel,
                                                    memory_order_relaxed));
    return true;
}

/* The channel is pinned. */
static int post(struct chan *chan, strand_chan handle, const void *value)
{
    struct thread *thread = thread_self(); /* NULL: a plain one */
    size_t size = sizeof(struct posted) + chan->size;
    if (thread && thread->current)
        must_not_hold_address(thread, value, chan->size, NULL, "the value", "strand_chan_post");
    struct posted *posted = thread ? driver_malloc(thread, size) : malloc(size);
    if (!posted)
        return -ENOMEM;
    if (!accept(chan)) {
        free(posted);
        return -EPIPE;
    }
    *posted = (struct posted){
        .post.run = arrive, .node.value = posted->value, .chan = handle, .runtime = chan->runtime, .drop = chan->drop};
    value_move(chan->size, posted->value, value);
    if (!thread || runtime_of(thread) != chan->runtime)
        quiet_reached(&chan->runtime->sub);
    arch_note_release(&posted->post);
    pool_post(chan->owned.pool, &posted->post);
    return 0;
}

int strand_chan_post(strand_chan handle, const void *value)
{
    struct chan *chan = (struct chan *)(uintptr_t)handle.bits[0];
    if (!arch_in_handles(chan) || !pin_chan(chan, handle.bits[1]))
        return -EPIPE;
    int error = subprocess_is_left(&chan->runtime->sub) ? -EPIPE
                : value || !chan->size                  ? post(chan, handle, value)
                                                        : -EINVAL;
    atomic_fetch_sub_explicit(&chan->word, WORD_PIN, memory_order_acq_rel);
    return error;
}
