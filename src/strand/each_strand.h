/*
 * All strands of a run, found in its memory rather than in the tree.
 */
#ifndef STRAND_EACH_STRAND_H
#define STRAND_EACH_STRAND_H

#include "core.h"

/* Calls fn for each strand that lives during the whole walk, and for some that live during a part of it. A strand may
 * be gone when fn is called, so fn takes a reference. Any thread may call this. */
void each_strand(struct runtime *runtime, void (*fn)(struct cb *c, uint64_t id, void *arg), void *arg);

#endif
