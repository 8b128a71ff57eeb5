/*
 * Sending. The protocol block is in actor.h.
 */
#include "message.h"

#include "cell.h"
#include "deadlock.h"
#include "event_stream.h"
#include "foreign.h"
#include "mailbox.h"
#include "promise.h"
#include "runners.h"

#include "../strand/escape.h"
#include "../strand/hook.h"
#include "../strand/misuse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const strand_message_type message_last = STRAND_MESSAGE_TYPE_("the last message", NULL);

static int class_of(size_t size)
{
    for (int i = 0; i < ENVELOPE_CLASSES; i++)
        if (size <= envelope_sizes[i] - sizeof(struct envelope))
            return i;
    return ENVELOPE_CLASSES;
}

static inline struct envelope *envelope_new(struct thread *thread, size_t size)
{
    int class = class_of(size);
    if (UNLIKELY(class == ENVELOPE_CLASSES) && UNLIKELY(size > SIZE_MAX / 2))
        return NULL;
    if (UNLIKELY(class == ENVELOPE_CLASSES))
        return platform_malloc(thread, sizeof(struct envelope) + size);
    struct envelope *e = platform_slab_get(thread, &actor_thread_of(thread)->envelopes[class]);
    if (LIKELY(e != NULL))
        arch_san_acquire(e);
    return e;
}

void envelope_unsend(struct thread *thread, struct envelope *e)
{
    int class = class_of(e->message.size);
    arch_san_release(e);
    if (LIKELY(class < ENVELOPE_CLASSES))
        slab_put(&actor_thread_of(thread)->envelopes[class], e);
    else
        free(e);
}

static const char *made_message(const struct hook *hook, char *buffer, size_t size)
{
    const strand_message_type *type = hook->object;
    snprintf(buffer, size, "the message is a '%s'", type->name);
    return buffer;
}

COLD void message_drop(const strand_message_type *type, void *body)
{
    struct hook hook HOOK = {
        .name = "strand_message_type.drop", .made = made_message, .object = (void *)(uintptr_t)type};
    hook_enter(&hook);
    type->drop(body);
    hook_over(&hook);
}

void envelope_free(struct thread *thread, struct envelope *e)
{
    if (UNLIKELY(e->message.type->drop != NULL) && e->message.body)
        message_drop(e->message.type, e->message.body);
    envelope_unsend(thread, e);
}

void envelopes_die(struct thread *thread, struct system *system, strand_actor to, struct envelope *first)
{
    while (first) {
        struct envelope *next = first->next;
        first->message.size &= ~ENVELOPE_EXTRA;
        if (system)
            event_stream_letter(thread, system, STRAND_ACTOR_DEAD_LETTER, to, &first->message);
        else
            event_stream_letter_to(thread, to, &first->message);
        if (is_promise(first->message.sender))
            promise_settle(thread, first->message.sender, -EPIPE);
        envelope_free(thread, first);
        first = next;
    }
}

/* Whether it is an actor, or perhaps a promise, of another run. */
static inline bool is_elsewhere(const struct thread *thread, strand_actor to)
{
    if (LIKELY(ref_is_ours(thread, to)))
        return false;
    return (to.bits[1] & MARK_ACTOR) || (is_promise(to) && !promise_is_ours(thread, to));
}

/* An actor that stops handles nothing more. The children of one that waits for their ends must not wait for its
 * answers. */
static bool is_refused(const struct activation *activation, const struct envelope *e)
{
    return (activation->flags & ACTIVATION_STOPPING) ||
           ((activation->flags & ACTIVATION_WAITS) && is_promise(e->message.sender));
}

