/*
 * Threads outside of a run that act on it.
 */
#ifndef STRAND_STRANGER_H
#define STRAND_STRANGER_H

#include "../sched/quiet.h"
#include "core.h"

/* A thread outside of the run has acted on it, and may do so again: that the run is out of work can't be known any
 * more. Any thread; also in the handler of a signal. */
static inline void stranger_acts(struct runtime *runtime)
{
    _Atomic uint32_t *minds = &runtime->sub.minds_quiet;
    if (runtime->options.out_of_work == STRAND_OUT_OF_WORK_AUTO &&
        (atomic_load_explicit(minds, memory_order_relaxed) & QUIET_VERDICT))
        atomic_fetch_and_explicit(minds, ~(uint32_t)QUIET_VERDICT, memory_order_seq_cst); /* [Q5] */
}

#endif
