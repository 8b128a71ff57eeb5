/*
 * Values from strand to strand: sends, receives, and both as cases of a select. The protocol block is in chan.h.
 */
#include "chan.h"
#include "source.h"

#include "../strand/interrupt.h"
#include "../strand/misuse.h"
#include "../strand/wait.h"

#include <errno.h>
#include <stdlib.h>

/* One send or receive, of a strand that is armed only if it is a case of a select that stands with all its cases. */
struct transfer {
    struct cb *me;
    struct chan *chan;
    void *value;
    bool armed, drops, from_ring;
    int result;
    struct wait_node *partner; /* claimed, or posted: its value is moved after the lock */
};

/* ---- finding a partner, under the lock -------------------------------------------------------------------- */

/* Take the first one out of the queue that can be had, and is not the caller itself. An armed caller is idle afterwards
 * if there was one, and as before if there was none. */
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
            node->waiter ? wait_claim_as(trying, node, node->index, thread->shared) : CLAIM_WON; /* posted */
        if (UNLIKELY(claim == CLAIM_GIVE_WAY)) {
            wait_tried(thread, t->me, WAIT_ARMED);
            trying = NULL;
            driver_await(thread);
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

/* It can happen without anybody else's wait. */
static inline enum answer settle(struct thread *thread, struct transfer *t, int result)
{
    if (result && t->drops)
        return SOURCE_DROPPED;
    if (t->armed && !wait_retract(thread, t->me))
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
    chan_move(chan, t->value, chan_take(chan));
    t->from_ring = true;
    if (!list_empty(&chan->senders) && match(thread, t, &chan->senders, false) == SOURCE_DONE)
        chan_put(chan, t->partner->value); /* what the first queued sender has takes the room [H1] */
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

/* The partner's part is over. */
static inline void dismiss(struct thread *thread, struct wait_node *partner)
{
    struct cb *waiter = partner->waiter;
    if (UNLIKELY(!waiter)) {
        free(CONTAINER(partner, struct posted, node));
        return;
    }
    partner->result = 0;
    thread_ready(thread, waiter->member.fibre);
}

static inline void finish(struct thread *thread, struct transfer *t, bool send)
{
    struct wait_node *partner = t->partner;
    if (!partner)
        return;
    if (send)
        chan_move(t->chan, partner->value, t->value);
    else if (!t->from_ring)
        chan_move(t->chan, t->value, partner->value);
    dismiss(thread, partner);
}

/* ---- waiting alone ---------------------------------------------------------------------------------------- */

/* Under the lock, which it gives back: stand in the queue until somebody comes. False: it was interrupted, but is not
 * any more: to be begun anew. */
static NOINLINE bool wait_in(struct thread **thread, struct transfer *t, struct link *queue, enum blocked why)
{
    struct cb *me = t->me;
    struct chan *chan = t->chan;
    struct wait_node *node = &me->wait.node;
    node->value = t->value;
    wait_because(*thread, me, why, (uint64_t)(uintptr_t)chan);
    node->epoch = wait_arm(*thread, me, me->floor);
    chan_link(queue, node);
    chan_unlock(*thread, chan);
    if (UNLIKELY(interrupted(me)) && wait_retract(*thread, me)) { /* [W4] */
        me->blocked = BLOCKED_NOT;
    } else {
        *thread = thread_park(*thread);
        if (LIKELY(wait_over(me) == WAIT_WON)) {
            t->result = node->result;
            return true;
        }
    }
    /* Also of a channel that has ended meanwhile: its lock stays one, and then the node is not linked. */
    chan_lock(*thread, chan);
    if (atomic_load_explicit(&node->linked, memory_order_relaxed))
        chan_unlink(node);
    chan_unlock(*thread, chan);
    if (interrupted(me))
        interrupt_throw(*thread, me, 0);
    return false;
}

static inline int send_or_receive(strand_chan handle, void *value, bool send, const char *function)
{
    struct thread *thread = must_be_strand(function);
    struct transfer t = {.me = current_of(thread), .value = value};
    thread = may_block_often(thread, t.me, function);
    do {
        t.chan = chan_of(thread, handle, value, function);
        if (LIKELY((send ? send_locked(thread, &t) : receive_locked(thread, &t)) == SOURCE_DONE)) {
            chan_unlock(thread, t.chan);
            finish(thread, &t, send);
            return t.result;
        }
    } while (
        !wait_in(&thread, &t, send ? &t.chan->senders : &t.chan->receivers, send ? BLOCKED_SEND : BLOCKED_RECEIVE));
    return t.result;
}

int strand_chan_send(strand_chan chan, const void *value)
{
    return send_or_receive(chan, (void *)(uintptr_t)value, true, "strand_chan_send");
}

int strand_chan_receive(strand_chan chan, void *value)
{
    return send_or_receive(chan, value, false, "strand_chan_receive");
}

/* ---- not waiting, and as a case of a select ---------------------------------------------------------------- */

/* Under the lock, which it gives back. */
static inline enum answer do_or_link(struct thread *thread, struct transfer *t, bool send, struct wait_node *node)
{
    struct chan *chan = t->chan;
    enum answer answer = send ? send_locked(thread, t) : receive_locked(thread, t);
    if (answer == SOURCE_NOT && node)
        chan_link(send ? &chan->senders : &chan->receivers, node);
    chan_unlock(thread, chan);
    if (answer == SOURCE_DONE)
        finish(thread, t, send);
    return answer;
}

static int try(strand_chan handle, void *value, bool send, const char *function)
{
    struct thread *thread = must_be_strand(function);
    struct transfer t = {.me = current_of(thread), .value = value};
    t.chan = chan_of(thread, handle, value, function);
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

static strand_chan chan_in(const strand_case *c)
{
    return (strand_chan){{c->object[0], c->object[1]}};
}

static inline enum answer stand(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node, bool send)
{
    struct transfer t = {.me = me, .value = c->value, .armed = node != NULL, .drops = c->flags & CASE_DROPS};
    t.chan = chan_of(thread, chan_in(c), c->value, "strand_select");
    if (node)
        node->value = c->value;
    enum answer answer = do_or_link(thread, &t, send, node);
    c->result = t.result;
    return answer;
}

static enum answer stand_to_send(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node)
{
    return stand(thread, me, c, node, true);
}

static enum answer stand_to_receive(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node)
{
    return stand(thread, me, c, node, false);
}

static enum answer over(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node, bool won)
{
    struct chan *chan = (struct chan *)(uintptr_t)c->object[0];
    (void)me;
    if (won) {
        c->result = node->result;
        return SOURCE_DONE;
    }
    chan_lock(thread, chan); /* also of one that has ended meanwhile: see wait_in */
    if (atomic_load_explicit(&node->linked, memory_order_relaxed))
        chan_unlink(node);
    chan_unlock(thread, chan);
    return SOURCE_DONE;
}

static const struct strand_source_ source_send = {stand_to_send, over, NULL},
                                   source_receive = {stand_to_receive, over, NULL};

strand_case strand_on_send(strand_chan chan, const void *value)
{
    return (strand_case){
        .source = &source_send, .object = {chan.bits[0], chan.bits[1]}, .value = (void *)(uintptr_t)value};
}

strand_case strand_on_receive(strand_chan chan, void *value)
{
    return (strand_case){.source = &source_receive, .object = {chan.bits[0], chan.bits[1]}, .value = value};
}
