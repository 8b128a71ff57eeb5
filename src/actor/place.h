/*
 * Places: where actors run, and the strands that run them. The protocol block is in actor.h.
 */
#ifndef ACTOR_PLACE_H
#define ACTOR_PLACE_H

#include "actor.h"

/* A runner that has nothing to do, for the caller; NULL: none can be had. */
struct runner *place_get(struct thread *thread, struct place *place);
/* The runner has nothing to do. It touches nothing but the place's lists after this, and parks. False: there are enough
 * of them, and it is to end. */
bool place_put(struct thread *thread, struct runner *r);
/* It is to run that task, which waits no more: under the cell's lock, or without it, so that cell_call may see it late,
 * or before the runner has begun. */
static inline void place_assign(struct runner *r, struct task *task)
{
    r->task = task; /* [A1] */
    plain_store(&task->runner, r, memory_order_release);
}
/* Under the cell's lock: a task that has no runner waits for one. Returns one that has got a task meanwhile, and is to
 * be sent on its way; or NULL. */
struct runner *place_starve(struct thread *thread, struct place *place, struct task *task);
bool place_wakes_itself_(struct thread *thread, struct runner *r);
/* A runner that has just fallen idle: true if it has a task after all, and does not park. */
static inline bool place_wakes_itself(struct thread *thread, struct runner *r)
{
    if (thread->shared && !arch_membarrier_works)
        atomic_thread_fence(memory_order_seq_cst);
    else
        atomic_signal_fence(memory_order_seq_cst); /* place_starve has a barrier for both */
    return UNLIKELY(atomic_load_explicit(&r->place->odd, memory_order_relaxed)) && place_wakes_itself_(thread, r);
}
/* One that waits; NULL: none. */
struct task *place_starved(struct thread *thread, struct place *place);
/* In a runner that has just begun, and may block: one that waits gets a runner of its own. */
void place_begun(struct thread *thread, struct place *place);
/* runtime.refused */
bool place_refused(struct thread *thread, struct cb *c);
/* The runner's strand is about to end by itself. */
void place_leave(struct thread *thread, struct runner *r);
/* A runner that has a task: send it on its way. fresh: its actor has never run before. */
void place_go(struct thread *thread, struct runner *r, bool fresh);
/* In a strand: let others give some memory back, uninterruptibly. Returns the thread that it goes on on. */
struct thread *place_await_memory(void);
/* pin: the index of its only thread; -1: any. threads_most: of one that grows; else 0. 0, or a negated errno code. */
int place_open(struct thread *thread, struct system *system, struct place *place, struct pool *pool, int pin,
               int threads_most);
/* A strand that could have run an actor ends: who waits for one is not to wait for ever. */
void place_feed(struct place *place);
/* All have ended: the runners are to end, too. */
void place_close(struct thread *thread, struct system *system);

#endif
