/*
 * Systems of actors: their life. The protocol block is in actor.h.
 */
#ifndef ACTOR_SYSTEM_H
#define ACTOR_SYSTEM_H

#include "actor.h"

/* A dead letter to nobody, whom no system knows: the newest one of the run publishes it. */
void system_letter(struct thread *thread, strand_actor to, const strand_message *message);
/* Its root has ended. */
void system_over(struct system *system);
/* The one behind a handle, of the caller's run; misuse of `function` else. */
struct system *system_of(struct thread *thread, strand_actors handle, const char *function);

#endif
