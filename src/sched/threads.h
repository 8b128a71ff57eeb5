/*
 * The threads of a pool: what pool.c needs of their lives, beside what pool.h has for all.
 */
#ifndef SCHED_THREADS_H
#define SCHED_THREADS_H

#include "pool.h"

/* fn(arg) on the calling thread of the system, with a stack for its signals. The end of that thread meanwhile is
 * noticed. */
void with_thread_watched(void (*fn)(void *), void *arg);
/* Before a thread of the system begins to live in the record. */
void thread_prepare(struct thread *thread);
/* The calling thread of the system lives in it until the pool is stopped. */
void thread_live(struct thread *thread);
/* Nobody lives in it any more. The closer of the pool waits for the last step: the run may end right after that, and
 * does not know the thread of the system. */
void thread_leave_for_good(struct thread *thread);
void pool_unmake_threads(struct pool *pool);
/* A free record, in the state POOL_CLOSING, with room for so many threads: 1 or THREADS_MOST. NULL: there is none. */
struct pool *pool_take_record(struct thread *thread, int room);

#endif
