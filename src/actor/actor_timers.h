/*
 * The timers of a system: messages to actors, and restarts, at an instant. One strand waits for the next of them.
 *
 * OWNERSHIP the lock protects the heap, and everything in it. A timer belongs to its actor, which frees it; a
 *           timer that restarts an actor, to the system.
 * UNDER WAY a repeated timer, or a receive timeout, whose message is under way skips its ticks until the actor takes
 *           that message out of its mailbox. The flag is in the timer itself (due.under_way): the strand that waits
 *           sets it under the lock, the actor clears it in its turn. A timer that replaces another one fires, though
 *           the message of the previous one, which is ignored, may still be under way.
 */
#ifndef ACTOR_TIMERS_H
#define ACTOR_TIMERS_H

#include "actor.h"

struct due;

void actor_timers_open(struct actor_timers *timers);
/* After its strand has ended. */
void actor_timers_close(struct actor_timers *timers);
/* Make a request of an actor later, as cell_call_failed. Returns 0, or -ENOMEM. */
int actor_timers_call(struct thread *thread, struct system *system, int64_t ns, strand_actor actor, uint32_t calls,
                      strand_exception *why);
/* Remove all timers of an actor that restarts, or has ended. */
void actor_timers_forget(struct thread *thread, struct optional *optional);
/* In the actor's turn, when a timer's message comes up: whether the timer still counts. Frees a timer that fires
 * once. */
bool actor_timers_holds(struct thread *thread, struct optional *optional, const strand_message *message);

#endif
