/*
 * The records of pools and threads. They stay until the end of the run.
 */
#ifndef SCHED_RECORDS_H
#define SCHED_RECORDS_H

#include "subprocess.h"
#include "thread_type.h"

/* Take and drop a reference that keeps a pool's record from serving another pool. The handle has one from pool_make
 * until the pool is closed; its shared fibres and the runners of actors may have theirs for longer. Any thread of the
 * run. */
void pool_record_ref(struct pool *pool);
void pool_record_unref(struct thread *thread, struct pool *pool);

/* Prepares a sub-process for a second thread, unless that was done before. The caller is then its only thread. */
void subprocess_share(struct thread *thread);

/* Return the first of all threads' records of a sub-process, and the next one, whatever their lives. A walk may miss
 * records that are made meanwhile. */
struct thread *thread_first(struct subprocess *sub);
struct thread *thread_after(struct thread *thread);

/* Makes records until the pool has `count`. The caller keeps other threads from changing the pool's size (resize.c), or
 * is alone with the pool. */
int pool_make_threads(struct pool *pool, int count);
/* Prepares the record, before a system thread begins to live in it. */
void thread_prepare(struct thread *thread);
/* Frees the records of all threads of the pool. */
void pool_unmake_threads(struct pool *pool);
/* Returns a free record, in the state POOL_CLOSING, with room for so many threads: 1 or THREADS_MOST. NULL: there is
 * none. */
struct pool *pool_take_record(struct thread *thread, int room);

#endif
