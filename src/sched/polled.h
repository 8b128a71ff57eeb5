/*
 * The descriptors that the poller of a pool watches. The layer above keeps the records and decides what an event does.
 * This file registers the descriptors with the system; the seeker, or a busy thread in its pass, passes events on
 * (docs/protocols/descriptors.md).
 */
#ifndef SCHED_POLLED_H
#define SCHED_POLLED_H

#include "../base/base.h"

struct pool;
struct thread;

/* The record of a descriptor. Once watched, it lives until the pool ends, because a late event may name it. */
struct polled {
    /* Called for each event, on a thread of the pool, under no lock. It makes runnable the strands that it has claimed,
     * by pool_deliver. events: ARCH_IN, ARCH_OUT. */
    void (*fire)(struct thread *thread, struct polled *polled, uint32_t events);
};

/* Watches fd in both directions, edge-triggered: every change to readiness is an event, and so is readiness at the time
 * of the call. Returns 0 or a negated errno code; -EPERM means that fd is always ready (a regular file). Any thread. */
int pool_watch(struct pool *pool, int fd, struct polled *polled);
/* Returns whether the number still means the descriptor that pool_watch registered; false means that other code has
 * closed that one. Not for played descriptors. Any thread. */
bool pool_watches(struct pool *pool, int fd, struct polled *polled);
/* Ends the watch. Called before fd is closed, or when pool_watches has returned false. Any thread. */
void pool_unwatch(struct pool *pool, int fd);
/* Passes on the events that have come, without waiting. Called by the seeker, or by a busy thread in its pass. */
void pool_take_polled(struct thread *thread, struct pool *pool);
/* Returns whether events wait to be passed on. Called from outside of the pool. */
bool pool_has_polled(struct pool *pool);
/* Waits for events or until `deadline`, and passes events on. Called by the seeker. */
void pool_wait_polled(struct thread *thread, struct pool *pool, int64_t deadline);

#endif
