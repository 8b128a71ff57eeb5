/*
 * How a thread sleeps and is woken.
 *
 * ORDERING  [SL1] the store of `wake` (release) pairs with the sleeper's load (acquire): what the waker did happens
 *           before the thread goes on.
 */
#ifndef SCHED_PLATFORM_SLEEP_H
#define SCHED_PLATFORM_SLEEP_H

#include "platform.h"

/* Sleeps until another thread calls platform_wake for this one, or until the instant `deadline`. Spurious wake-ups are
 * allowed. */
void platform_sleep(struct thread *thread, int64_t deadline);
void platform_wake(struct thread *thread);

/* Waits as the seeker: sleeps as platform_sleep does, but for descriptors, too. Returns how many events there are.
 * platform_unpoll ends the wait. */
int platform_poll(struct thread *thread, struct arch_event *events, int most, int64_t deadline);
void platform_unpoll(struct pool *pool, struct thread *seeker);

#endif
