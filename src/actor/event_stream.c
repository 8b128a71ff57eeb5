/*
 * The stream of events of a system. See event_stream.h.
 */
#include "event_stream.h"

#include "cell.h"
#include "message.h"
#include "optional.h"
#include "registry.h"

#include "../strand/exception.h"
#include "../strand/log.h"
#include "../strand/misuse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void drop_published(void *body)
{
    strand_exception_release(((strand_published *)body)->why);
}

const strand_message_type strand_published_message = STRAND_MESSAGE_TYPE_("strand_published", drop_published);

struct subscriber {
    struct index_node by_actor;
    struct subscriber *gone; /* in a list of forgotten ones */
    strand_actor actor;
    uint32_t kinds;
};

enum { SUBSCRIBERS_FEW = 8 };

/* ---- subscribers -------------------------------------------------------------------------------------------- */

static struct subscriber *subscriber_at(struct index_node *node)
{
    return node ? CONTAINER(node, struct subscriber, by_actor) : NULL;
}

/* Under the lock. */
static void set_kinds(struct system *system, struct subscriber *s, uint32_t kinds)
{
    uint32_t all = 0;
    for (int i = 0; i < EVENTS; i++) {
        system->subscribers_of[i] += (kinds >> i & 1) - (s->kinds >> i & 1);
        all |= (uint32_t)(system->subscribers_of[i] > 0) << i;
    }
    s->kinds = kinds;
    atomic_store_explicit(&system->subscribed, all, memory_order_relaxed);
}

/* Under the lock; the memory is freed after it. */
static void forget(struct system *system, struct subscriber *s, struct subscriber **gone)
{
    set_kinds(system, s, 0);
    index_remove(&system->subscribers, &s->by_actor);
    system->subscribers_count--;
    s->gone = *gone;
    *gone = s;
}

static void give_back(struct subscriber *gone)
{
    for (struct subscriber *next; gone; gone = next) {
        next = gone->gone;
        free(gone);
    }
}

/* Under the lock: forget subscribers that have ended. Called when there are twice as many as after the last time. */
static void forget_ended(struct thread *thread, struct system *system, struct subscriber **gone)
{
    for (struct index_node *at = index_first(&system->subscribers), *next; at; at = next) {
        next = index_next(at);
        if (!cell_is_there(thread, subscriber_at(at)->actor))
            forget(system, subscriber_at(at), gone);
    }
    system->subscribers_most = 2 * system->subscribers_count + SUBSCRIBERS_FEW;
}

/* Only a living actor of this run is entered: the memory of any other may be in use for anything by now, and messages
 * must not go there. A cell of this run stays one. */
int strand_actors_subscribe(strand_actors handle, strand_actor actor, strand_actor_events kinds)
{
    struct thread *thread = must_be_strand("strand_actors_subscribe");
    struct system *system = registry_find(thread, handle, "strand_actors_subscribe");
    bool there = cell_is_there(thread, actor);
    kinds = there ? kinds & ((1u << EVENTS) - 1) : 0;
    struct subscriber *mine = kinds ? platform_malloc(thread, sizeof *mine) : NULL;
    if (kinds && !mine)
        return -ENOMEM;
    struct subscriber *gone = NULL;
    spin_lock(&system->events_lock, thread);
    if (system->subscribers_count >= system->subscribers_most)
        forget_ended(thread, system, &gone);
    struct subscriber *s = subscriber_at(index_find(&system->subscribers, actor.bits[1]));
    if (!s && kinds) {
        s = mine;
        mine = NULL;
        *s = (struct subscriber){.actor = actor};
        index_add(&system->subscribers, &s->by_actor, actor.bits[1]);
        system->subscribers_count++;
    }
    if (kinds)
        set_kinds(system, s, kinds);
    else if (s)
        forget(system, s, &gone);
    spin_unlock(&system->events_lock);
    give_back(gone);
    free(mine);
    return there ? 0 : -ESRCH;
}

