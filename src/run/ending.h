/*
 * How a run ends before its root strand returns by itself.
 */
#ifndef RUN_ENDING_H
#define RUN_ENDING_H

#include "../strand/core.h"

/* Decides whether the run must be judged when it is out of work. Called before the run has threads. */
void ending_open(struct runtime *runtime);
/* Returns whether the run must be judged when it is out of work, and no thread outside of the run has acted on it. */
bool ending_wants_verdict(struct subprocess *sub);
/* Makes a run that is being shut down end when it is out of work, before its time is over. */
void ending_while_stopping(struct runtime *runtime);
/* Cancels the root strand, which has not ended. Returns the strand if the caller must make it runnable, else NULL. */
struct member *ending_cancel_root(struct runtime *runtime, const char *why);

#endif
