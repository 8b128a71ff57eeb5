/*
 * The runners of a dispatcher: the strands that run its actors. Page: docs/protocols/actor.md. What a runner does with
 * an activation is in actor.h.
 *
 * PARTIES   runners; strands and posts that need one for an activation; the owner of the system, which ends the
 *           runners.
 * STATE     runner.idle, one of
 *             0              at work, taken, about to begin, or about to end; in no list of idle runners
 *             IDLE | LISTED  idle, in a list
 *             LISTED         like 0, but still in a list
 *             IDLE           idle, in no list: only take_any finds it
 *
 *             0 --push_own, push_shared--> IDLE | LISTED --claim--> 0
 *             IDLE | LISTED --seize--> LISTED --idle_again--> IDLE | LISTED
 *             LISTED --claim, which fails--> 0
 *             0 --release_idle: no list has room--> IDLE --seize--> 0
 *
 *           The lists: runners.idle, one for each thread, and runners.shared_idle. runners.starved: the activations
 *           without a runner, FIFO. runners.unbegun: how many runners were made and have not begun. runners.slow_idle:
 *           a runner that falls idle has to do more than to enter its thread's list. system.living has all runners but
 *           those that are about to end or have ended: these are in system.ended, or in system.failed.
 * OWNERSHIP runners.idle[i] belongs to thread i. runners.lock protects shared_idle and starved; system.lock protects
 *           living, ended and failed. A runner belongs to its strand while it is at work, and to the party that has
 *           taken it, from clearing IDLE to runners_go.
 * INVARIANTS [T1] the party that clears IDLE is one, and has taken the runner. [T2] the memory of a runner that is
 *           LISTED is not freed. The thread that unlinks a runner reads `next` before it clears LISTED; unless it has
 *           cleared IDLE too, it does not touch the runner afterwards. [T3] while an activation starves, no runner is
 *           idle or about to begin, except for the moment in which the party that has changed one of the two looks at
 *           the other. A look serves one activation: the runner that gets it looks again before its turn
 *           (runners_relay), and so does a runner that begins. A party that has seized a runner without need looks
 *           again after release_idle: in the meantime others found no idle runner. [T4] slow_idle is set while an
 *           activation starves, the system is closing, or other threads need runners in `shared_idle` (from_outside);
 *           it is cleared under runners.lock only, by a thread that reads all three there.
 * ORDERING  [T5] idle is set by release, and IDLE cleared by acquire: what a runner did before it fell idle happens
 *           before its next activation. [T2] LISTED is cleared by release; reap reads it by acquire. [T3]
 *           runners_starve stores starved, passes a fence, and reads unbegun and each runner's idle. The partners store
 *           those, pass a fence, and read starved: runners_begun, by its two seq_cst operations; runners_wakes_itself,
 *           whose fence is a compiler barrier where runners_starve and runners_relay run a membarrier for both; and the
 *           callers of release_idle. [T4] slow_idle is stored under runners.lock; a runner that falls idle reads it
 *           after it has stored idle, as in [T3]. closing is stored before slow_idle; a runner that falls idle may miss
 *           it, and runners_close finds the runner idle. has_begun is stored by release for runners_open, which
 *           acquires it. running, threads, and the increments of unbegun are relaxed: they only decide how many threads
 *           and runners there are. runners_refused decrements unbegun before it takes runners.lock, in runners_starve.
 * PROGRESS  the next runner that begins, falls idle or ends a turn serves an activation that starves. While all runners
 *           block, the activation waits.
 * NOT DONE  one list of idle runners under a lock: each time that an actor wakes, and each time that it falls
 *           dormant, would take that lock.
 * TESTED BY tests/models/starved.pml, tests/models/runner.pml, tests/sim/actors.c, tests/spec/actor_scarce.c,
 *           tests/spec/dispatcher.c, tests/stress/actors.c, tests/fault/actors.c.
 */
#ifndef ACTOR_RUNNERS_H
#define ACTOR_RUNNERS_H

#include "actor.h"

/* Get an idle runner; NULL: none is available. */
struct runner *runners_get(struct thread *thread, struct runners *runners);
/* Make a runner, which the caller launches. Returns 0; -EALREADY: enough others are about to begin; or another negated
 * errno code. */
int runners_make_runner(struct thread *thread, struct runners *runners, struct runner **out);
/* Make the runner idle. Afterwards it touches nothing but the lists of idle ones, and parks. Returns false if there are
 * enough idle ones, and it has to end. */
bool runners_put(struct thread *thread, struct runner *r);
/* Assign the activation to the runner. May run without the cell's lock, so cell_call may see the change late, or before
 * the runner has begun. */
static inline void runners_assign(struct runner *r, struct activation *activation)
{
    r->activation = activation;                                /* [A1] */
    plain_store(&activation->runner, r, memory_order_release); /* [PB1] */
}
/* Under the cell's lock: enqueue an activation that has no runner. Returns a runner that has got an activation
 * meanwhile, for runners_go; or NULL. */
struct runner *runners_starve(struct thread *thread, struct runners *runners, struct activation *activation);
bool runners_wakes_itself_(struct thread *thread, struct runner *r);
/* For a runner that has just fallen idle: returns true if it has an activation after all, and does not park. */
static inline bool runners_wakes_itself(struct thread *thread, struct runner *r)
{
    if (thread->concurrent && !arch_membarrier_works)
        atomic_thread_fence(memory_order_seq_cst); /* [T3] */
    else
        atomic_signal_fence(memory_order_seq_cst); /* runners_starve has a barrier for both [T3] */
    return UNLIKELY(atomic_load_explicit(&r->runners->slow_idle, memory_order_relaxed)) &&
           runners_wakes_itself_(thread, r);
}
void runners_relay_(struct thread *thread, struct runners *runners);
/* For a runner that has just got an activation: gives another one that starves to another runner that is idle. */
static inline void runners_relay(struct thread *thread, struct runners *runners)
{
    if (UNLIKELY(atomic_load_explicit(&runners->slow_idle, memory_order_relaxed)))
        runners_relay_(thread, runners);
}
/* Take an activation that waits for a runner; NULL: none. */
struct activation *runners_starved(struct thread *thread, struct runners *runners);
/* In a runner that has just begun, and may block: give a waiting activation a runner of its own. */
void runners_begun(struct thread *thread, struct runners *runners);
/* runtime.refused */
bool runners_refused(struct thread *thread, struct cb *c);
/* Unlink a runner whose strand is about to end by itself. */
void runners_leave(struct thread *thread, struct runner *r);
/* Make a runner that has an activation runnable. fresh: its actor has never run before. */
void runners_go(struct thread *thread, struct runner *r, bool fresh);
/* In a strand: wait, uninterruptibly, for other strands to free memory. Returns the thread that it resumes on. */
struct thread *runners_await_memory(void);
/* Open the runners of a dispatcher. pin: the index of their only thread; -1: any. threads_most: if the number of
 * threads grows; otherwise 0. Returns 0, or a negated errno code. */
int runners_open(struct thread *thread, struct system *system, struct runners *runners, struct pool *pool, int pin,
                 int threads_most);
/* When a strand ends that could have run an actor: serve activations that wait for a runner, so that they don't wait
 * for ever. */
void runners_feed(struct runners *runners);
/* After all actors have ended: end the runners, too. */
void runners_close(struct thread *thread, struct system *system);

#endif
