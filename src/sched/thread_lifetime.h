/*
 * The lives of the system threads in a pool's records.
 */
#ifndef SCHED_THREAD_LIFETIME_H
#define SCHED_THREAD_LIFETIME_H

#include "subprocess.h"
#include "thread_type.h"

/* Calls fn(arg) on the calling system thread, with a stack for its signals, and notices if the thread ends
 * meanwhile. */
void thread_call_watched(void (*fn)(void *), void *arg);
/* Makes the calling system thread live in the record until the pool is stopped or the thread must leave. */
void thread_live(struct thread *thread);
/* Marks the record as free of a thread. The closer of the pool waits for the last step: the run may end right after
 * that, and does not know the system thread. */
void thread_leave_for_good(struct thread *thread);

/* The caller of the next three keeps other threads from changing the pool's size (resize.c), or is alone with the pool.
 * pool_start_thread starts a system thread that lives in a record. The others wait until such threads have ended. */
int pool_start_thread(struct pool *pool, int index);
void pool_join_thread(struct thread *thread);
void pool_join_threads(struct pool *pool, int first);

/* Runs the strands of a driven pool on the calling plain thread until `until`; without `waits`, only while some are
 * runnable. Returns 1, 0 if the pool has ended, or -EPERM if another thread drove it before. */
int pool_drive(struct pool *pool, int64_t until, bool waits);

#endif