void event_stream_close(struct system *system)
{
    struct subscriber *gone = NULL;
    for (struct index_node *first; (first = index_first(&system->subscribers));)
        forget(system, subscriber_at(first), &gone);
    give_back(gone);
}

/* ---- publishing --------------------------------------------------------------------------------------------- */

enum { AT_ONCE = 16, LOGGED_MOST = 10 };

/* Describe an actor that does not end meanwhile. */
static void describe(strand_published *event, const struct cell *cell)
{
    snprintf(event->class_name, sizeof event->class_name, "%s", cell_type(cell)->label);
    cell_path_end(cell, event->path, sizeof event->path);
}

/* Describe any actor, if it has not ended. */
static void describe_other(struct thread *thread, strand_published *event)
{
    struct cell *cell = ref_cell(event->actor);
    uint64_t word;
    if (!ref_is_ours(thread, event->actor) || !cell_lock(thread, cell, ref_serial(event->actor), &word))
        return;
    describe(event, cell);
    cell_unlock(cell, word);
}

static int send_event(struct thread *thread, strand_actor to, const strand_published *event)
{
    struct envelope *e = message_new(thread, &strand_published_message, event, sizeof *event);
    if (!e)
        return -ENOMEM;
    if (event->why)
        strand_exception_keep(event->why);
    int error = message_deliver(thread, to, e);
    if (error)
        envelope_free(thread, e);
    return error;
}

/* No actor gets notice of its own failure, which would cause the next one. Messages are sent after the lock is
 * released; sending to a full mailbox does not wait. */
bool event_stream_publish(struct thread *thread, struct system *system, const strand_published *event)
{
    bool sent = false, lost = false;
    strand_actor to[AT_ONCE];
    uint64_t last = 0; /* the number of the last subscriber visited */
    size_t count;
    do {
        count = 0;
        spin_lock(&system->events_lock, thread);
        struct index_node *at = index_after(&system->subscribers, last);
        for (; at && count < AT_ONCE; at = index_next(at)) {
            last = at->key;
            if (subscriber_at(at)->kinds & event->kind)
                to[count++] = subscriber_at(at)->actor;
        }
        spin_unlock(&system->events_lock);
        for (size_t i = 0; i < count; i++) {
            bool own = event->kind == STRAND_ACTOR_FAILURE && to[i].bits[1] == event->actor.bits[1];
            int error = own ? -EPIPE : send_event(thread, to[i], event);
            sent |= !error;
            lost |= error == -ENOMEM;
        }
    } while (count == AT_ONCE);
    return sent && !lost;
}

/* Count a dead letter without a subscriber. */
static void count_letter(struct system *system, strand_actor to, const strand_message *message)
{
    if (atomic_fetch_add_explicit(&system->letters, 1, memory_order_relaxed))
        return;
    if (to.bits[1])
        snprintf(system->first_letter, sizeof system->first_letter, "a '%s' to actor $%llu", message->type->name,
                 (unsigned long long)(to.bits[1] & ~(MARK_ACTOR | MARK_PROMISE)));
    else
        snprintf(system->first_letter, sizeof system->first_letter, "a '%s' without a receiver", message->type->name);
}

void event_stream_summarize(struct system *system)
{
    char text[320];
    uint64_t letters = atomic_load_explicit(&system->letters, memory_order_relaxed);
    if (system->unlogged) {
        snprintf(text, sizeof text, "the system of actors '%s' has ended, with %llu failure%s more than were logged",
                 system->name, (unsigned long long)system->unlogged, system->unlogged == 1 ? "" : "s");
        log_text(system->runtime, text);
    }
    if (!letters)
        return;
    snprintf(text, sizeof text,
             "the system of actors '%s' has ended with %llu dead letter%s that no subscriber received; the first: %s",
             system->name, (unsigned long long)letters, letters == 1 ? "" : "s", system->first_letter);
    log_text(system->runtime, text);
}

