/*
 * Closing a pool. The protocol block is in pool_close.c.
 */
#ifndef RUN_POOL_CLOSE_H
#define RUN_POOL_CLOSE_H

#include "../strand/core.h"

/* Closes a pool whose scope is being left: the struct owned.release of a pool. */
void pool_end_with_scope(struct thread *thread, struct owned *owned);

#endif
