/*
 * Strands that stand at the same place, counted: with the same functions in their traces, spawned into a scope at the
 * same place, and doing the same. As many groups as there is room for; what comes after that is counted in one.
 */
#ifndef DEBUG_GROUP_H
#define DEBUG_GROUP_H

#include "look.h"

struct groups;
size_t groups_size(void);
/* In memory of that size, which is zero. */
void groups_add(struct groups *groups, const struct look *look, struct cb *c, uint64_t id);
/* Those with the most strands first. */
void groups_say(struct groups *groups, const struct look *look);

#endif
