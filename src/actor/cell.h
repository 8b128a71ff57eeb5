/*
 * Cells: making them, waking them, their end. The protocol block is in actor.h.
 */
#ifndef ACTOR_CELL_H
#define ACTOR_CELL_H

#include "actor.h"

/* A new one with that parent ({0}: none) and that name, or NULL: dormant and fresh, or awake, if it is told something
 * or has a first message. 0, -ENOMEM, what more_name returns, or -ESHUTDOWN: the parent stops, or has ended; and the
 * message is the caller's still. */
int cell_make(struct thread *thread, struct kind *kind, strand_actor parent, const char *name, const void *args,
              uint32_t calls, struct envelope *first, strand_actor *out);
/* The kind of a class in a place, whose actors begin with so many bytes. NULL: no memory. */
struct kind *kind_of(struct thread *thread, struct place *place, const strand_actor_class *class, size_t args);
/* One that nobody knows is gone; it is dormant. */
void cell_unmake(struct thread *thread, strand_actor actor);
/* The state as it is in the beginning. */
void cell_reset(struct cell *cell);
const void *cell_args(struct cell *cell);

/* Under the lock, of a dormant one: it gets a task. NULL: no memory. */
struct task *cell_wake(struct thread *thread, struct cell *cell, uint64_t *word);
/* Under the lock: the task is to be run. Returns the runner that the caller has to send on its way after it has given
 * the lock back; NULL: it has one. */
struct runner *task_schedule_(struct thread *thread, struct task *task);
static inline struct runner *task_schedule(struct thread *thread, struct task *task)
{
    return task->flags & TASK_SCHEDULED ? NULL : task_schedule_(thread, task);
}

/* Nothing is to be done any more, and the cell is dormant, or has ended: not before, because whoever finds a cell awake
 * reads its task's serial. */
void task_retire(struct thread *thread, struct task *task);

/* Whether it has not ended. */
bool cell_is_there(struct thread *thread, strand_actor actor);
/* How much it has to do, about: how many messages wait; of those with as many, it is more for one whose turn is
 * blocked, or that rests, than for one that runs, and nothing for one that is dormant. SIZE_MAX: it takes no more. */
size_t cell_load(struct thread *thread, strand_actor actor);
/* Tell an actor of the tree's business. 0; -ESRCH: it has ended; -ENOMEM. */
int cell_call(struct thread *thread, strand_actor actor, uint32_t calls);
/* The same, if it rests still because it has failed by that, which is held; else 0, and nothing is done. */
int cell_call_failed(struct thread *thread, strand_actor actor, uint32_t calls, const strand_exception *why);
/* Its parent has decided what becomes of it, if it rests still because it has failed by that. */
void cell_decided(struct thread *thread, strand_actor actor, const strand_exception *why);
/* Under the lock of `cell`: the next of its children that task.cursor has not passed; {0}: none. */
strand_actor cell_next_child(struct task *task);
/* In its last turn: nobody finds it any more; out of its parent's children, and given back. */
void cell_end(struct thread *thread, struct runner *r);

#endif
