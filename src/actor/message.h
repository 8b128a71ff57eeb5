/*
 * Sending messages. The protocol block is in actor.h.
 */
#ifndef ACTOR_MESSAGE_H
#define ACTOR_MESSAGE_H

#include "actor.h"

#include "../strand/misuse.h"

#include <errno.h>

/* The type of a message that stops its receiver. */
extern const strand_message_type message_last;
/* The sender of a strand_terminated for which it was not checked yet whether it is expected. */
enum { NOTICE = 1 };
/* The sender as user code may see it: none, if the field has one of the library's own marks. */
static inline strand_actor message_sender(const strand_message *message)
{
    strand_actor sender = message->sender;
    bool marked = (sender.bits[1] & MARK_TIMER) || (sender.bits[0] == NOTICE && !sender.bits[1]);
    return marked ? (strand_actor){{0, 0}} : sender;
}
/* Whether the library itself has sent the message: a full mailbox must not discard it, nor may the actor see it
 * unchecked. */
static inline bool message_is_special(const struct envelope *e)
{
    const strand_message *message = &e->message;
    return UNLIKELY(message->type == &message_last) ||
           (UNLIKELY(message->type == &strand_terminated_message) && message->sender.bits[0] == NOTICE);
}

static inline void message_must_be_whole(const strand_message_type *type, const void *body, size_t size,
                                         const char *function)
{
    if (UNLIKELY(!type) || UNLIKELY(size && !body))
        MISUSE(function, "", "the %s is NULL", type ? "body" : "type");
}

/* For a result of sending: whether no receiver will ever handle the message, however often it is sent; it was
 * dropped. */
static inline bool message_is_dead(int error)
{
    return error == -EPIPE || error == -EBADMSG;
}

/* Returns NULL if there is no memory. */
struct envelope *message_new(struct thread *thread, const strand_message_type *type, const void *body, size_t size);
/* Deliver a message, even to a full mailbox. Returns 0, or -EPIPE: there is no receiver; -ENOMEM. On errors the caller
 * keeps the message. */
int message_deliver(struct thread *thread, strand_actor to, struct envelope *e);
/* Likewise, in a strand; without memory it waits for other strands to free some. Without a receiver the message becomes
 * a dead letter. Returns the thread that the caller resumes on. */
struct thread *message_insist(struct thread *thread, strand_actor to, struct envelope *e);
int message_send_last(struct thread *thread, strand_actor to);

/* Free a message that was handled: drop what it owns, unless the receiver has taken that. */
void envelope_free(struct thread *thread, struct envelope *e);
/* Drop what a message of that type owns; the type has a function for that. On any thread. */
void message_drop(const strand_message_type *type, void *body);
/* Free a message that was not sent: the sender keeps what it owns. */
void envelope_unsend(struct thread *thread, struct envelope *e);
/* Turn messages into dead letters, in that system; NULL: the receiver is gone, or never existed. */
void envelopes_die(struct thread *thread, struct system *system, strand_actor to, struct envelope *first);

/* As strand_message_forward, to an actor of the run; but after an error the message is always still in hand. */
int message_pass(struct runner *r, strand_actor to);
/* Make the message in hand the next one again, after pending calls of the actor. */
void message_put_back(struct runner *r);
/* Misuse unless the caller handles that message. */
struct runner *message_must_be_in_hand(struct thread *thread, const strand_message *message, const char *function);

#endif
