/*
 * A channel's life: opening in a scope, closing, and ending with the scope. The protocol block is in chan.h; sending
 * and receiving are in chan_transfer.c, cases of a select in chan_case.c, posting in chan_post.c.
 */
#include "chan.h"

#include "../strand/exception.h"
#include "../strand/handle.h"
#include "../strand/hook.h"
#include "../strand/misuse.h"
#include "../strand/print.h"
#include "../strand/scope.h"
#include "../strand/sized.h"
#include "../strand/throw.h"
#include "../strand/wait.h"
#include "source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static const char *made(const struct chan *chan, char *buffer, size_t size)
{
    char where[LOCATION_WORDS];
    snprintf(buffer, size, "the channel '%s' was opened in %s", chan->name,
             print_location_line(chan->site, where, sizeof where));
    return buffer;
}

COLD struct chan *chan_misused_(struct thread *thread, struct chan *chan, strand_chan handle, const char *function)
{
    char text[256];
    if (chan) {
        size_t size = chan->size;
        made(chan, text, sizeof text);
        chan_unlock(thread, chan);
        misuse(function, text, "there is no memory for a value of %zu bytes: it is NULL", size);
    }
    chan = (struct chan *)(uintptr_t)handle.bits[0];
    if (arch_in_handles(chan) && word_serial(atomic_load_explicit(&chan->word, memory_order_relaxed)) == handle.bits[1])
        misuse_foreign(function, "channel");
    misuse(function, "",
           handle.bits[1] ? "the channel is gone: its scope has been left. Open it in a scope that ends after its users"
                          : "there is no channel behind {0}: strand_chan_open makes one");
}

/* ---- waking ----------------------------------------------------------------------------------------------- */

/* Under the lock: let selects that want it drop out; if `ends`, also end all other waits in the queue, with -EPIPE.
 * Posted values stay. */
static void wake_all(struct thread *thread, struct link *queue, bool ends, struct batch *woken)
{
    struct link *next = queue->next;
    while (next != queue) {
        struct wait_node *node = CONTAINER(next, struct wait_node, link);
        struct member *member = NULL;
        next = next->next;
        if (!node->waiter)
            continue;
        if (node->marks & NODE_DROPS) {
            chan_unlink(node);
            member = select_drop_out(thread, node);
        } else if (ends) {
            chan_unlink(node);
            node->result = -EPIPE;
            if (wait_claim(node, thread->concurrent))
                member = &node->waiter->member;
        }
        batch_add(woken, member);
    }
}

void chan_wake_receivers(struct thread *thread, struct chan *chan, struct batch *woken)
{
    wake_all(thread, &chan->receivers, true, woken);
}

/* Find and lock the channel; misuse if it is gone. */
static struct chan *find_locked(struct thread *thread, strand_chan handle, const char *function)
{
    struct chan *chan = chan_find(thread, handle);
    return chan ? chan : chan_misused_(thread, NULL, handle, function);
}

void strand_chan_close(strand_chan handle)
{
    struct thread *thread = must_be_strand("strand_chan_close");
    struct batch woken;
    batch_init(&woken);
    struct chan *chan = find_locked(thread, handle, "strand_chan_close");
    chan->closed = true;
    atomic_fetch_or_explicit(&chan->posts, POSTS_CLOSED, memory_order_acq_rel); /* [H3] */
    wake_all(thread, &chan->senders, false, &woken);                            /* a queued send still succeeds [H3] */
    if (chan_is_over(chan))
        chan_wake_receivers(thread, chan, &woken);
    chan_unlock(thread, chan);
    batch_deliver(thread, &woken);
}

/* ---- the end ---------------------------------------------------------------------------------------------- */

static const char *made_hook(const struct hook *hook, char *buffer, size_t size)
{
    return made(hook->object, buffer, size);
}

static void drop(struct chan *chan, void *value)
{
    if (!chan->drop)
        return;
    struct hook hook HOOK = {.name = "strand_chan_attr.drop", .made = made_hook, .object = chan};
    hook_enter(&hook);
    chan->drop(value);
    hook_over(&hook);
}

/* Drop the values that are left. No handle finds the channel any more. */
static void drop_all(struct chan *chan)
{
    while (chan->count)
        drop(chan, chan_take(chan));
    struct link *link;
    while ((link = list_pop_front(&chan->senders))) {
        struct posted *posted = CONTAINER(link, struct posted, node.link);
        drop(chan, posted->value);
        free(posted);
    }
    free(chan->ring);
}

