/*
 * Dispatchers: where the actors of a system run, by name.
 */
#ifndef ACTOR_DISPATCH_H
#define ACTOR_DISPATCH_H

#include "actor.h"

/* What a system is told of them. 0, or a negated errno code. In the strand that opens the system. */
int dispatch_open(struct thread *thread, struct system *system, const strand_dispatcher *dispatchers, size_t count);
/* The one of that name, or executor. 0; -ENOENT: there is none; or what opening one costs. */
int dispatch_find(struct thread *thread, struct system *system, const char *name, struct place **out);
void dispatch_free(struct system *system);

#endif
