/*
 * Events of a system: dead letters, failures, ... They go to subscribed actors, or else to the log.
 */
#ifndef ACTOR_EVENT_STREAM_H
#define ACTOR_EVENT_STREAM_H

#include "actor.h"

static inline bool event_stream_wanted(const struct system *system, enum strand_actor_event kind)
{
    return atomic_load_explicit(&system->subscribed, memory_order_relaxed) & kind;
}

/* Publish a message that an actor did not handle, or that has no receiver. */
void event_stream_letter(struct thread *thread, struct system *system, enum strand_actor_event kind, strand_actor to,
                         const strand_message *message);
/* Publish the message in hand as unhandled. */
void event_stream_unhandled(struct thread *thread, struct runner *r, const strand_message *message);
/* Publish a dead letter in the system of the actor; if that has ended, in the run's newest system. */
void event_stream_letter_to(struct thread *thread, strand_actor to, const strand_message *message);
/* Publish a failure, in the actor's turn; `what`, for the log, as in event_stream_log. */
void event_stream_failure(struct thread *thread, const struct runner *r, const char *what, strand_exception *why);
/* To the log: "actor /user/till of class 'clerk' WHAT: " and the exception. */
void event_stream_log(const struct runner *r, const char *what, const strand_exception *why);
/* Publish a message that was handled. */
void event_stream_receive_(struct thread *thread, struct runner *r, const strand_message *message);
/* Send an event to its subscribers. Returns false if there are none, or there was no memory to reach all of them. */
bool event_stream_publish(struct thread *thread, struct system *system, const strand_published *event);
/* Compose the event of a restart or an end, in the actor's turn, before it has ended. */
strand_published event_stream_of(const struct runner *r, enum strand_actor_event kind);
/* At the end: log a summary of what reached no subscriber. */
void event_stream_summarize(struct system *system);
void event_stream_close(struct system *system);

#endif
