/*
 * Values from strand to strand: sends and receives that wait, that only try, and that serve a case of a select (see
 * chan_case.c). The protocol block is in chan.h.
 *
 * Every function leads to `match` or from there to `finish`, which are inlined into the paths that a value takes. So
 * these paths stay in one file, but for the common case: that is in chan_transfer.h.
 */
#include "chan_transfer.h"

#include "../strand/exception.h"
#include "../strand/interrupt.h"
#include "../strand/misuse.h"
#include "../strand/throw.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One send or receive. Its strand is armed only if this is a case of a select that stands with all its cases. */
struct transfer {
    struct cb *me;
    struct chan *chan;
    void *value;
    size_t size; /* the channel's; the channel may have ended when the value is moved */
    bool armed, drops, from_ring;
    int result;
    struct wait_node *partner; /* claimed, or posted: its value is moved after the lock is released */
};

/* ---- finding a partner, under the lock -------------------------------------------------------------------- */

/* Take the first available partner, other than the caller, out of the queue. An armed caller is idle afterwards if
 * there was one, and otherwise armed as before. */
static enum answer match(struct thread *thread, struct transfer *t, struct link *queue, bool armed)
{
    struct link *next = queue->next;
    struct cb *trying = NULL;
    while (next != queue) {
        struct wait_node *node = CONTAINER(next, struct wait_node, link);
        if (armed && node->waiter == t->me) {
            next = next->next;
            continue;
        }
        if (armed && !trying && !wait_try(thread, t->me))
            return SOURCE_LOST;
        trying = armed ? t->me : NULL;
        enum claim claim =
            node->waiter ? wait_claim_as(trying, node, node->index, thread->concurrent) : CLAIM_WON; /* posted */
        if (UNLIKELY(claim == CLAIM_YIELD)) {
            wait_tried(thread, t->me, WAIT_ARMED);
            trying = NULL;
            platform_await(thread);
            continue;
        }
        next = next->next;
        chan_unlink(node);
        if (claim == CLAIM_WON) {
            if (armed)
                wait_tried(thread, t->me, WAIT_IDLE);
            t->partner = node;
            return SOURCE_DONE;
        }
    }
    if (trying)
        wait_tried(thread, trying, WAIT_ARMED);
    return SOURCE_NOT;
}

/* The operation can happen without another strand's wait. */
static inline enum answer settle(struct thread *thread, struct transfer *t, int result)
{
    if (result && t->drops)
        return SOURCE_DROPPED;
    if (t->armed && !wait_retract(thread, t->me)) /* [X1] */
        return SOURCE_LOST;
    t->result = result;
    return SOURCE_DONE;
}

static inline enum answer send_locked(struct thread *thread, struct transfer *t)
{
    struct chan *chan = t->chan;
    if (UNLIKELY(chan->closed))
        return settle(thread, t, -EPIPE);
    if (!list_empty(&chan->receivers)) {
        enum answer answer = match(thread, t, &chan->receivers, t->armed);
        if (answer != SOURCE_NOT)
            return answer;
    }
    if (chan->count == chan->capacity)
        return SOURCE_NOT;
    enum answer answer = settle(thread, t, 0);
    if (answer == SOURCE_DONE)
        chan_put(chan, t->value);
    return answer;
}

static inline enum answer receive_from_ring(struct thread *thread, struct transfer *t)
{
    struct chan *chan = t->chan;
    enum answer answer = settle(thread, t, 0);
    if (answer != SOURCE_DONE)
        return answer;
    value_move(chan->size, t->value, chan_take(chan));
    t->from_ring = true;
    if (!list_empty(&chan->senders) && match(thread, t, &chan->senders, false) == SOURCE_DONE)
        chan_put(chan, t->partner->value); /* the first queued sender's value takes the room [H1] */
    return answer;
}

static inline enum answer receive_locked(struct thread *thread, struct transfer *t)
{
    struct chan *chan = t->chan;
    if (chan->count)
        return receive_from_ring(thread, t);
    if (!list_empty(&chan->senders)) {
        enum answer answer = match(thread, t, &chan->senders, t->armed);
        if (answer != SOURCE_NOT)
            return answer;
    }
    return UNLIKELY(chan_is_over(chan)) ? settle(thread, t, -EPIPE) : SOURCE_NOT;
}

/* ---- moving the value, without the lock ------------------------------------------------------------------- */

/* The partner's operation is complete: make it runnable. */
static inline void dismiss(struct thread *thread, struct wait_node *partner)
{
    struct cb *waiter = partner->waiter;
    if (UNLIKELY(!waiter)) {
        free(CONTAINER(partner, struct posted, node));
        return;
    }
    partner->result = 0;
    thread_ready(thread, &waiter->member);
}

