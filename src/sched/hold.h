/*
 * Holding the threads of a sub-process still. Page: docs/protocols/dump.md.
 */
#ifndef SCHED_HOLD_H
#define SCHED_HOLD_H

#include "subprocess.h"
#include "thread_type.h"

/* Holds all other threads of the sub-process still at their next tick, until the deadline at most. Returns how many it
 * could not hold. pool_release lets them go on. The caller excludes other holders. */
int pool_hold(struct thread *thread, struct subprocess *sub, int64_t deadline);
void pool_release(struct thread *thread, struct subprocess *sub);
/* Makes the calling thread stand still until hold.asked is cleared. */
void pool_stand_still(struct thread *thread);
/* Holds a thread that is about to start, if others are held: pool_hold and pool_release may have missed it. */
void pool_hold_new(struct thread *thread);
/* pool_mark_parked marks the calling thread as parked or ended: it counts as held until it calls pool_move. */
void pool_mark_parked(struct thread *thread);
void pool_move(struct thread *thread);

#endif
