/*
 * The clock of a system: messages to actors, and restarts, at an instant. One strand waits for the next of them.
 *
 * OWNERSHIP the clock's lock protects the heap, and everything in it. A timer belongs to its actor, which frees it; a
 *           timer that restarts an actor, to the clock.
 * TOLD      a repeated timer, or a receive timeout, whose message is under way skips its ticks until the actor takes
 *           that message out of its mailbox. The flag is in the timer itself (due.told): the clock's strand sets it
 *           under the lock, the actor clears it in its turn. A timer that replaces another one fires, though the
 *           message of the previous one, which is ignored, may still be under way.
 */
#ifndef ACTOR_CLOCK_H
#define ACTOR_CLOCK_H

#include "actor.h"

struct due;

void clock_open(struct clock *clock);
/* After its strand has ended. */
void clock_close(struct clock *clock);
/* Make a request of an actor later, as cell_call_failed. Returns 0, or -ENOMEM. */
int clock_call(struct thread *thread, struct system *system, int64_t ns, strand_actor actor, uint32_t calls,
               strand_exception *why);
/* Remove all timers of an actor that restarts, or has ended. */
void clock_forget(struct thread *thread, struct more *more);
/* In the actor's turn, when a timer's message comes up: whether the timer still counts. Frees a timer that fires
 * once. */
bool clock_holds(struct thread *thread, struct more *more, const strand_message *message);

#endif
