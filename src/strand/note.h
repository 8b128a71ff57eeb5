/*
 * The reason of a cancel: struct note in core.h. Counted references.
 */
#ifndef STRAND_NOTE_H
#define STRAND_NOTE_H

#include "core.h"

/* NULL: no memory. */
struct note *note_new(struct thread *thread, struct cb *who, const char *why);
struct note *note_keep(struct note *note);
void note_release(struct note *note);
/* The one that says who cancelled c, or NULL. */
struct note *note_of(struct cb *c);

#endif
