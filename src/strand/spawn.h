/*
 * Strands of the library's own.
 */
#ifndef STRAND_SPAWN_H
#define STRAND_SPAWN_H

#include "core.h"

/* Makes a strand of the library's own in an open scope that stays open. The strand inherits nothing, and is runnable
 * once the caller launches it. pin: the index of the thread that it is pinned to, or -1. alone: it may block its
 * thread, so it gets a private fibre. Any thread of the run may call this, also outside of strands. Returns 0 or a
 * negated errno code. */
int spawn_own(struct thread *thread, struct scope *scope, struct pool *pool, int pin, bool alone, strand_fn *fn,
              void *arg, struct cb **out);
void spawn_launch(struct thread *thread, struct cb *c);

#endif
