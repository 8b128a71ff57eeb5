/*
 * Waiting for the outside. For now: calls that block their thread.
 */
#ifndef STRAND_IO_H
#define STRAND_IO_H

#include "../strand.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Run fn(arg) on a thread of the run's crew, where it may block as long as it likes, and wait for it. Returns what fn
 * returned. Interruptible until a crew thread has taken it up; from then on it is waited for, uninterruptibly, because
 * fn works on the caller's memory. fn runs outside of strands: it may call only functions marked "any thread", and may
 * not throw. Throws STRAND_SYSTEM if no thread can be had. In a seeded run there is no crew: fn runs on the caller's
 * stack (64 KiB unless told otherwise) as one step of the run, and everybody waits for it.
 */
STRAND_BLOCKS void *strand_offload(strand_fn *fn, void *arg);

#ifdef __cplusplus
}
#endif
#endif
