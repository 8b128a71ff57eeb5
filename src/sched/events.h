/*
 * What comes from outside of the pool.
 */
#ifndef SCHED_EVENTS_H
#define SCHED_EVENTS_H

#include "pool.h"

/* What has come from outside: posts, events of descriptors, timers. By the thread that has the role. */
void pool_take_events(struct thread *thread, struct pool *pool);

#endif