/* Deliver to an actor of the run, or a promise. Returns 0, -EPIPE, -EBADMSG or -ENOMEM. Inlined into strand_tell. */
static inline __attribute__((always_inline)) int deliver(struct thread *thread, strand_actor to, struct envelope *e,
                                                         bool always)
{
    struct cell *cell = ref_cell(to);
    uint64_t word;
    if (UNLIKELY(!(to.bits[1] & MARK_ACTOR)))
        return is_promise(to) ? promise_answer(thread, to, e) : -EPIPE;
    if (UNLIKELY(!cell_lock(thread, cell, ref_serial(to), &word)))
        return -EPIPE;
    struct activation *activation = word & CELL_AWAKE ? word_activation(word) : cell_wake(thread, cell, &word);
    struct runner *r = NULL;
    bool fresh = false;
    if (UNLIKELY(!activation)) {
        cell_unlock(cell, word);
        return -ENOMEM;
    }
    strand_actor asker = {{0, 0}};
    if (UNLIKELY(activation->flags & (ACTIVATION_STOPPING | ACTIVATION_WAITS | ACTIVATION_UNDECIDED))) {
        if (is_refused(activation, e)) {
            cell_unlock(cell, word);
            return -EPIPE;
        }
        if (is_promise(e->message.sender) && awaits_decision(activation))
            asker = e->message.sender;
    }
    if (UNLIKELY(cell_type(cell)->most != UINT32_MAX)) {
        if (always || mailbox_is_own(thread, cell))
            e->message.size |= ENVELOPE_EXTRA;
        else if (activation->queued >= cell_type(cell)->most && !(activation->flags & ACTIVATION_WAITS))
            return mailbox_full(thread, to, word, e);
    }
    fresh = activation->flags & ACTIVATION_FRESH;
    mailbox_put(activation, e);
    r = activation_schedule(thread, activation);
    cell_unlock(cell, word);
    if (r)
        runners_go(thread, r, fresh);
    if (UNLIKELY(asker.bits[1]))
        deadlock_refuse(thread, to, asker);
    return 0;
}

static NOINLINE int deliver_called(struct thread *thread, strand_actor to, struct envelope *e, bool always)
{
    return deliver(thread, to, e, always);
}

/* Turn an undelivered message into a dead letter; or leave its content to the caller. */
static COLD void undelivered(struct thread *thread, strand_actor to, struct envelope *e, int error)
{
    if (!message_is_dead(error)) {
        envelope_unsend(thread, e);
        return;
    }
    struct runner *r = thread->current && !cell_is_there(thread, to) ? runner_self(thread) : NULL;
    e->next = NULL;
    envelopes_die(thread, r ? r->runners->system : NULL, to, e);
}

struct envelope *message_new(struct thread *thread, const strand_message_type *type, const void *body, size_t size)
{
    struct envelope *e = envelope_new(thread, size);
    if (!e)
        return NULL;
    e->message = (strand_message){.type = type, .body = e + 1, .size = size};
    memcpy(e + 1, body, size);
    return e;
}

int message_deliver(struct thread *thread, strand_actor to, struct envelope *e)
{
    return deliver_called(thread, to, e, true);
}

struct thread *message_insist(struct thread *thread, strand_actor to, struct envelope *e)
{
    int error;
    while ((error = deliver_called(thread, to, e, true)) == -ENOMEM)
        thread = runners_await_memory();
    if (error) {
        e->next = NULL;
        envelopes_die(thread, NULL, to, e);
    }
    return thread;
}

/* The asker that waits for this answer gets -ENOMEM: otherwise it would wait for ever. */
static COLD int no_memory(struct thread *thread, strand_actor to)
{
    promise_lacks(thread, to);
    return -ENOMEM;
}

static inline int send(struct thread *thread, strand_actor to, strand_actor sender, const strand_message_type *type,
                       const void *body, size_t size)
{
    must_not_escape_copied(thread, body, size, NULL, "the message", "strand_tell");
    struct envelope *e = envelope_new(thread, size);
    if (UNLIKELY(!e))
        return no_memory(thread, to);
    e->message = (strand_message){.type = type, .sender = sender, .body = e + 1, .size = size};
    memcpy(e + 1, body, size);
    int error;
    while (UNLIKELY((error = deliver(thread, to, e, false)) == -EINTR)) /* interrupted, but not any more */
        thread = thread_self();
    if (UNLIKELY(error))
        undelivered(thread_self(), to, e, error);
    return error;
}

int message_send_last(struct thread *thread, strand_actor to)
{
    struct envelope *e = envelope_new(thread, 0);
    if (!e)
        return -ENOMEM;
    e->message = (strand_message){.type = &message_last};
    int error = deliver_called(thread, to, e, true);
    if (error)
        envelope_unsend(thread, e);
    return error;
}

static strand_actor self_of(struct thread *thread)
{
    struct runner *r = runner_self(thread);
    return r ? r->self : (strand_actor){{0, 0}};
}

static strand_actor outside_self(struct thread *thread)
{
    return thread && thread->current ? self_of(thread) : (strand_actor){{0, 0}};
}

