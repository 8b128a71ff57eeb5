/*
 * Calls that block their thread, for the layer's own use. Page: docs/protocols/offload.md.
 */
#ifndef IO_OFFLOAD_H
#define IO_OFFLOAD_H

#include "../strand/core.h"

/* As strand_offload, but an interruption does not wait for fn: the strand leaves it to the crew. If this throws, for
 * whatever reason, arg is left: `left` is called for it, on any thread, when fn has returned or never will be called.
 * The caller has seen to may_block. */
void *offload_or_leave(struct thread *thread, enum run_crew own, strand_fn *fn, void *arg, void (*left)(void *arg),
                       const char *function);
/* fn(arg) on one of the run's crews; the strand waits for it, interrupted or not. False: no thread or memory could be
 * had, and fn was not called. */
bool offload_surely(struct thread *thread, enum run_crew own, strand_fn *fn, void *arg, const char *function);

#endif
