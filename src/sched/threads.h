/*
 * The threads of a pool: what pool.c needs beside pool.h.
 */
#ifndef SCHED_THREADS_H
#define SCHED_THREADS_H

#include "pool.h"

/* Calls fn(arg) on the calling system thread, with a stack for its signals, and notices if the thread ends
 * meanwhile. */
void with_thread_watched(void (*fn)(void *), void *arg);
/* Prepares the record, before a system thread begins to live in it. */
void thread_prepare(struct thread *thread);
/* Makes the calling system thread live in the record until the pool is stopped or the thread must leave. */
void thread_live(struct thread *thread);
/* Marks the record as free of a thread. The closer of the pool waits for the last step: the run may end right after
 * that, and does not know the system thread. */
void thread_leave_for_good(struct thread *thread);
/* Frees the records of all threads of the pool. */
void pool_unmake_threads(struct pool *pool);
/* Returns a free record, in the state POOL_CLOSING, with room for so many threads: 1 or THREADS_MOST. NULL: there is
 * none. */
struct pool *pool_take_record(struct thread *thread, int room);

#endif
