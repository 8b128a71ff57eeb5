/*
 * Messages from outside of the run.
 */
#ifndef ACTOR_FOREIGN_H
#define ACTOR_FOREIGN_H

#include "actor.h"

/* Send a message. given: the body itself; NULL: `body` is copied. */
int foreign_send(strand_actor to, strand_actor sender, const strand_message_type *type, const void *body, void *given,
                 size_t size);
/* Whether it is an actor of another run, which has not ended; and whether the actor has not ended either. */
bool foreign_is(const struct thread *thread, strand_actor actor);
bool foreign_is_there(const struct thread *thread, strand_actor actor);

#endif
