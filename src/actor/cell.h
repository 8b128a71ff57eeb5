/*
 * Cells: creation, waking, and end. The protocol block is in actor.h.
 */
#ifndef ACTOR_CELL_H
#define ACTOR_CELL_H

#include "actor.h"

/* Make an actor with that parent ({0}: none) and that name, or NULL: dormant and fresh, or awake, if it has calls or a
 * first message. Returns 0, -ENOMEM, an error of optional_name, or -ESHUTDOWN: the parent stops, or has ended. On
 * errors the caller keeps the message. */
int cell_make(struct thread *thread, struct cell_type *type, strand_actor parent, const char *name, const void *args,
              uint32_t calls, struct envelope *first, strand_actor *out);
/* The type of the cells of a class with these runners, with so many bytes of arguments. NULL: no memory. */
struct cell_type *cell_type_of(struct thread *thread, struct runners *runners, const strand_actor_class *class,
                               size_t args);
/* Free a dormant actor to which no reference exists. */
void cell_unmake(struct thread *thread, strand_actor actor);
/* Initialise the state. */
void cell_reset(struct cell *cell);
const void *cell_args(struct cell *cell);

/* Under the lock of a dormant cell: give it an activation. NULL: no memory. */
struct activation *cell_wake(struct thread *thread, struct cell *cell, uint64_t *word);
/* Under the lock: schedule the activation. Returns the runner for which the caller calls runners_go after it has
 * released the lock; NULL: the activation has one. */
struct runner *activation_schedule_(struct thread *thread, struct activation *activation);
static inline struct runner *activation_schedule(struct thread *thread, struct activation *activation)
{
    return activation->flags & ACTIVATION_SCHEDULED ? NULL : activation_schedule_(thread, activation);
}

/* Free the activation of a cell that is dormant, or has ended, already: before that, any party that finds the cell
 * awake reads its activation's serial. */
void activation_retire(struct thread *thread, struct activation *activation);

/* Whether the actor has not ended. */
bool cell_is_there(struct thread *thread, strand_actor actor);
/* Its load, roughly: the number of waiting messages. Among equals it is larger for an actor whose turn is blocked, or
 * that is suspended, than for a running one, and 0 for a dormant one. SIZE_MAX: it accepts no more. */
size_t cell_load(struct thread *thread, strand_actor actor);
/* Request something of an actor. Returns 0; -ESRCH: it has ended; -ENOMEM. */
int cell_call(struct thread *thread, strand_actor actor, uint32_t calls);
/* Likewise, if the actor is still suspended after failing by `why`, to which the caller has a reference; otherwise
 * returns 0. */
int cell_call_failed(struct thread *thread, strand_actor actor, uint32_t calls, const strand_exception *why);
/* Record that the parent has decided about an actor, if that is still suspended after failing by `why`. */
void cell_decided(struct thread *thread, strand_actor actor, const strand_exception *why);
/* Under the lock of the cell: the next child that activation.cursor has not passed; {0}: none. */
strand_actor cell_next_child(struct activation *activation);
/* In its last turn: end the actor, unlink it from its parent, and free it. */
void cell_end(struct thread *thread, struct runner *r);

#endif
