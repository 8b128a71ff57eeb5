/*
 * How many threads a pool has, and which of them stay. Page: docs/protocols/resize.md.
 */
#ifndef SCHED_RESIZE_H
#define SCHED_RESIZE_H

#include "subprocess.h"
#include "thread_type.h"

/* Changes the number of the pool's threads (resize.c). by: the calling strand's thread; threads: at least 1.
 * Superfluous threads leave at their next switch; the call does not wait for that. Returns 0 or a negated errno code.
 * -EBUSY: strands are pinned to such a thread, and nothing has changed. -ESHUTDOWN: the pool is not open. Others: the
 * system gives no more threads. */
int pool_resize(struct thread *by, struct pool *pool, int threads);
/* Returns how many threads there are, those that are about to leave included. */
int pool_threads(struct pool *pool);
/* Pins a strand to the thread of that index, which stays until pool_unpin. Returns 0; -ENXIO: there is no such thread;
 * -ESHUTDOWN: the pool is closing, and is not the caller's. */
int pool_pin(struct thread *by, struct pool *pool, int index, struct thread **out);
void pool_unpin(struct thread *thread);
/* Ends the life of a thread that has SWITCH_LEAVE, in its loop. Returns whether it has gone; false: it was called
 * back. */
bool thread_goes_(struct thread *thread);

#endif
