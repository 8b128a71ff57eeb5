/*
 * The reason of a cancel: struct cancel_reason in core.h, which counts its references.
 */
#ifndef STRAND_CANCEL_REASON_H
#define STRAND_CANCEL_REASON_H

#include "core.h"

/* Returns NULL if there is no memory. */
struct cancel_reason *cancel_reason_new(struct thread *thread, struct cb *who, const char *why);
struct cancel_reason *cancel_reason_keep(struct cancel_reason *reason);
void cancel_reason_release(struct cancel_reason *reason);
/* Returns the reason of the cancel of c, or NULL. */
struct cancel_reason *cancel_reason_of(struct cb *c);

#endif
