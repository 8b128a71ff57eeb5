/*
 * Dispatchers: they have names, and runners for actors.
 */
#ifndef ACTOR_DISPATCH_H
#define ACTOR_DISPATCH_H

#include "actor.h"

/* Open the dispatchers of a system. Returns 0, or a negated errno code. In the strand that opens the system. */
int dispatch_open(struct thread *thread, struct system *system, const strand_dispatcher *dispatchers, size_t count);
/* Find or open the dispatcher or executor of that name. Returns 0; -ENOENT: there is none; or an error of opening
 * one. */
int dispatch_find(struct thread *thread, struct system *system, const char *name, struct runners **out);
void dispatch_free(struct system *system);

#endif
