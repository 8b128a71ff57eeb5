/*
 * Systems of actors: opening and ending. The protocol block is in actor.h.
 */
#ifndef ACTOR_SYSTEM_H
#define ACTOR_SYSTEM_H

#include "actor.h"

/* Publish a dead letter whose system is unknown: the run's newest system does. */
void system_letter(struct thread *thread, strand_actor to, const strand_message *message);
/* The root of the system has ended. */
void system_over(struct system *system);
/* The system behind a handle, of the caller's run; otherwise misuse of `function`. */
struct system *system_of(struct thread *thread, strand_actors handle, const char *function);

#endif
