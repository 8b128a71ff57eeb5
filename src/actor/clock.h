/*
 * The clock of a system: messages to actors, and restarts, at an instant. One strand waits for the next of them.
 *
 * OWNERSHIP the heap, and all that is in it, by the clock's lock. A timer belongs to its actor, which frees it; one
 *           that restarts an actor is the clock's.
 * TOLD      a receive timeout whose message is on its way does not fire again before that is handled. The timer itself
 *           says so (due.told): one that takes its place fires, though the message of the one before, which is not
 *           heard of any more, may still be on its way.
 */
#ifndef ACTOR_CLOCK_H
#define ACTOR_CLOCK_H

#include "actor.h"

struct due;

void clock_open(struct clock *clock);
/* When its strand has ended. */
void clock_close(struct clock *clock);
/* Tell an actor so later, as cell_call_failed. 0, or -ENOMEM. */
int clock_call(struct thread *thread, struct system *system, int64_t ns, strand_actor actor, uint32_t calls,
               strand_exception *why);
/* The actor begins anew, or has ended: it has no timers. */
void clock_forget(struct thread *thread, struct more *more);
/* In its turn, about a message of a timer, which comes now: whether the timer holds still. One that was set once is
 * over. */
bool clock_holds(struct thread *thread, struct more *more, const strand_message *message);

#endif
