/*
 * What this layer keeps for each thread of a run, and the slabs of the run, of which each thread has caches.
 */
#ifndef STRAND_WORKER_H
#define STRAND_WORKER_H

#include "core.h"

/* The slabs of all layers: before the first thread of the run, and after its last one. */
void slabs_open(struct runtime *runtime);
void slabs_close(struct runtime *runtime);

/* Give a thread that does not run strands, but inspects them, the caches of this layer. The record is zero before. */
void worker_open_outside(struct worker *worker, struct runtime *runtime);
/* sched_ops.thread_open, sched_ops.thread_close: with the memory for an exception without memory. */
int worker_begin(struct thread *thread);
void worker_end(struct thread *thread);
/* Give what the caches hold back to the slabs. */
void worker_flush(struct worker *worker);

#endif