void event_stream_receive_(struct thread *thread, struct runner *r, const strand_message *message)
{
    struct system *system = r->runners->system;
    if (!event_stream_wanted(system, STRAND_ACTOR_RECEIVE) || message->type == &strand_published_message)
        return;
    strand_published event = {.kind = STRAND_ACTOR_RECEIVE,
                              .unhandled = r->unhandled,
                              .actor = r->self,
                              .sender = message->sender,
                              .type = message->type};
    describe(&event, r->cell);
    (void)event_stream_publish(thread, system, &event);
}

/* Whether one more may go to the log: ten in a second. */
static bool may_log(struct thread *thread, struct system *system)
{
    spin_lock(&system->events_lock, thread);
    if (thread->now - system->logged_since >= STRAND_S) {
        system->logged_since = thread->now;
        system->logged = 0;
    }
    bool may = system->logged++ < LOGGED_MOST;
    system->unlogged += !may;
    spin_unlock(&system->events_lock);
    return may;
}

void event_stream_letter(struct thread *thread, struct system *system, enum strand_actor_event kind, strand_actor to,
                         const strand_message *message)
{
    if (message->type == &strand_published_message || message->type == &strand_terminated_message ||
        message->type == &message_last)
        return;
    strand_published event = {.kind = kind, .actor = to, .type = message->type};
    bool published = false;
    if (event_stream_wanted(system, kind)) {
        event.sender = message_sender(message);
        describe_other(thread, &event);
        published = event_stream_publish(thread, system, &event);
    }
    if (!published && kind == STRAND_ACTOR_DEAD_LETTER)
        count_letter(system, to, message);
}

void event_stream_unhandled(struct thread *thread, struct runner *r, const strand_message *message)
{
    r->unhandled = true;
    event_stream_letter(thread, r->runners->system, STRAND_ACTOR_UNHANDLED, r->self, message);
}

/* Returns NULL if it has ended. Under the lock of all systems, which keeps its system from ending. */
static struct system *system_of_actor(struct thread *thread, strand_actor actor)
{
    struct cell *cell = ref_cell(actor);
    uint64_t word;
    if (!ref_is_ours(thread, actor) || !cell_lock(thread, cell, ref_serial(actor), &word))
        return NULL;
    struct system *system = cell_type(cell)->system;
    cell_unlock(cell, word);
    return system;
}

void event_stream_letter_to(struct thread *thread, strand_actor to, const strand_message *message)
{
    struct actor_run *run = actor_run_of(thread);
    spin_lock(&run->lock, thread);
    struct system *system = system_of_actor(thread, to);
    if (!system)
        system = run->systems;
    if (system)
        event_stream_letter(thread, system, STRAND_ACTOR_DEAD_LETTER, to, message);
    spin_unlock(&run->lock);
}

void event_stream_log(const struct runner *r, const char *what, const strand_exception *why)
{
    char path[128], text[400];
    const struct cell_type *type = r->activation ? cell_type(r->cell) : NULL; /* otherwise it is gone */
    if (type)
        cell_path_end(r->cell, path, sizeof path);
    snprintf(text, sizeof text, "actor %s of class '%s' %s", type ? path : "that has ended,",
             type ? type->label : r->label.name, what);
    log_exception(r->runners->system->runtime, text, why);
}

void event_stream_failure(struct thread *thread, const struct runner *r, const char *what, strand_exception *why)
{
    struct system *system = r->runners->system;
    bool published = false;
    if (event_stream_wanted(system, STRAND_ACTOR_FAILURE)) {
        strand_published event = {.kind = STRAND_ACTOR_FAILURE, .actor = r->self, .why = why};
        if (r->activation)
            describe(&event, r->cell);
        published = event_stream_publish(thread, system, &event);
    }
    if (!published && may_log(thread, system))
        event_stream_log(r, what, why);
}

strand_published event_stream_of(const struct runner *r, enum strand_actor_event kind)
{
    strand_published event = {.kind = kind, .actor = r->self};
    describe(&event, r->cell);
    return event;
}
