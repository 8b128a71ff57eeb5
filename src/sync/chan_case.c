/*
 * Channels as cases of a select. The protocol blocks are in chan.h and in select.c; values are moved by
 * chan_transfer.h. The model is tests/models/select.pml.
 */
#include "chan_transfer.h"

/* The channel of a case, locked. NULL: it has ended since the select began. */
static inline __attribute__((always_inline)) struct chan *chan_in(struct thread *thread, struct cb *me,
                                                                  const strand_case *c)
{
    strand_chan handle = {{c->object[0], c->object[1]}};
    struct chan *chan = chan_find(thread, handle);
    if (LIKELY(chan && (c->value || !chan->size)))
        return chan;
    return !chan && me->tried ? NULL : chan_misused_(thread, chan, handle, "strand_select");
}

static inline __attribute__((always_inline)) enum answer stand(struct thread *thread, struct cb *me, strand_case *c,
                                                               struct wait_node *node, bool send)
{
    struct chan *chan = chan_in(thread, me, c);
    if (UNLIKELY(!chan))
        return chan_transfer_stand_with_none(thread, me, c, node);
    if (send)
        chan_transfer_check(thread, chan, c->value, "strand_select");
    if (node) {
        node->value = c->value;
        return chan_transfer_stand(thread, me, chan, c, node, send);
    }
    enum quick quick =
        send ? chan_transfer_quick_send(thread, chan, c->value) : chan_transfer_quick_receive(thread, chan, c->value);
    if (quick == QUICK_SLOW)
        return chan_transfer_stand(thread, me, chan, c, NULL, send);
    if (quick == QUICK_NOT) {
        chan_unlock(thread, chan);
        return SOURCE_NOT;
    }
    c->result = 0;
    return SOURCE_DONE;
}

static enum answer stand_to_send(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node)
{
    return stand(thread, me, c, node, true);
}

static enum answer stand_to_receive(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node)
{
    return stand(thread, me, c, node, false);
}

/* In a run of one thread. NULL: as chan_in has it. */
static inline const struct chan *chan_alone(struct thread *thread, const strand_case *c)
{
    const struct chan *chan = chan_seen(thread, (strand_chan){{c->object[0], c->object[1]}});
    return LIKELY(chan && (c->value || !chan->size)) ? chan : NULL;
}

/* The channel has ended: the try that comes next finds that out. Otherwise misuse. A call in the place of the return,
 * so that the two functions below save no registers. */
static COLD bool is_ready_without(struct thread *thread, const strand_case *c)
{
    return !chan_in(thread, current_of(thread), c);
}

static bool send_is_ready(struct thread *thread, const strand_case *c)
{
    const struct chan *chan = chan_alone(thread, c);
    if (UNLIKELY(!chan))
        return is_ready_without(thread, c);
    return !list_empty(&chan->receivers) | (chan->count < chan->capacity) | chan->closed;
}

static bool receive_is_ready(struct thread *thread, const strand_case *c)
{
    const struct chan *chan = chan_alone(thread, c);
    if (UNLIKELY(!chan))
        return is_ready_without(thread, c);
    return !list_empty(&chan->senders) | (chan->count > 0) | chan->closed;
}

static enum answer over(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node, bool won)
{
    struct chan *chan = (struct chan *)(uintptr_t)c->object[0];
    (void)me;
    if (won) {
        c->result = node->result;
        return SOURCE_DONE;
    }
    chan_lock(thread, chan); /* the channel may have ended meanwhile: see leave_queue in chan_transfer.c */
    if (atomic_load_explicit(&node->linked, memory_order_relaxed))
        chan_unlink(node);
    chan_unlock(thread, chan);
    return SOURCE_DONE;
}

static size_t size_of_value(struct thread *thread, struct cb *me, const strand_case *c)
{
    struct chan *chan = chan_in(thread, me, c);
    if (!chan)
        return 0;
    size_t size = chan->size;
    chan_unlock(thread, chan);
    return size;
}

static const struct strand_source_ source_send = {.stand = stand_to_send,
                                                  .ready = send_is_ready,
                                                  .over = over,
                                                  .queue = offsetof(struct chan, senders),
                                                  .size = size_of_value,
                                                  .blocked = BLOCKED_SEND};
static const struct strand_source_ source_receive = {.stand = stand_to_receive,
                                                     .ready = receive_is_ready,
                                                     .over = over,
                                                     .queue = offsetof(struct chan, receivers),
                                                     .size = size_of_value,
                                                     .blocked = BLOCKED_RECEIVE};

strand_case strand_on_send(strand_chan chan, const void *value)
{
    return (strand_case){
        .source = &source_send, .object = {chan.bits[0], chan.bits[1]}, .value = (void *)(uintptr_t)value};
}

strand_case strand_on_receive(strand_chan chan, void *value)
{
    return (strand_case){.source = &source_receive, .object = {chan.bits[0], chan.bits[1]}, .value = value};
}
