/*
 * Delivery of runnable strands to the thread or pool that runs them.
 */
#ifndef SCHED_DELIVER_H
#define SCHED_DELIVER_H

#include "fibre.h"
#include "thread_type.h"

/* Makes runnable a strand that a timer, a post or an event has woken. The thread that ran it last gets it, if that
 * thread is busy and of this pool. The caller has the role of the seeker. */
void pool_deliver(struct thread *thread, struct member *member);
/* As pool_deliver, for a fibre. The mail of a shared fibre has the strand already. */
void pool_deliver_fibre(struct thread *thread, struct fibre *fibre);
/* Makes runnable a fibre of another pool than the thread's. thread: NULL if the caller is no thread of the
 * sub-process. */
void pool_send(struct thread *thread, struct fibre *fibre);
/* Makes a pinned fibre runnable, and rouses its thread if that sleeps. */
void pool_send_pinned(struct thread *by, struct fibre *fibre);

#endif
