/*
 * Mailboxes: the queue of an actor that is awake, and what happens when it is full. The protocol block is in actor.h.
 */
#ifndef ACTOR_MAILBOX_H
#define ACTOR_MAILBOX_H

#include "actor.h"

/* ---- under the cell's lock --------------------------------------------------------------------------------- */

static inline void mailbox_put(struct task *task, struct envelope *e)
{
    e->next = NULL;
    plain_store(task->last, e, memory_order_relaxed); /* with levels_next */
    task->last = &e->next;
    task->queued += !(e->message.size & ENVELOPE_EXTRA);
}

/* All that is queued is the caller's. */
static inline struct envelope *mailbox_take(struct task *task)
{
    struct envelope *first = task->first;
    plain_store(&task->first, NULL, memory_order_relaxed);
    task->last = task->counted = &task->first;
    task->taken = task->queued;
    return first;
}

/* The first one only: those behind it can be pushed out yet. */
static inline struct envelope *mailbox_take_first(struct task *task)
{
    struct envelope *first = task->first;
    plain_store(&task->first, first->next, memory_order_relaxed);
    if (!first->next)
        task->last = &task->first;
    if (task->counted == &first->next)
        task->counted = &task->first;
    first->next = NULL;
    task->taken = !(first->message.size & ENVELOPE_EXTRA);
    return first;
}

/* Of senders that wait, so many come in as there is room for. */
void mailbox_admit_(struct thread *thread, struct task *task, struct batch *senders);
/* The batch is handled. */
static inline void mailbox_make_room(struct thread *thread, struct task *task, struct batch *senders)
{
    task->queued -= task->taken;
    task->taken = 0;
    if (UNLIKELY(!list_empty(&task->waiters)))
        mailbox_admit_(thread, task, senders);
}

/* The actor's parent, if it waits for the actor, gets -EDEADLK [A6]. */
void mailbox_refuse_parent(struct thread *thread, struct task *task, struct batch *senders);
/* The actor ends: who waits is told. */
void mailbox_refuse(struct thread *thread, struct task *task, struct batch *senders);

/* ---- by priority: the turn's own --------------------------------------------------------------------------- */

enum { LEVELS = 64 };
struct levels {
    uint64_t some;         /* a bit for each that is not empty */
    uint32_t popped;       /* that were counted, since there was last made room for them */
    struct envelope *rest; /* the message that stops the actor, and what came after it */
    struct {
        struct envelope *first, **last;
    } at[LEVELS];
};

/* Of a cell that is being made: its mailbox has priorities. False: no memory. */
bool levels_open(struct thread *thread, struct cell *cell);
/* The first one, which becomes the batch; NULL: there is none. */
struct envelope *levels_next(struct thread *thread, struct runner *r);

/* ---- in the actor's own turn ------------------------------------------------------------------------------- */

/* It stops: what waits is dead letters, and so is what comes from now on; who waits for room is told. False: the runner
 * has been cancelled, and another one is to do this. */
bool mailbox_close(struct thread *thread, struct runner *r);
/* It handles nothing until its children have ended, and then goes on. They are not to wait for it: what waits for room
 * comes in, and who has asked it is not answered. */
void mailbox_let_in(struct thread *thread, struct runner *r);

/* ---- sending ----------------------------------------------------------------------------------------------- */

/* Whether the caller is the actor itself, or nobody who could wait. */
static inline bool mailbox_is_own(struct thread *thread, const struct cell *cell)
{
    if (UNLIKELY(!thread->current))
        return true;
    const struct runner *r = runner_self(thread);
    return r && r->cell == cell;
}

/* Under the lock, which it gives back: it is full. 0, -EAGAIN, -EPIPE, -EDEADLK, -EINTR: to be
 * tried again; or it throws, and the message was not sent. */
int mailbox_full(struct thread *thread, strand_actor to, uint64_t word, struct envelope *e);

#endif
