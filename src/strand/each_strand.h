/*
 * All strands of a run, found in its memory, not by the tree.
 */
#ifndef STRAND_EACH_STRAND_H
#define STRAND_EACH_STRAND_H

#include "core.h"

/* Calls fn for each strand that lives all the while, and for some that do at some moment meanwhile; it may be gone by
 * the time of the call, so fn takes a reference. Any thread. */
void each_strand(struct runtime *runtime, void (*fn)(struct cb *c, uint64_t id, void *arg), void *arg);

#endif
