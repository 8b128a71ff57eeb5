/*
 * Threads outside of a run that act on it.
 */
#ifndef STRAND_OUTSIDE_THREAD_H
#define STRAND_OUTSIDE_THREAD_H

#include "../sched/quiescent.h"
#include "core.h"

/* A thread outside of the run acts on it, and may do so again, so the run can no longer decide that it is out of work.
 * Any thread may call this, also in a signal handler. */
static inline void outside_thread_acts(struct runtime *runtime)
{
    _Atomic uint32_t *minds = &runtime->sub.quiescence_waiters;
    if (runtime->options.out_of_work == STRAND_OUT_OF_WORK_AUTO &&
        (atomic_load_explicit(minds, memory_order_relaxed) & QUIESCENT_VERDICT))
        atomic_fetch_and_explicit(minds, ~(uint32_t)QUIESCENT_VERDICT, memory_order_seq_cst); /* [Q5] */
}

#endif
