/*
 * How a run ends before its root strand returns by itself.
 */
#ifndef RUN_ENDING_H
#define RUN_ENDING_H

#include "../strand/core.h"

/* Before the run has threads: whether it has to be judged when it is out of work. */
void ending_open(struct runtime *runtime);
/* It has to be judged, and no thread outside of the run has acted on it. */
bool ending_wants_verdict(struct subprocess *sub);
/* The run is being shut down: once it is out of work, it ends before its time is over. */
void ending_while_stopping(struct runtime *runtime);
/* Cancels the root strand, which has not ended. Returns it if the caller has to make it runnable. */
struct member *ending_cancel_root(struct runtime *runtime, const char *why);

#endif
