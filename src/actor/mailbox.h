/*
 * Mailboxes: the queue of an awake actor, and what happens when it is full. The protocol block is in actor.h.
 */
#ifndef ACTOR_MAILBOX_H
#define ACTOR_MAILBOX_H

#include "actor.h"

/* ---- under the cell's lock --------------------------------------------------------------------------------- */

static inline void mailbox_put(struct activation *activation, struct envelope *e)
{
    e->next = NULL;
    plain_store(activation->last, e, memory_order_relaxed); /* may race with levels_next */
    activation->last = &e->next;
    activation->queued += !(e->message.size & ENVELOPE_EXTRA);
}

/* Take everything that is queued. */
static inline struct envelope *mailbox_take(struct activation *activation)
{
    struct envelope *first = activation->first;
    plain_store(&activation->first, NULL, memory_order_relaxed);
    activation->last = activation->counted = &activation->first;
    activation->taken = activation->queued;
    return first;
}

/* Take the first message only: those behind it can still be pushed out. */
static inline struct envelope *mailbox_take_first(struct activation *activation)
{
    struct envelope *first = activation->first;
    plain_store(&activation->first, first->next, memory_order_relaxed);
    if (!first->next)
        activation->last = &activation->first;
    if (activation->counted == &first->next)
        activation->counted = &activation->first;
    first->next = NULL;
    activation->taken = !(first->message.size & ENVELOPE_EXTRA);
    return first;
}

/* Admit waiting senders as long as there is room. */
void mailbox_admit_(struct thread *thread, struct activation *activation, struct batch *senders);
/* The batch is handled. */
static inline void mailbox_make_room(struct thread *thread, struct activation *activation, struct batch *senders)
{
    activation->queued -= activation->taken;
    activation->taken = 0;
    if (UNLIKELY(!list_empty(&activation->waiters)))
        mailbox_admit_(thread, activation, senders);
}

/* If the actor in `from` waits for room, it gets -EDEADLK [A6]. */
void mailbox_refuse_from(struct thread *thread, struct activation *activation, const struct cell *from,
                         struct batch *senders);
/* The actor ends: fail all waiting senders. */
void mailbox_refuse(struct thread *thread, struct activation *activation, struct batch *senders);

/* ---- by priority: owned by the turn ------------------------------------------------------------------------- */

enum { LEVELS = 64 };
struct levels {
    uint64_t some;               /* a bit for each level that is not empty */
    uint32_t popped;             /* counted messages that were taken since room was last made */
    struct envelope *after_stop; /* the message that stops the actor, and later ones */
    struct {
        struct envelope *first, **last;
    } at[LEVELS];
};

/* Give a cell that is being made a mailbox with priorities. Returns false if there is no memory. */
bool levels_open(struct thread *thread, struct cell *cell);
/* The first message, which becomes the batch; NULL: none. */
struct envelope *levels_next(struct thread *thread, struct runner *r);

/* ---- in the actor's own turn ------------------------------------------------------------------------------- */

/* Stop: waiting messages become dead letters, as will later ones; senders that wait for room fail. Returns false if the
 * runner has been cancelled; another one will do this. */
bool mailbox_close(struct thread *thread, struct runner *r);
/* The actor handles nothing until its children have ended. So that they don't wait for it, messages that wait for room
 * are admitted, and pending questions get no answer. */
void mailbox_let_in(struct thread *thread, struct runner *r);

/* ---- sending ----------------------------------------------------------------------------------------------- */

/* Whether the caller is the actor itself, or not a strand that could wait. */
static inline bool mailbox_is_own(struct thread *thread, const struct cell *cell)
{
    if (UNLIKELY(!thread->current))
        return true;
    const struct runner *r = runner_self(thread);
    return r && r->cell == cell;
}

/* Under the lock, which it releases: send to a full mailbox. Returns 0, -EAGAIN, -EPIPE, -EDEADLK, or -EINTR: the
 * caller tries again. It throws if the message was not sent because of an interruption. */
int mailbox_full(struct thread *thread, strand_actor to, uint64_t word, struct envelope *e);
/* Unstash: put the stashed messages in front of the batch, which belongs to the turn. They take no more room in the
 * mailbox. Returns how many they are. */
size_t mailbox_return_stash(struct runner *r);

#endif
