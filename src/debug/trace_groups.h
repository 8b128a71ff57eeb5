/*
 * Groups of strands at the same place: with the same functions in their traces, spawned into a scope at the same place,
 * and in the same state. There is a fixed number of groups; strands that fit none are counted together.
 */
#ifndef DEBUG_TRACE_GROUPS_H
#define DEBUG_TRACE_GROUPS_H

#include "inspect.h"

struct groups;
size_t trace_groups_size(void);
/* Add a strand, in zeroed memory of that size. */
void trace_groups_add(struct groups *groups, const struct view *view, struct cb *c, uint64_t id);
/* Print the groups, the largest first. */
void trace_groups_say(struct groups *groups, const struct view *view);

#endif
