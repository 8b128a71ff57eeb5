/*
 * The tree's requests to an actor: start, stop, restart; and failures. In the actor's own turn.
 */
#ifndef ACTOR_LIFE_H
#define ACTOR_LIFE_H

#include "actor.h"

/* Serve pending calls, in the actor's turn. Afterwards the runner may have no task any more. */
void life_calls(struct runner *r);
/* Stop the actor: at once, if it has no children. */
void life_stop(struct runner *r);
/* Record that handling the message in hand, or one of the actor's own functions, has failed. Takes the exception. */
void life_fail(struct runner *r, strand_exception *e);
/* The runner's strand is cancelled: pass its task to another runner. */
void life_retire(struct runner *r);

/* ---- for supervise.c --------------------------------------------------------------------------------------- */

/* A call of an own function of the actor, in a scope of its own. */
struct own_call {
    struct runner *r;
    enum { OWN_START, OWN_STOP, OWN_DECIDE } which;
    bool begun;
    bool returned; /* the function has; its scope may fail afterwards, because of strands left in it */
    struct failure *failure;
    enum strand_directive decided;
};
/* Make the call. Returns the exception that it ended by, or NULL. Waits if there is no memory for its scope. */
strand_exception *life_own(struct own_call *call);
/* How long a child whose start has failed is suspended at first, unless its supervision says otherwise. */
enum { BEGINNING_PAUSE = STRAND_MS };
/* Restart a child after a pause, if it is then still suspended by that failure. */
void life_retry(struct thread *thread, struct runner *r, const struct failure *failure, int64_t pause);
/* Make a request of all children. */
void life_tell_all(struct runner *r, uint32_t calls, int64_t pause);

/* ---- supervise.c ------------------------------------------------------------------------------------------- */

/* Decide about children that have failed. */
void supervise(struct runner *r);
/* Free failures that need no decision any more. */
void failures_drop(struct failure *failures);

#endif