static void chan_end(struct thread *thread, struct owned *owned)
{
    struct chan *chan = CONTAINER(owned, struct chan, owned);
    struct batch woken;
    batch_init(&woken);
    chan_lock(thread, chan);
    chan->closed = true;
    atomic_fetch_or_explicit(&chan->posts, POSTS_CLOSED, memory_order_acq_rel); /* [H3] */
    wake_all(thread, &chan->senders, true, &woken);
    wake_all(thread, &chan->receivers, true, &woken);
    uint64_t word = atomic_load_explicit(&chan->word, memory_order_relaxed);
    do {
        while (word & WORD_REFS) { /* a posting thread is about to see that the channel is closed */
            platform_await(thread);
            word = atomic_load_explicit(&chan->word, memory_order_relaxed);
        }
    } while (!atomic_compare_exchange_strong_explicit(&chan->word, &word, word_freed(word), memory_order_acq_rel,
                                                      memory_order_relaxed)); /* [HN1] */
    chan_unlock(thread, chan);
    batch_deliver(thread, &woken);
    drop_all(chan);
    arch_san_release(chan);
    slab_put(&worker_of(thread)->objects, chan);
}

/* ---- making ----------------------------------------------------------------------------------------------- */

static void init(struct thread *thread, struct chan *chan, size_t size, size_t capacity, const strand_chan_attr *attr)
{
    memset((char *)chan + offsetof(struct chan, closed), 0, sizeof *chan - offsetof(struct chan, closed));
    chan->size = size;
    chan->capacity = capacity;
    list_init(&chan->senders);
    list_init(&chan->receivers);
    chan->runtime = runtime_of(thread);
    chan->drop = attr ? attr->drop : NULL;
    snprintf(chan->name, sizeof chan->name, "%s", attr && attr->name ? attr->name : "channel");
    chan->owned.release = chan_end;
}

/* Allocate a channel and its values. Returns 0, -ENOMEM, or -EOVERFLOW if the size overflows. */
static int make(struct thread *thread, size_t size, size_t capacity, const strand_chan_attr *attr, struct chan **out)
{
    size_t room;
    if (__builtin_mul_overflow(size, capacity, &room) || room > PTRDIFF_MAX)
        return -EOVERFLOW;
    char *ring = room ? platform_malloc(thread, room) : NULL;
    if (room && !ring)
        return -ENOMEM;
    struct chan *chan = platform_slab_get(thread, &worker_of(thread)->objects);
    if (!chan) {
        free(ring);
        return -ENOMEM;
    }
    arch_san_acquire(chan);
    init(thread, chan, size, capacity, attr);
    chan->ring = ring;
    atomic_store_explicit(&chan->word, next_serial(worker_of(thread)) << WORD_SERIAL, memory_order_release); /* [HN2] */
    *out = chan;
    return 0;
}

strand_chan strand_chan_open(strand_scope scope, size_t size, size_t capacity, const strand_chan_attr *attr)
{
    struct thread *thread = must_be_strand("strand_chan_open");
    struct cb *me = current_of(thread);
    struct chan *chan;
    if (attr)
        must_have_size(attr->size, sizeof *attr, "strand_chan_attr", "strand_chan_open");
    int error = make(thread, size, capacity, attr, &chan);
    if (!error)
        chan->site = __builtin_return_address(0);
    uint64_t serial = error ? 0 : word_serial(atomic_load_explicit(&chan->word, memory_order_relaxed));
    if (!error && (error = scope_own(thread, me, scope, &chan->owned, "strand_chan_open")))
        chan_end(thread, &chan->owned);
    if (error)
        throw_system(me, error, error == -ECANCELED ? "a channel of an open scope that has been left" : "a channel");
    return (strand_chan){{(uint64_t)(uintptr_t)chan, serial}}; /* a channel of an open scope may have ended by now */
}

size_t strand_chan_length(strand_chan handle)
{
    struct thread *thread = must_be_strand("strand_chan_length");
    struct chan *chan = find_locked(thread, handle, "strand_chan_length");
    size_t count = chan->count;
    chan_unlock(thread, chan);
    return count;
}

size_t strand_chan_capacity(strand_chan handle)
{
    struct thread *thread = must_be_strand("strand_chan_capacity");
    struct chan *chan = find_locked(thread, handle, "strand_chan_capacity");
    size_t capacity = chan->capacity;
    chan_unlock(thread, chan);
    return capacity;
}
