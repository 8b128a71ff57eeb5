/*
 * The search for something to run.
 */
#ifndef SCHED_SEEK_H
#define SCHED_SEEK_H

#include "fibre.h"
#include "thread_type.h"

/* Finds a fibre for a thread that has none to run, or sleeps until there is one. Returns NULL if the pool stops, the
 * thread must leave, or its time limit has passed. */
struct fibre *pool_find_work(struct thread *thread);
/* Makes a pass of a busy thread, if the role is free: posts, events, timers, and evening out (balance.h). */
void pool_pass(struct thread *thread);

#endif
