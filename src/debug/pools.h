/*
 * What is said of pools. Reads records that stay as long as their run, and names that may be another's by then if
 * threads could not be held.
 */
#ifndef DEBUG_POOLS_H
#define DEBUG_POOLS_H

#include "out.h"

#include "../strand/core.h"

enum { POOL_NAME_ROOM = 32 };

static inline bool pool_is_first(const struct pool *pool)
{
    return pool == &pool->sub->pool;
}

/* Its name, copied to `name`; "": it has none yet, or no more. */
const char *pool_name(const struct pool *pool, char name[POOL_NAME_ROOM]);
/* The same of what a strand waits for that is BLOCKED_POOL. */
const char *pool_name_waited_for(uint64_t blocked_on, char name[POOL_NAME_ROOM]);
/* After the number of strands: how many threads there are, and, if others were opened beside the first one, a line for
 * each pool that has not ended. */
void pools_say(struct out *out, struct subprocess *sub, size_t strands, size_t over);

#endif
