/*
 * The scheduler of a pool, by name or by value.
 */
#ifndef RUN_USER_SCHEDULER_H
#define RUN_USER_SCHEDULER_H

#include "../../include/strand/scheduler.h"
#include "../strand/core.h"

/* Returns the scheduler of that name, or the one that calls the user's. NULL: there is none, or the user's lacks
 * something; text says what is wrong with the options, or attributes (whose). */
const struct scheduler *scheduler_for(const char *name, const strand_scheduler *custom, const char *whose, char *text,
                                      size_t room);

#endif
