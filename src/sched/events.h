/*
 * Posts, events of descriptors and timers: what comes from outside of the pool.
 */
#ifndef SCHED_EVENTS_H
#define SCHED_EVENTS_H

struct pool;
struct thread;

/* Runs posts, passes on events of descriptors, fires due timers, and continues a round of trimming. The calling thread
 * has the role of the seeker, or is the only thread of the run. */
void pool_take_events(struct thread *thread, struct pool *pool);

#endif
