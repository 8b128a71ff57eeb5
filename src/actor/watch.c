/*
 * Watching: notices of an actor's end, one for each watcher. The protocol block is in actor.h.
 */
#include "cell.h"
#include "foreign.h"
#include "message.h"
#include "optional.h"
#include "promise.h"

#include "../strand/misuse.h"

#include <errno.h>
#include <stdlib.h>

const strand_message_type strand_terminated_message = STRAND_MESSAGE_TYPE_("strand_terminated", NULL);

/* An actor that watches, in the list of the watched actor. */
struct watcher {
    struct watch watch;
    struct envelope *notice; /* allocated in advance, so that the watched actor's end needs no memory */
};

/* The watching actor's record of a watched one, by number. `theirs` is valid until the watched actor ends. */
struct watched {
    struct index_node by_who;
    strand_actor who;
    struct watcher *theirs;
};

/* ---- the watchers of an actor: under its lock --------------------------------------------------------------- */

int watch_link(struct thread *thread, strand_actor actor, struct watch *watch)
{
    struct cell *cell = ref_cell(actor);
    uint64_t word;
    if (!ref_is_ours(thread, actor) || !cell_lock(thread, cell, ref_serial(actor), &word))
        return -ESRCH;
    struct optional *optional = optional_under_lock(thread, cell);
    if (optional) {
        list_push_back(watch->asks ? &optional->askers : &optional->watchers, &watch->link);
        atomic_store_explicit(&watch->linked, true, memory_order_relaxed);
    }
    cell_unlock(cell, word);
    return optional ? 0 : -ENOMEM;
}

/* Returns false if the actor has ended, and notifies or has notified and freed its watchers; or if it notifies its
 * askers. */
static bool cut_out(struct thread *thread, strand_actor actor, struct watch *watch)
{
    struct cell *cell = ref_cell(actor);
    uint64_t word;
    if (!ref_is_ours(thread, actor) || !cell_lock(thread, cell, ref_serial(actor), &word))
        return false;
    bool found = watch->link.next;
    if (found) {
        list_remove(&watch->link);
        atomic_store_explicit(&watch->linked, false, memory_order_relaxed);
    }
    cell_unlock(cell, word);
    return found;
}

void watch_unlink(struct thread *thread, strand_actor actor, struct watch *watch)
{
    (void)cut_out(thread, actor, watch);
    while (atomic_load_explicit(&watch->linked, memory_order_acquire)) /* the actor is just notifying [A9] */
        platform_await(thread);
}

/* ---- the end ----------------------------------------------------------------------------------------------- */

static struct watch *pop(struct link *list)
{
    struct link *first = list_pop_front(list);
    return first ? CONTAINER(first, struct watch, link) : NULL;
}

/* Notify a promise: watch_unlink waits until `linked` is cleared. */
static void notify_promise(struct thread *thread, struct watch *watch)
{
    strand_actor who = watch->who;
    atomic_store_explicit(&watch->linked, false, memory_order_release); /* from here on it may be gone [A9] */
    promise_settle(thread, who, -EPIPE);
}

void watch_notify_askers(struct thread *thread, struct link *askers)
{
    for (struct watch *watch; (watch = pop(askers));)
        notify_promise(thread, watch);
}

/* Notify promises first, without waiting for memory in between. FIFO. */
struct thread *watch_notify_watchers(struct thread *thread, struct link *watchers)
{
    struct link actors;
    list_init(&actors);
    for (struct watch *watch; (watch = pop(watchers));)
        if (is_promise(watch->who))
            notify_promise(thread, watch);
        else
            list_push_back(&actors, &watch->link);
    for (struct watch *watch; (watch = pop(&actors));) {
        struct watcher *watcher = CONTAINER(watch, struct watcher, watch);
        thread = message_insist(thread, watch->who, watcher->notice);
        free(watcher);
    }
    return thread;
}

/* Each is taken out under the lock: it may be unlinked meanwhile. */
void watch_answer_none(struct thread *thread, struct cell *cell)
{
    struct optional *optional = cell_optional(cell);
    struct watch *watch = NULL;
    if (!optional)
        return;
    do {
        uint64_t word = cell_lock_living(thread, cell);
        watch = pop(&optional->askers);
        cell_unlock(cell, word);
        if (watch)
            notify_promise(thread, watch);
    } while (watch);
}

/* Stop watching. */
static void give_up(struct thread *thread, struct watched *watched)
{
    struct watcher *theirs = watched->theirs;
    bool found = cut_out(thread, watched->who, &theirs->watch);
    if (found) { /* otherwise the notice is under way, and will not be expected */
        envelope_free(thread, theirs->notice);
        free(theirs);
    }
    free(watched);
}

void watch_forget(struct thread *thread, struct tree *watching)
{
    for (struct index_node *first; (first = index_first(watching));) {
        index_remove(watching, first);
        give_up(thread, CONTAINER(first, struct watched, by_who));
    }
}

/* ---- in the watching actor's turn --------------------------------------------------------------------------- */

static struct watched *find(const struct optional *optional, strand_actor actor)
{
    struct index_node *found = index_find(&optional->watching, actor.bits[1]);
    return found ? CONTAINER(found, struct watched, by_who) : NULL;
}

bool watch_expects(struct cell *cell, strand_message *notice)
{
    struct optional *optional = cell_optional(cell);
    struct watched *mine = optional ? find(optional, ((const strand_terminated *)notice->body)->who) : NULL;
    if (!mine)
        return false;
    index_remove(&optional->watching, &mine->by_who);
    free(mine);
    notice->sender = (strand_actor){{0, 0}}; /* from now on an ordinary message: it can be stashed, too */
    return true;
}

int strand_actor_watch(strand_actor actor)
{
    struct thread *thread = must_be_strand("strand_actor_watch");
    struct runner *r = must_be_actor(thread, "strand_actor_watch");
    if (UNLIKELY(foreign_is(thread, actor)))
        return -EREMOTE;
    struct optional *optional = optional_of(thread, r->cell);
    if (optional && find(optional, actor))
        return 0;
    struct watched *mine = optional ? platform_malloc(thread, sizeof *mine) : NULL;
    struct watcher *theirs = mine ? platform_calloc(thread, 1, sizeof *theirs) : NULL;
    struct envelope *notice =
        theirs ? message_new(thread, &strand_terminated_message, &(strand_terminated){actor}, sizeof(strand_terminated))
               : NULL;
    if (!notice) {
        free(mine);
        free(theirs);
        return -ENOMEM;
    }
    notice->message.sender = (strand_actor){{NOTICE, 0}};
    theirs->watch.who = r->self;
    theirs->notice = notice;
    mine->who = actor;
    mine->theirs = theirs;
    index_add(&optional->watching, &mine->by_who, actor.bits[1]);
    int error = watch_link(thread, actor, &theirs->watch);
    if (!error)
        return 0;
    free(theirs);
    if (error == -ESRCH) {
        (void)message_insist(thread, r->self, notice); /* at once; the actor is awake: this takes no memory */
        return 0;
    }
    envelope_free(thread, notice);
    index_remove(&optional->watching, &mine->by_who);
    free(mine);
    return error;
}

void strand_actor_unwatch(strand_actor actor)
{
    struct thread *thread = must_be_strand("strand_actor_unwatch");
    struct runner *r = must_be_actor(thread, "strand_actor_unwatch");
    struct optional *optional = cell_optional(r->cell);
    struct watched *mine = optional ? find(optional, actor) : NULL;
    if (!mine)
        return;
    index_remove(&optional->watching, &mine->by_who);
    give_up(thread, mine);
}
