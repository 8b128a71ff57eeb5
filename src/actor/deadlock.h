/*
 * Detects that an actor waits, in its turn, for an actor that has failed and awaits a decision of that same actor:
 * neither would go on. The waiting call returns -EDEADLK. The protocol block is in deadlock.c.
 */
#ifndef ACTOR_DEADLOCK_H
#define ACTOR_DEADLOCK_H

#include "actor.h"

enum { CALLS_DECIDED = CALL_STOP | CALL_RESTART | CALL_RESUME | CALL_DECIDED };

/* Under the lock: whether the actor has failed, and only a supervisor's decision makes it go on. A pending request by
 * another party is a decision, too. */
static inline bool awaits_decision(const struct activation *activation)
{
    uint32_t calls = atomic_load_explicit(&activation->calls, memory_order_relaxed);
    return (activation->flags & ACTIVATION_UNDECIDED) && !(activation->flags & ACTIVATION_STOPPING) &&
           !(calls & CALLS_DECIDED);
}

/* Under the lock of the activation's cell: count what makes the actor go on [A10]. */
static inline void count_decision(const struct activation *activation)
{
    if (activation->flags & ACTIVATION_UNDECIDED)
        atomic_fetch_add_explicit(&cell_type(activation->cell)->system->decisions, 1, memory_order_relaxed); /* [A10] */
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
 * is this actor, or one whose failure was escalated to this actor, end that wait. */
void deadlock_break(struct thread *thread, struct runner *r, struct waiting parent);
/* The actor has escalated the failure of that child. Before it fails by it. */
void deadlock_escalate(struct thread *thread, const struct failure *failure);
/* Likewise, in an actor that has failed before, and awaits a decision. */
void deadlock_escalated_late(struct thread *thread, const struct failure *failure);
/* CALL_DEADLOCK_CHECK, in the actor's turn: if the supervisor whose decision it awaits waits for it, end that wait. */
void deadlock_check(struct thread *thread, struct runner *r);
/* A question has come to an actor that awaits a decision: if the supervisor that has to decide asks it, refuse it. */
void deadlock_refuse(struct thread *thread, strand_actor actor, strand_actor asker);
/* Whether the caller, in a turn, would wait for an actor that awaits a decision of the caller's actor. */
bool deadlock_is(struct thread *thread, strand_actor actor);

#endif
