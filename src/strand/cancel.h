/*
 * Cancelling: a lasting state of a strand, its outermost source of interruption.
 */
#ifndef STRAND_CANCEL_H
#define STRAND_CANCEL_H

#include "core.h"

/* Cancels a strand. The caller keeps it from being consumed: as its owner, under its scope's lock, or by a reference.
 * owned: the caller owns its scope. Returns the strand's member if the caller has to make it runnable. */
struct member *cancel_strand(struct thread *thread, struct cb *c, struct cancel_reason *reason, bool owned);

#endif