/* The value moves once, straight between the two operations, or went through the ring under the lock [H2]. */
static inline void finish(struct thread *thread, struct transfer *t, bool send)
{
    struct wait_node *partner = t->partner;
    if (!partner)
        return;
    platform_point(thread); /* the channel may end here */
    if (send)
        value_move(t->size, partner->value, t->value);
    else if (!t->from_ring)
        value_move(t->size, t->value, partner->value);
    dismiss(thread, partner);
}

/* ---- waiting alone ---------------------------------------------------------------------------------------- */

static int send_slowly(struct thread *thread, struct cb *me, struct chan *chan, strand_chan handle, const void *value);
static int receive_slowly(struct thread *thread, struct cb *me, struct chan *chan, strand_chan handle, void *value);

/* The wait was interrupted: leave the queue. Throws, unless the interruption is already over. */
static COLD void leave_queue(struct thread *thread, struct cb *me, struct chan *chan)
{
    struct wait_node *node = &me->wait.node;
    /* The channel may have ended meanwhile: its lock still works, and then the node is not linked. */
    chan_lock(thread, chan);
    if (atomic_load_explicit(&node->linked, memory_order_relaxed))
        chan_unlink(node);
    chan_unlock(thread, chan);
    if (interrupted_here(me))
        interrupt_throw(thread, me, 0);
}

/* Under the lock, which it releases: wait in the queue for a partner. Returns false if the wait was interrupted and the
 * interruption is already over. */
static inline __attribute__((always_inline)) bool wait_in(struct thread *thread, struct cb *me, struct chan *chan,
                                                          struct link *queue, void *value, unsigned why)
{
    struct wait_node *node = &me->wait.node;
    node->value = value;
    wait_because(thread, me, why, (uint64_t)(uintptr_t)chan);
    node->epoch = wait_arm(thread, me, own_of(me)->floor);
    chan_link(queue, node);
    chan_unlock(thread, chan);
    if (UNLIKELY(interrupted(me)) && wait_retract(thread, me)) { /* [W4] */
        me->blocked = BLOCKED_NOT;
    } else {
        thread = switch_park(thread);
        if (LIKELY(wait_over(me) == WAIT_WON))
            return true;
    }
    leave_queue(thread, me, chan);
    return false;
}

/* Under the lock, which they release. */
static NOINLINE int wait_to_send(struct thread *thread, struct cb *me, struct chan *chan, strand_chan handle,
                                 const void *value)
{
    if (LIKELY(wait_in(thread, me, chan, &chan->senders, (void *)(uintptr_t)value, BLOCKED_SEND)))
        return me->wait.node.result;
    thread = thread_self();
    chan = chan_find(thread, handle);
    return chan ? send_slowly(thread, me, chan, handle, value) : -EPIPE; /* the channel has ended meanwhile */
}

static NOINLINE int wait_to_receive(struct thread *thread, struct cb *me, struct chan *chan, strand_chan handle,
                                    void *value)
{
    if (LIKELY(wait_in(thread, me, chan, &chan->receivers, value, BLOCKED_RECEIVE)))
        return me->wait.node.result;
    thread = thread_self();
    chan = chan_find(thread, handle);
    return chan ? receive_slowly(thread, me, chan, handle, value) : -EPIPE; /* the channel has ended meanwhile */
}

/* Under the lock, which they release: in any state of the channel. */
static NOINLINE int send_slowly(struct thread *thread, struct cb *me, struct chan *chan, strand_chan handle,
                                const void *value)
{
    struct transfer t = {.me = me, .chan = chan, .size = chan->size, .value = (void *)(uintptr_t)value};
    if (send_locked(thread, &t) != SOURCE_DONE)
        return wait_to_send(thread, me, chan, handle, value);
    chan_unlock(thread, chan);
    finish(thread, &t, true);
    yield_if_asked(thread);
    return t.result;
}

static NOINLINE int receive_slowly(struct thread *thread, struct cb *me, struct chan *chan, strand_chan handle,
                                   void *value)
{
    struct transfer t = {.me = me, .chan = chan, .size = chan->size, .value = value};
    if (receive_locked(thread, &t) != SOURCE_DONE)
        return wait_to_receive(thread, me, chan, handle, value);
    chan_unlock(thread, chan);
    finish(thread, &t, false);
    yield_if_asked(thread);
    return t.result;
}

/* ---- waiting with a value on a shared stack ---------------------------------------------------------------- */

struct kept {
    void *value;
    size_t size;
    bool wipes;
};

static void free_kept(struct kept *kept)
{
    if (kept->wipes)
        arch_wipe(kept->value, kept->size, 0);
    free(kept->value);
}

/* Under the lock, which they release: the partner moves the value while the caller's shared stack may belong to another
 * strand, so the value goes through a copy off the stack. */
static COLD struct kept keep(struct thread *thread, struct cb *me, struct chan *chan, const void *value, bool send)
{
    size_t size = chan->size;
    chan_unlock(thread, chan);
    struct kept kept = {platform_malloc(thread, size), size, cb_wipes(me)};
    if (!kept.value)
        throw_no_memory(me, "a value on the stack of a shared fibre");
    if (send)
        memcpy(kept.value, value, size);
    return kept;
}

