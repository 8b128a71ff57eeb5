/*
 * Messages on their way. The protocol block is in actor.h.
 */
#ifndef ACTOR_MESSAGE_H
#define ACTOR_MESSAGE_H

#include "actor.h"

#include "../strand/misuse.h"

#include <errno.h>

/* The type of a message that stops its receiver. */
extern const strand_message_type message_last;
/* The sender of a strand_terminated that nobody has looked at yet, whether it is expected. */
enum { NOTICE = 1 };
/* For all but the library: no sender, if that is the library's own mark. */
static inline strand_actor message_sender(const strand_message *message)
{
    strand_actor sender = message->sender;
    bool marked = (sender.bits[1] & MARK_TIMER) || (sender.bits[0] == NOTICE && !sender.bits[1]);
    return marked ? (strand_actor){{0, 0}} : sender;
}
/* What the library itself has sent: not the mailbox's to forget, nor the actor's to see before it has been looked at.
 */
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

/* Of what sending returns: nobody will ever handle the message, wherever it is sent again, and it has been dropped. */
static inline bool message_is_dead(int error)
{
    return error == -EPIPE || error == -EBADMSG;
}

/* NULL: no memory. */
struct envelope *message_new(struct thread *thread, const strand_message_type *type, const void *body, size_t size);
/* Whatever is in the mailbox. 0; else it is the caller's still: -EPIPE: nobody is there; -ENOMEM. */
int message_deliver(struct thread *thread, strand_actor to, struct envelope *e);
/* The same in a strand; without memory it waits for others to give some back. If nobody is there it is a dead letter.
 * Returns the thread that the caller goes on on. */
struct thread *message_insist(struct thread *thread, strand_actor to, struct envelope *e);
int message_send_last(struct thread *thread, strand_actor to);

/* Its message is over: what it owns is dropped, if nobody has taken it. */
void envelope_free(struct thread *thread, struct envelope *e);
/* What a message of that type owns is dropped, by a type that has a function for that. On any thread. */
void message_drop(const strand_message_type *type, void *body);
/* It was not sent: what it owns is the sender's still. */
void envelope_unsend(struct thread *thread, struct envelope *e);
/* Nobody handles these: they are dead letters, in that system; NULL: to one that is gone, or never was. */
void envelopes_die(struct thread *thread, struct system *system, strand_actor to, struct envelope *first);

/* As strand_forward, to one of the run; but after an error the message is always in hand still. */
int message_pass(struct runner *r, strand_actor to);
/* The message in hand is the next one again: after the calls that the actor has to make meanwhile. */
void message_put_back(struct runner *r);
/* Misuse if the caller does not handle that message. */
struct runner *must_be_in_hand(struct thread *thread, const strand_message *message, const char *function);

#endif
