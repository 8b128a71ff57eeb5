/*
 * The systems of a run: what their handles refer to, and the list of them.
 *
 * A handle refers to a record, the door, which has a serial while the system's block has not been left. The list, under
 * actor_run.lock, is for a thread that has no handle: the holder of that lock keeps all systems in the list from
 * ending.
 */
#ifndef ACTOR_REGISTRY_H
#define ACTOR_REGISTRY_H

#include "actor.h"

/* Make the target of the system's handles. Returns false if there is no memory. */
bool registry_open(struct thread *thread, struct system *system);
/* Make all handles of the system stale. */
void registry_close(struct thread *thread, struct system *system);
strand_actors registry_handle(const struct system *system);
/* The system behind a handle, of the caller's run; otherwise misuse of `function`. */
struct system *registry_find(struct thread *thread, strand_actors handle, const char *function);
/* Add the system to the run's list, as the newest; remove it. */
void registry_add(struct thread *thread, struct system *system);
void registry_remove(struct thread *thread, struct system *system);

#endif
