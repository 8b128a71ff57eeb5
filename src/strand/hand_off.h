/*
 * Hand-off, for the library's own strands; join.c defines it.
 */
#ifndef STRAND_HAND_OFF_H
#define STRAND_HAND_OFF_H

#include "core.h"

/* Whether the caller of `function` may spawn into the scope: 0, or -ECANCELED: the scope was open, and has been left.
 * Misuse of `function` if the caller may not. */
int hand_off_check(struct thread *thread, strand_scope to, const char *function);
/* Hands a child of the caller, which has been spawned by `function` into a scope of that function's own, to the scope
 * that the function was called with: one of the caller's, or an open one. Returns as hand_off_check. */
int hand_off_spawned(struct thread *thread, strand child, strand_scope to, const char *function);

#endif
