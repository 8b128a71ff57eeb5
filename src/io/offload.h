/*
 * Offloaded calls, for the layer's own use. Page: docs/protocols/offload.md.
 */
#ifndef IO_OFFLOAD_H
#define IO_OFFLOAD_H

#include "io_layer.h"

/* As strand_offload, but if the strand is interrupted it leaves the call to the crew instead of waiting. If this
 * throws, for whatever reason, arg is left: `left` is called with it, on any thread, once fn has returned or will never
 * be called. The caller has called may_block. */
void *offload_or_leave(struct thread *thread, enum run_crew own, strand_fn *fn, void *arg, void (*left)(void *arg),
                       const char *function);
/* Run fn(arg) on one of the run's crews and wait for it, uninterruptibly. Returns false if there was no thread or
 * memory: fn was not called. */
bool offload_surely(struct thread *thread, enum run_crew own, strand_fn *fn, void *arg, const char *function);

/* How a call of offload_own has ended, if it has not run. */
enum { OFFLOAD_INTERRUPTED = 1, OFFLOAD_LEFT };
/* Run fn(arg) on one of the run's crews and wait for it. Never throws. If the strand is interrupted while fn runs, and
 * `left` is not NULL, it leaves arg to the crew, which calls left(arg) on any thread when fn has returned; with `left`
 * NULL it waits for fn. why: a reason of io_blocked.h. Returns 0 when fn has returned; OFFLOAD_LEFT; or, if fn will
 * never be called, OFFLOAD_INTERRUPTED or a negated errno code: there is no thread, or no memory. */
int offload_own(struct thread **thread, enum run_crew own, unsigned why, strand_fn *fn, void *arg,
                void (*left)(void *arg), const char *function);

#endif
