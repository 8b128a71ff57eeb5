/*
 * A run: the making and ending of a sub-process.
 */
#ifndef STRAND_RUN_H
#define STRAND_RUN_H

#include "core.h"

/* sched_ops.run */
struct thread *run_strand(struct member *member);

#endif
