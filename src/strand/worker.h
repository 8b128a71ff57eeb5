/*
 * This layer's part of each thread of a run, and the slabs of the run, of which each thread has caches.
 */
#ifndef STRAND_WORKER_H
#define STRAND_WORKER_H

#include "core.h"

/* Open and close the slabs of all layers: before the first thread of the run, and after its last one. */
void worker_open_slabs(struct runtime *runtime);
void worker_close_slabs(struct runtime *runtime);

/* Initialises the record of a thread that inspects strands but runs none. The record is zero before. */
void worker_open_outside(struct worker *worker, struct runtime *runtime);
/* sched_ops.thread_open and sched_ops.thread_close. They include the thread's stock of exceptions. */
int worker_begin(struct thread *thread);
void worker_end(struct thread *thread);
/* Returns the objects in the caches to the slabs. */
void worker_flush(struct worker *worker);

#endif
