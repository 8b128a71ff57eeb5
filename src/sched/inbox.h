/*
 * The choice of an inbox for a fibre that another thread makes runnable.
 */
#ifndef SCHED_INBOX_H
#define SCHED_INBOX_H

#include "fibre.h"
#include "thread_type.h"

/* Posts a fibre to the inbox of `home`, or of a thread that stays, if `home` is NULL, of another pool, or has gone. The
 * caller must wake a thread. */
void pool_post_fibre(struct pool *pool, struct thread *by, struct thread *home, struct fibre *fibre);
/* Moves the inbox of a thread that has gone to thread 0, which stays. The caller must wake a thread. */
void pool_pass_on(struct thread *gone);

#endif
