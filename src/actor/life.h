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
/* Failures that nobody decides about any more. */
void failures_drop(struct failure *failures);
/* The runner's strand is cancelled: its task goes to another. */
void life_retire(struct runner *r);

#endif
