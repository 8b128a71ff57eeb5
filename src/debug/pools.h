/*
 * Descriptions of pools. Reads records that live as long as their run, and names that may be stale if threads could not
 * be held.
 */
#ifndef DEBUG_POOLS_H
#define DEBUG_POOLS_H

#include "output.h"

#include "../strand/core.h"

enum { POOL_NAME_ROOM = 32 };

static inline bool pool_is_first(const struct pool *pool)
{
    return pool == &pool->sub->pool;
}

/* Copy the pool's name to `name`; "": it has none yet, or no more. */
const char *pool_name(const struct pool *pool, char name[POOL_NAME_ROOM]);
/* Likewise, for the object of a BLOCKED_POOL wait. */
const char *pool_name_waited_for(uint64_t blocked_on, char name[POOL_NAME_ROOM]);
/* Print the number of strands and of threads, and, if other pools were opened, a line for each pool that has not
 * ended. */
void pools_say(struct output *out, struct subprocess *sub, size_t strands, size_t over);

#endif
