/*
 * A run: the making and ending of a sub-process.
 */
#ifndef STRAND_RUN_H
#define STRAND_RUN_H

#include "core.h"

/* sched_ops.serve */
void serve_strands(struct thread *thread);

#endif
