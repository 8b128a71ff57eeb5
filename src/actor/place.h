/*
 * Places: where the actors of a dispatcher run, and the strands that run them. The protocol block is in actor.h.
 */
#ifndef ACTOR_PLACE_H
#define ACTOR_PLACE_H

#include "actor.h"

/* Get an idle runner; NULL: none is available. */
struct runner *place_get(struct thread *thread, struct place *place);
/* Make the runner idle. Afterwards it touches nothing but the place's lists, and parks. Returns false if there are
 * enough idle ones, and it has to end. */
bool place_put(struct thread *thread, struct runner *r);
/* Assign the task to the runner. May run without the cell's lock, so cell_call may see the change late, or before the
 * runner has begun. */
static inline void place_assign(struct runner *r, struct task *task)
{
    r->task = task; /* [A1] */
    plain_store(&task->runner, r, memory_order_release);
}
/* Under the cell's lock: enqueue a task that has no runner. Returns a runner that has got a task meanwhile, for
 * place_go; or NULL. */
struct runner *place_starve(struct thread *thread, struct place *place, struct task *task);
bool place_wakes_itself_(struct thread *thread, struct runner *r);
/* For a runner that has just fallen idle: returns true if it has a task after all, and does not park. */
static inline bool place_wakes_itself(struct thread *thread, struct runner *r)
{
    if (thread->concurrent && !arch_membarrier_works)
        atomic_thread_fence(memory_order_seq_cst);
    else
        atomic_signal_fence(memory_order_seq_cst); /* place_starve has a barrier for both */
    return UNLIKELY(atomic_load_explicit(&r->place->slow_idle, memory_order_relaxed)) && place_wakes_itself_(thread, r);
}
/* Take a task that waits for a runner; NULL: none. */
struct task *place_starved(struct thread *thread, struct place *place);
/* In a runner that has just begun, and may block: give a waiting task a runner of its own. */
void place_begun(struct thread *thread, struct place *place);
/* runtime.refused */
bool place_refused(struct thread *thread, struct cb *c);
/* Unlink a runner whose strand is about to end by itself. */
void place_leave(struct thread *thread, struct runner *r);
/* Make a runner that has a task runnable. fresh: its actor has never run before. */
void place_go(struct thread *thread, struct runner *r, bool fresh);
/* In a strand: wait, uninterruptibly, for other strands to free memory. Returns the thread that it resumes on. */
struct thread *place_await_memory(void);
/* Open a place. pin: the index of its only thread; -1: any. threads_most: for a place that grows; otherwise 0. Returns
 * 0, or a negated errno code. */
int place_open(struct thread *thread, struct system *system, struct place *place, struct pool *pool, int pin,
               int threads_most);
/* When a strand ends that could have run an actor: serve tasks that wait for a runner, so that they don't wait for
 * ever. */
void place_feed(struct place *place);
/* After all actors have ended: end the runners, too. */
void place_close(struct thread *thread, struct system *system);

#endif
