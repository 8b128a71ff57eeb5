/*
 * What is published of a system: dead letters, failures, ... To actors that have subscribed; else to the log.
 */
#ifndef ACTOR_EVENTS_H
#define ACTOR_EVENTS_H

#include "actor.h"

static inline bool events_wanted(const struct system *system, enum strand_event_kind kind)
{
    return atomic_load_explicit(&system->subscribed, memory_order_relaxed) & kind;
}

/* A message of an actor's that nobody handles, or that it has no use for. */
void events_letter(struct thread *thread, struct system *system, enum strand_event_kind kind, strand_actor to,
                   const strand_message *message);
/* In its turn; `what`, for the log, as in events_log. */
void events_failure(struct thread *thread, const struct runner *r, const char *what, strand_exception *why);
/* To the log: "actor /user/till of class 'clerk' WHAT: " and the exception. */
void events_log(const struct runner *r, const char *what, const strand_exception *why);
/* A message that was handled. */
void events_receive_(struct thread *thread, struct runner *r, const strand_message *message);
/* To those that want it. False: there was no memory to tell all of them, or nobody does. */
bool events_publish(struct thread *thread, struct system *system, const strand_published *event);
/* That it begins anew, or ends: what is published of it, in its turn, before it has ended. */
strand_published events_of(const struct runner *r, enum strand_event_kind kind);
/* At the end: of what nobody was told the log is. */
void events_tell_rest(struct system *system);
void events_close(struct system *system);

#endif