static COLD int send_kept(struct thread *thread, struct cb *me, struct chan *chan, strand_chan handle,
                          const void *value)
{
    struct kept kept __attribute__((cleanup(free_kept))) = keep(thread, me, chan, value, true);
    chan = chan_find(thread, handle);
    return chan ? send_slowly(thread, me, chan, handle, kept.value) : -EPIPE;
}

static COLD int receive_kept(struct thread *thread, struct cb *me, struct chan *chan, strand_chan handle, void *value)
{
    struct kept kept __attribute__((cleanup(free_kept))) = keep(thread, me, chan, value, false);
    chan = chan_find(thread, handle);
    int result = chan ? receive_slowly(thread, me, chan, handle, kept.value) : -EPIPE;
    if (!result)
        memcpy(value, kept.value, kept.size);
    return result;
}

int strand_chan_send(strand_chan handle, const void *value)
{
    struct thread *thread = must_be_strand("strand_chan_send");
    struct cb *me = current_of(thread);
    may_block(thread, me, "strand_chan_send");
    struct chan *chan = chan_of(thread, handle, value, "strand_chan_send");
    chan_transfer_check(thread, chan, value, "strand_chan_send");
    enum quick quick = chan_transfer_quick_send(thread, chan, value);
    if (quick == QUICK_DONE) {
        yield_if_asked(thread); /* [H4] */
        return 0;
    }
    if (UNLIKELY(lies_on_shared_stack(thread, value)))
        return send_kept(thread, me, chan, handle, value);
    return quick == QUICK_NOT ? wait_to_send(thread, me, chan, handle, value)
                              : send_slowly(thread, me, chan, handle, value);
}

int strand_chan_receive(strand_chan handle, void *value)
{
    struct thread *thread = must_be_strand("strand_chan_receive");
    struct cb *me = current_of(thread);
    may_block(thread, me, "strand_chan_receive");
    struct chan *chan = chan_of(thread, handle, value, "strand_chan_receive");
    enum quick quick = chan_transfer_quick_receive(thread, chan, value);
    if (quick == QUICK_DONE) {
        yield_if_asked(thread); /* [H4] */
        return 0;
    }
    if (UNLIKELY(lies_on_shared_stack(thread, value)))
        return receive_kept(thread, me, chan, handle, value);
    return quick == QUICK_NOT ? wait_to_receive(thread, me, chan, handle, value)
                              : receive_slowly(thread, me, chan, handle, value);
}

/* ---- without waiting, and as a case of a select ------------------------------------------------------------- */

/* Under the lock, which it releases. */
static inline enum answer do_or_link(struct thread *thread, struct transfer *t, bool send, struct wait_node *node)
{
    struct chan *chan = t->chan;
    enum answer answer = send ? send_locked(thread, t) : receive_locked(thread, t);
    if (answer == SOURCE_NOT && node)
        select_link(thread, send ? &chan->senders : &chan->receivers, node);
    chan_unlock(thread, chan);
    if (answer == SOURCE_DONE)
        finish(thread, t, send);
    return answer;
}

NOINLINE enum answer chan_transfer_stand(struct thread *thread, struct cb *me, struct chan *chan, strand_case *c,
                                         struct wait_node *node, bool send)
{
    struct transfer t = {.me = me, .chan = chan, .value = c->value, .size = chan->size};
    t.armed = node != NULL;
    t.drops = c->flags & CASE_DROPS;
    enum answer answer = do_or_link(thread, &t, send, node);
    c->result = t.result;
    return answer;
}

COLD enum answer chan_transfer_stand_with_none(struct thread *thread, struct cb *me, strand_case *c,
                                               struct wait_node *node)
{
    struct transfer t = {.me = me, .armed = node != NULL, .drops = c->flags & CASE_DROPS};
    enum answer answer = settle(thread, &t, -EPIPE);
    c->result = t.result;
    return answer;
}

static inline int try(strand_chan handle, void *value, bool send, const char *function)
{
    struct thread *thread = must_be_strand(function);
    struct chan *chan = chan_of(thread, handle, value, function);
    if (send)
        chan_transfer_check(thread, chan, value, function);
    enum quick quick =
        send ? chan_transfer_quick_send(thread, chan, value) : chan_transfer_quick_receive(thread, chan, value);
    if (quick == QUICK_DONE)
        return 0;
    struct transfer t = {.me = current_of(thread), .chan = chan, .size = chan->size, .value = value};
    return do_or_link(thread, &t, send, NULL) == SOURCE_DONE ? t.result : -EAGAIN;
}

int strand_chan_try_send(strand_chan chan, const void *value)
{
    return try(chan, (void *)(uintptr_t)value, true, "strand_chan_try_send");
}

int strand_chan_try_receive(strand_chan chan, void *value)
{
    return try(chan, value, false, "strand_chan_try_receive");
}
