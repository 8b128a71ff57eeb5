/*
 * How a run ends before its root strand returns by itself: the root is cancelled. The protocol block is in shutdown.h.
 */
#include "ending.h"

#include "../sched/quiescent.h"
#include "../strand/cancel.h"
#include "../strand/cancel_reason.h"
#include "../strand/exception.h"

void ending_open(struct runtime *runtime)
{
    enum strand_out_of_work what = runtime->options.out_of_work;
    bool seeded = runtime->sub.platform; /* it says by itself that nothing can go on, and why */
    runtime->sub.acts_when_quiescent = what != STRAND_OUT_OF_WORK_WAIT && !(seeded && what == STRAND_OUT_OF_WORK_AUTO);
}

bool ending_wants_verdict(struct subprocess *sub)
{
    return atomic_load_explicit(&sub->quiescence_waiters, memory_order_seq_cst) & QUIESCENT_VERDICT; /* [Q2] */
}

void ending_while_stopping(struct runtime *runtime)
{
    enum strand_out_of_work what = runtime->options.out_of_work;
    if (what == STRAND_OUT_OF_WORK_AUTO && !runtime->sub.platform)
        return; /* the launch of the run did it; a thread from outside may have undone it */
    if (what != STRAND_OUT_OF_WORK_WAIT)
        atomic_fetch_or_explicit(&runtime->sub.quiescence_waiters, QUIESCENT_VERDICT, memory_order_seq_cst); /* [Q2] */
}

struct member *ending_cancel_root(struct runtime *runtime, const char *why)
{
    struct thread *thread = thread_self();
    struct cancel_reason *reason = cancel_reason_new(thread, NULL, why);
    atomic_store_explicit(&runtime->end_requested, true, memory_order_release); /* [SD4] */
    struct member *member = cancel_strand(thread, runtime->root, reason, false);
    cancel_reason_release(reason);
    return member;
}
