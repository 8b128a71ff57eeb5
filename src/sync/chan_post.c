/*
 * Posts. A strand of the channel's run puts its value into the channel at once, as a sender would; if there is no room,
 * a record with the value is queued. So the strand's next send or receive comes after it. From anywhere else the record
 * travels through the posts of the pool to one of its threads, which does the same. `posts` counts such records, so
 * that a closed channel does not report that nothing is left. Model: tests/models/post.pml.
 */
#include "chan.h"

#include "../strand/escape.h"
#include "../strand/hook.h"
#include "../strand/outside_thread.h"
#include "../strand/wait.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static const char *made(const struct hook *hook, char *buffer, size_t size)
{
    (void)hook;
    snprintf(buffer, size, "the value was posted to a channel that ended before it arrived");
    return buffer;
}

/* Drop the value, on whatever strand runs here, or on none. */
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

/* Under the lock. Returns false if there is no room for the value. Otherwise the value went to *receiver, which the
 * caller makes runnable, or to the ring (*receiver is NULL). */
static bool place(struct thread *thread, struct chan *chan, const void *value, struct wait_node **receiver)
{
    struct link *link;
    while ((link = chan->receivers.next) != &chan->receivers) {
        struct wait_node *node = CONTAINER(link, struct wait_node, link);
        chan_unlink(node);
        if (!wait_claim(node, thread->concurrent))
            continue;
        value_move(chan->size, node->value, value);
        node->result = 0;
        *receiver = node;
        return true;
    }
    *receiver = NULL;
    if (chan->count == chan->capacity)
        return false;
    chan_put(chan, value);
    return true;
}

/* Under the lock. Returns the receiver that has got the value, or NULL. */
static struct wait_node *place_posted(struct thread *thread, struct chan *chan, struct posted *posted)
{
    struct wait_node *receiver;
    if (place(thread, chan, posted->value, &receiver))
        free(posted);
    else
        chan_link(&chan->senders, &posted->node);
    return receiver;
}

/* On a thread of the pool, or on any thread if the run has ended. */
static struct member *arrive(struct post *post)
{
    struct posted *posted = CONTAINER(post, struct posted, post);
    struct thread *thread = thread_self();
    arch_san_acquire(post);
    struct chan *chan = thread && runtime_of(thread) == posted->runtime ? chan_find(thread, posted->chan) : NULL;
    if (!chan) {
        give_up(posted);
        return NULL;
    }
    struct batch woken;
    struct member *member;
    batch_init(&woken);
    struct wait_node *receiver = place_posted(thread, chan, posted);
    atomic_fetch_sub_explicit(&chan->posts, POSTS_ONE, memory_order_acq_rel); /* [H3] */
    if (chan_is_over(chan) && !chan->count && list_empty(&chan->senders))
        chan_wake_receivers(thread, chan, &woken);
    chan_unlock(thread, chan);
    while ((member = batch_take(&woken)))
        pool_deliver(thread, member);
    if (!receiver)
        return NULL;
    member = &receiver->waiter->member;
    arch_san_release(member); /* from here on the node is the receiver's again */
    return member;
}

/* Keep the channel from ending. Returns false if it is gone. Any thread. */
static bool ref_chan(struct chan *chan, uint64_t serial)
{
    uint64_t word = atomic_load_explicit(&chan->word, memory_order_acquire); /* [HN2] */
    while (word_serial(word) == serial)
        if ((word & WORD_REFS) == WORD_REFS)
            word = atomic_load_explicit(&chan->word, memory_order_acquire); /* [HN2] */
        else if (atomic_compare_exchange_weak_explicit(&chan->word, &word, word + WORD_REF, memory_order_acq_rel,
                                                       memory_order_acquire)) /* [HN1] */
            return true;
    return false;
}

/* Count a value in. Returns false if the channel is closed. */
static bool accept(struct chan *chan)
{
    uint64_t posts = atomic_load_explicit(&chan->posts, memory_order_relaxed);
    do {
        if (posts & POSTS_CLOSED)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&chan->posts, &posts, posts + POSTS_ONE, memory_order_acq_rel,
                                                    memory_order_relaxed)); /* [H3] */
    return true;
}

/* Make a record with the value. Returns NULL if there is no memory. thread NULL: a plain thread. */
static struct posted *make_posted(struct thread *thread, size_t value_size, const void *value)
{
    size_t size = sizeof(struct posted) + value_size;
    struct posted *posted = thread ? platform_malloc(thread, size) : malloc(size);
    if (!posted)
        return NULL;
    memset(posted, 0, sizeof *posted);
    posted->node.value = posted->value;
    value_move(value_size, posted->value, value);
    return posted;
}

/* From a strand of the run; under the lock, which it releases. */
static int post_at_once(struct thread *thread, struct chan *chan, strand_chan handle, const void *value)
{
    size_t size = chan->size;
    struct wait_node *receiver;
    must_not_escape_copied(thread, value, size, &chan->lock, "the value", "strand_chan_post");
    if (!chan->closed && place(thread, chan, value, &receiver)) {
        chan_unlock(thread, chan);
        if (receiver)
            thread_ready(thread, &receiver->waiter->member);
        return 0;
    }
    bool closed = chan->closed;
    chan_unlock(thread, chan);
    struct posted *posted = closed ? NULL : make_posted(thread, size, value);
    if (!posted)
        return closed ? -EPIPE : -ENOMEM;
    chan = chan_find(thread, handle);
    if (!chan || chan->closed) { /* meanwhile */
        if (chan)
            chan_unlock(thread, chan);
        free(posted);
        return -EPIPE;
    }
    receiver = place_posted(thread, chan, posted);
    chan_unlock(thread, chan);
    if (receiver)
        thread_ready(thread, &receiver->waiter->member);
    return 0;
}

/* From anywhere else. The caller has a reference to the channel. */
static int post(struct chan *chan, strand_chan handle, const void *value)
{
    struct thread *thread = thread_self(); /* NULL: a plain thread */
    if (thread && thread->current)
        must_not_escape_copied(thread, value, chan->size, NULL, "the value", "strand_chan_post");
    struct posted *posted = make_posted(thread, chan->size, value);
    if (!posted)
        return -ENOMEM;
    if (!accept(chan)) {
        free(posted);
        return -EPIPE;
    }
    posted->post.run = arrive;
    posted->chan = handle;
    posted->runtime = chan->runtime;
    posted->drop = chan->drop;
    if (!thread || runtime_of(thread) != chan->runtime)
        outside_thread_acts(chan->runtime);
    arch_san_release(&posted->post);
    pool_post(chan->owned.pool, &posted->post);
    return 0;
}

int strand_chan_post(strand_chan handle, const void *value)
{
    struct thread *thread = thread_self();
    struct chan *chan = thread && thread->current ? chan_find(thread, handle) : NULL;
    if (chan && (value || !chan->size))
        return post_at_once(thread, chan, handle, value);
    if (chan) {
        chan_unlock(thread, chan);
        return -EINVAL;
    }
    chan = (struct chan *)(uintptr_t)handle.bits[0];
    if (!arch_in_handles(chan) || !ref_chan(chan, handle.bits[1]))
        return -EPIPE;
    int error = subprocess_is_left(&chan->runtime->sub) ? -EPIPE
                : value || !chan->size                  ? post(chan, handle, value)
                                                        : -EINVAL;
    atomic_fetch_sub_explicit(&chan->word, WORD_REF, memory_order_acq_rel); /* [HN1] */
    return error;
}
