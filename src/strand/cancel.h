/*
 * Cancelling: a lasting state of a strand, its outermost source of interruption.
 */
#ifndef STRAND_CANCEL_H
#define STRAND_CANCEL_H

#include "core.h"

/* Cancel a strand that the caller keeps from being consumed (as its owner, under its scope's lock, or by a reference).
 * owned: by the owner of its scope. Returns it if the caller has to make it runnable. */
struct member *cancel_strand(struct thread *thread, struct cb *c, struct cancel_reason *reason, bool owned);

#endif
