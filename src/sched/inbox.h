/*
 * Inboxes: stacks of fibres that other threads make runnable; and the choice of an inbox for such a fibre. [R4] is in
 * runq.h.
 */
#ifndef SCHED_INBOX_H
#define SCHED_INBOX_H

#include "fibre.h"
#include "thread_type.h"

/* Adds a fibre to the inbox. Any thread. Full barrier. */
void inbox_post(inbox *box, struct fibre *fibre);
/* Moves all fibres of the inbox to the end of `list`, the oldest first; they belong to the caller then. Returns false
 * if there is none. */
bool inbox_take(inbox *box, struct link *list);

/* Posts a fibre to the inbox of `home`, or of a thread that stays, if `home` is NULL, of another pool, or has gone. The
 * caller must wake a thread. */
void pool_post_fibre(struct pool *pool, struct thread *by, struct thread *home, struct fibre *fibre);
/* Moves the inbox of a thread that has gone to thread 0, which stays. The caller must wake a thread. */
void pool_pass_on(struct thread *gone);

#endif