int strand_tell(strand_actor to, const strand_message_type *type, const void *body, size_t size)
{
    struct thread *thread = thread_self();
    message_must_be_whole(type, body, size, "strand_tell");
    if (UNLIKELY(!thread || !thread->current) || UNLIKELY(is_elsewhere(thread, to)))
        return foreign_send(to, outside_self(thread), type, body, NULL, size);
    return send(thread, to, self_of(thread), type, body, size);
}

int strand_tell_as(strand_actor to, strand_actor sender, const strand_message_type *type, const void *body, size_t size)
{
    struct thread *thread = thread_self();
    message_must_be_whole(type, body, size, "strand_tell_as");
    if (UNLIKELY(!thread || !thread->current) || UNLIKELY(is_elsewhere(thread, to)))
        return foreign_send(to, sender, type, body, NULL, size);
    return send(thread, to, sender, type, body, size);
}

int strand_reply(const strand_message *message, const strand_message_type *type, const void *body, size_t size)
{
    must_be_there(message, "message", "strand_reply");
    (void)must_be_strand("strand_reply");
    return strand_tell(message->sender, type, body, size);
}

int strand_actor_give(strand_actor to, const strand_message_type *type, void *body)
{
    struct thread *thread = thread_self();
    message_must_be_whole(type, body, 1, "strand_actor_give");
    if (UNLIKELY(!thread || !thread->current) || UNLIKELY(is_elsewhere(thread, to)))
        return foreign_send(to, outside_self(thread), type, NULL, body, 0);
    must_not_escape(thread, body, "the message", "strand_actor_give");
    struct envelope *e = envelope_new(thread, 0);
    int error;
    if (!e)
        return no_memory(thread, to);
    e->message = (strand_message){.type = type, .sender = self_of(thread), .body = body};
    while (UNLIKELY((error = deliver_called(thread, to, e, false)) == -EINTR))
        thread = thread_self();
    if (UNLIKELY(error))
        undelivered(thread_self(), to, e, error);
    return error;
}

/* ---- by the receiver --------------------------------------------------------------------------------------- */

struct runner *message_must_be_in_hand(struct thread *thread, const strand_message *message, const char *function)
{
    struct runner *r = runner_self(thread);
    if (UNLIKELY(!r || !r->in_hand || &r->in_hand->message != message))
        MISUSE(
            function, caller_made_actor(r, MADE_ROOM),
            "the message is not the one that the caller handles: it was forwarded or stashed before, or never was in "
            "hand");
    return r;
}

static COLD int pass_outside(strand_message *message, strand_actor to)
{
    const struct envelope *e = CONTAINER(message, struct envelope, message);
    void *given = message->body == e + 1 ? NULL : message->body;
    if (is_promise(message->sender)) /* no receiver there can answer it */
        return -EREMOTE;
    int error = foreign_send(to, message->sender, message->type, message->body, given, message->size);
    if (!error || error == -EPIPE)
        message->body = NULL; /* what it owns was sent, or dropped */
    return error;
}

int message_pass(struct runner *r, strand_actor to)
{
    struct envelope *e = r->in_hand; /* stays in hand until it has been sent: waiting for room can be interrupted */
    int error;
    do
        error = deliver_called(thread_self(), to, e, false);
    while (UNLIKELY(error == -EINTR));
    if (LIKELY(!error))
        r->in_hand = NULL;
    return error;
}

void message_put_back(struct runner *r)
{
    struct envelope *e = r->in_hand;
    r->in_hand = NULL;
    e->next = r->activation->batch;
    r->activation->batch = e;
}

int strand_message_forward(strand_message *message, strand_actor to)
{
    struct thread *thread = must_be_strand("strand_message_forward");
    struct runner *r = message_must_be_in_hand(thread, message, "strand_message_forward");
    if (UNLIKELY(!message->body))
        MISUSE("strand_message_forward", caller_made_actor(r, MADE_ROOM),
               "the message's body has been taken: send it in a message of its own (strand_actor_give)");
    if (UNLIKELY(is_elsewhere(thread, to)))
        return pass_outside(message, to);
    struct envelope *e = r->in_hand;
    int error = message_pass(r, to);
    if (UNLIKELY(message_is_dead(error))) {
        r->in_hand = NULL;
        undelivered(thread_self(), to, e, error);
    }
    return error;
}

void *strand_message_take(strand_message *message)
{
    (void)message_must_be_in_hand(must_be_strand("strand_message_take"), message, "strand_message_take");
    void *body = message->body;
    message->body = NULL;
    return body;
}
