/*
 * What the poller of a pool watches. The layer above keeps the records and says what an event does. This file registers
 * them with the system; the seeker, or a busy thread in its pass, passes events on (docs/protocols/descriptors.md).
 */
#ifndef SCHED_POLLED_H
#define SCHED_POLLED_H

#include "../base/base.h"

struct pool;
struct thread;

/* Lives until the pool's end once it was watched: a late event may name it. */
struct polled {
    /* Called for each event, on a thread of the pool, under no lock: it makes runnable whom it has claimed, by
     * pool_deliver. events: ARCH_IN, ARCH_OUT. */
    void (*fire)(struct thread *thread, struct polled *polled, uint32_t events);
};

/* Watch fd in both directions, edge-triggered: every change to readiness is an event, and so is what holds now. Returns
 * 0 or a negated errno code; -EPERM: there is nothing to wait for (a regular file). Any thread. */
int pool_watch(struct pool *pool, int fd, struct polled *polled);
/* Whether the number still means the descriptor that pool_watch registered; false: others have closed that one. Not for
 * played descriptors. Any thread. */
bool pool_watches(struct pool *pool, int fd, struct polled *polled);
/* Before fd is closed, or when pool_watches has said that it was. Any thread. */
void pool_unwatch(struct pool *pool, int fd);
/* Pass on what has happened, without waiting. For the seeker, and a busy thread in its pass. */
void pool_take_polled(struct thread *thread, struct pool *pool);
/* Whether something has happened that waits to be passed on. From outside of the pool. */
bool pool_has_polled(struct pool *pool);
/* The seeker's wait. */
void pool_wait_polled(struct thread *thread, struct pool *pool, int64_t deadline);

#endif
