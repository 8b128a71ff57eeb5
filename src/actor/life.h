/*
 * What the tree tells an actor: start, stop, restart; and what becomes of failures. In the actor's own turn.
 */
#ifndef ACTOR_LIFE_H
#define ACTOR_LIFE_H

#include "actor.h"

/* Do what is asked for, in a turn of it. Afterwards the runner may have no task any more. */
void life_calls(struct runner *r);
/* It is to stop: at once, if it has no children. */
void life_stop(struct runner *r);
/* Handling the message in hand, or one of its own functions, has failed. Takes the exception. */
void life_fail(struct runner *r, strand_exception *e);
/* The runner's strand is cancelled: its task goes to another. */
void life_retire(struct runner *r);

/* ---- for supervise.c --------------------------------------------------------------------------------------- */

/* One of them, in a scope of its own. */
struct own_call {
    struct runner *r;
    enum { OWN_START, OWN_STOP, OWN_DECIDE } which;
    bool begun;
    bool returned; /* the function; its scope may fail after that, by what is left in it */
    struct failure *failure;
    enum strand_directive decided;
};
/* The exception that it ended by, or NULL. Without memory for its scope it waits for some. */
strand_exception *life_own(struct own_call *call);
/* How long a child rests at first whose beginning has failed, where nothing is said of it. */
enum { BEGINNING_PAUSE = STRAND_MS };
/* A child is to be restarted, after a pause, if it rests still because of that failure. */
void life_retry(struct thread *thread, struct runner *r, const struct failure *failure, int64_t pause);
/* All children. */
void life_tell_all(struct runner *r, uint32_t calls, int64_t pause);

/* ---- supervise.c ------------------------------------------------------------------------------------------- */

/* Children have failed: decide what becomes of them. */
void supervise(struct runner *r);
/* Failures that nobody decides about any more. */
void failures_drop(struct failure *failures);

#endif
