/*
 * A parent that waits for its child, which has failed, and waits for the parent's decision: neither would go on. The
 * parent's call returns -EDEADLK. The protocol block is in deadlock.c.
 */
#ifndef ACTOR_DEADLOCK_H
#define ACTOR_DEADLOCK_H

#include "actor.h"

enum { CALLS_DECIDED = CALL_STOP | CALL_RESTART | CALL_RESUME | CALL_DECIDED };

/* Under the lock: whether it has failed, and goes on by nobody but its parent. What it has been told by others decides,
 * too. */
static inline bool awaits_decision(const struct task *task)
{
    uint32_t calls = atomic_load_explicit(&task->calls, memory_order_relaxed);
    return (task->flags & TASK_UNDECIDED) && !(task->flags & TASK_STOPPING) && !(calls & CALLS_DECIDED);
}

/* Whether the caller's strand has the turn of that one's parent. */
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

/* Under the lock of the task's cell. */
static inline struct waiting waiting_of(const struct task *task)
{
    const struct runner *r = plain_load(&task->runner, memory_order_acquire);
    if (!r)
        return (struct waiting){0, false};
    return (struct waiting){atomic_load_explicit(&r->asks, memory_order_relaxed),
                            atomic_load_explicit(&r->queues, memory_order_relaxed)};
}

/* The runner's actor has failed, and its parent has been told so, which waited for that: if it is this actor that the
 * parent waits for, it does not any more. */
void deadlock_break(struct thread *thread, struct runner *r, struct waiting parent);
/* A question has come to one that awaits a decision of `parent`: if it is that one's, there is no answer. */
void deadlock_refuse(struct thread *thread, strand_actor parent, strand_actor asker);
/* Whether the caller would wait for ever for that one's end. */
bool deadlock_is(struct thread *thread, strand_actor actor);

#endif
