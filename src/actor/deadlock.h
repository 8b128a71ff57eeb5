/*
 * Detects that a parent waits for its child, which has failed and waits for the parent's decision: neither would go on.
 * The parent's call returns -EDEADLK. The protocol block is in deadlock.c.
 */
#ifndef ACTOR_DEADLOCK_H
#define ACTOR_DEADLOCK_H

#include "actor.h"

enum { CALLS_DECIDED = CALL_STOP | CALL_RESTART | CALL_RESUME | CALL_DECIDED };

/* Under the lock: whether the actor has failed, and only its parent's decision makes it go on. A pending request by
 * another party is a decision, too. */
static inline bool awaits_decision(const struct activation *activation)
{
    uint32_t calls = atomic_load_explicit(&activation->calls, memory_order_relaxed);
    return (activation->flags & ACTIVATION_UNDECIDED) && !(activation->flags & ACTIVATION_STOPPING) &&
           !(calls & CALLS_DECIDED);
}

/* Whether the caller's strand has the turn of the cell's parent. */
static inline bool is_its_parent(struct thread *thread, const struct cell *cell)
{
    const struct runner *r = runner_self(thread);
    return r && r->cell == cell->parent;
}

/* What the strand of a runner waits for. */
struct waiting {
    uint64_t asks;
    bool queues;
};

/* Under the lock of the activation's cell. */
static inline struct waiting waiting_of(const struct activation *activation)
{
    const struct runner *r = plain_load(&activation->runner, memory_order_acquire); /* [PB1] */
    if (!r)
        return (struct waiting){0, false};
    return (struct waiting){atomic_load_explicit(&r->asks, memory_order_relaxed),
                            atomic_load_explicit(&r->queues, memory_order_relaxed)};
}

/* After the runner's actor has failed and reported that to its parent, with what the parent was waiting for then: if it
 * is this actor, end that wait. */
void deadlock_break(struct thread *thread, struct runner *r, struct waiting parent);
/* A question has come to an actor that awaits a decision of `parent`: if `parent` itself asks, refuse it. */
void deadlock_refuse(struct thread *thread, strand_actor parent, strand_actor asker);
/* Whether the caller would wait for ever for that actor's end. */
bool deadlock_is(struct thread *thread, strand_actor actor);

#endif
