/*
 * The scheduler of a pool, by name or by value.
 */
#ifndef RUN_USER_SCHEDULER_H
#define RUN_USER_SCHEDULER_H

#include "../../include/strand/scheduler.h"
#include "../strand/core.h"

/* The scheduler of that name, or the one for the user's own; NULL: there is none, or it lacks something: what is wrong
 * with the options, or attributes (whose), is in text. */
const struct scheduler *scheduler_for(const char *name, const strand_scheduler *custom, const char *whose, char *text,
                                      size_t room);

#endif
