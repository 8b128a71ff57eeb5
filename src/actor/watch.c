/*
 * Watching: who is told that an actor has ended, once. The protocol block is in actor.h.
 */
#include "cell.h"
#include "message.h"
#include "more.h"
#include "outside.h"
#include "promise.h"

#include "../strand/misuse.h"

#include <errno.h>
#include <stdlib.h>

const strand_message_type strand_terminated_message = {"strand_terminated", NULL};

/* ---- the list of those who watch an actor: under its lock -------------------------------------------------- */

int watch_link(struct thread *thread, strand_actor actor, struct watch *watch)
{
    struct cell *cell = ref_cell(actor);
    uint64_t word;
    if (!ref_is_ours(thread, actor) || !cell_lock(thread, cell, ref_serial(actor), &word))
        return -ESRCH;
    struct more *more = more_under_lock(thread, cell);
    if (more) {
        watch->next = more->watchers;
        more->watchers = watch;
        atomic_store_explicit(&watch->linked, true, memory_order_relaxed);
    }
    cell_unlock(cell, word);
    return more ? 0 : -ENOMEM;
}

/* The one at that address, or if that is NULL, of that watcher. */
static struct watch *cut_out(struct thread *thread, strand_actor actor, const struct watch *watch, strand_actor who)
{
    struct cell *cell = ref_cell(actor);
    uint64_t word;
    if (!ref_is_ours(thread, actor) || !cell_lock(thread, cell, ref_serial(actor), &word))
        return NULL;
    struct watch **at = &cell_more(cell)->watchers, *found;
    while (*at && (watch ? *at != watch : (*at)->who.bits[1] != who.bits[1]))
        at = &(*at)->next;
    found = *at;
    if (found) {
        *at = found->next;
        atomic_store_explicit(&found->linked, false, memory_order_relaxed);
    }
    cell_unlock(cell, word);
    return found;
}

void watch_unlink(struct thread *thread, strand_actor actor, struct watch *watch)
{
    (void)cut_out(thread, actor, watch, (strand_actor){{0, 0}});
    while (atomic_load_explicit(&watch->linked, memory_order_acquire)) /* the actor is just telling */
        driver_await(thread);
}

/* ---- the end ----------------------------------------------------------------------------------------------- */

/* The first that came first. */
static struct watch *reversed(struct watch *newest)
{
    struct watch *ordered = NULL;
    for (struct watch *watch = newest, *next; watch; watch = next) {
        next = watch->next;
        watch->next = ordered;
        ordered = watch;
    }
    return ordered;
}

/* Promises first, without waiting for memory in between: who takes one back waits until it has been told. */
struct thread *watch_tell(struct thread *thread, struct watch *watchers)
{
    struct watch *actors = NULL, **last = &actors;
    for (struct watch *watch = reversed(watchers), *next; watch; watch = next) {
        next = watch->next;
        strand_actor who = watch->who;
        if (!is_promise(who)) {
            *last = watch;
            last = &watch->next;
            continue;
        }
        atomic_store_explicit(&watch->linked, false, memory_order_release); /* from here on it may be gone */
        promise_settle(thread, who, -EPIPE);
    }
    *last = NULL;
    for (struct watch *watch = actors, *next; watch; watch = next) {
        next = watch->next;
        thread = message_insist(thread, watch->who, watch->notice);
        free(watch);
    }
    return thread;
}

void watch_answer_none(struct thread *thread, struct cell *cell)
{
    struct more *more = cell_more(cell);
    if (!more)
        return;
    struct watch *asking = NULL;
    uint64_t word = cell_lock_living(thread, cell);
    for (struct watch **at = &more->watchers, *watch; (watch = *at);) {
        if (!watch->asks) {
            at = &watch->next;
            continue;
        }
        *at = watch->next;
        watch->next = asking;
        asking = watch;
    }
    cell_unlock(cell, word);
    for (struct watch *next; asking; asking = next) {
        next = asking->next;
        strand_actor who = asking->who;
        atomic_store_explicit(&asking->linked, false, memory_order_release); /* from here on it may be gone */
        promise_settle(thread, who, -EPIPE);
    }
}

static void give_up(struct thread *thread, strand_actor watched, strand_actor who)
{
    struct watch *theirs = cut_out(thread, watched, NULL, who);
    if (!theirs)
        return; /* the notice is on its way, and comes to nobody who expects it */
    envelope_free(thread, theirs->notice);
    free(theirs);
}

void watch_forget(struct thread *thread, struct watch *watching, strand_actor who)
{
    for (struct watch *watch = watching, *next; watch; watch = next) {
        next = watch->next;
        give_up(thread, watch->who, who);
        free(watch);
    }
}

/* ---- by the actor that watches ----------------------------------------------------------------------------- */

static struct watch **find(struct more *more, strand_actor actor)
{
    struct watch **at = &more->watching;
    while (*at && (*at)->who.bits[1] != actor.bits[1])
        at = &(*at)->next;
    return at;
}

bool watch_expects(struct cell *cell, strand_message *notice)
{
    struct more *more = cell_more(cell);
    struct watch **at = more ? find(more, ((const strand_terminated *)notice->body)->who) : NULL, *mine;
    if (!at || !(mine = *at))
        return false;
    *at = mine->next;
    free(mine);
    notice->sender = (strand_actor){{0, 0}}; /* from now on a message as any other: it may be put aside, too */
    return true;
}

int strand_watch(strand_actor actor)
{
    struct thread *thread = must_be_strand("strand_watch");
    struct runner *r = must_be_actor(thread, "strand_watch");
    if (UNLIKELY(outside_is(thread, actor)))
        return -EREMOTE;
    struct more *more = more_of(thread, r->cell);
    if (more && *find(more, actor))
        return 0;
    struct watch *mine = more ? driver_malloc(thread, sizeof *mine) : NULL,
                 *theirs = mine ? driver_malloc(thread, sizeof *theirs) : NULL;
    struct envelope *notice =
        theirs ? message_new(thread, &strand_terminated_message, &(strand_terminated){actor}, sizeof(strand_terminated))
               : NULL;
    if (!notice) {
        free(mine);
        free(theirs);
        return -ENOMEM;
    }
    notice->message.sender = (strand_actor){{NOTICE, 0}};
    *mine = (struct watch){.next = more->watching, .who = actor};
    *theirs = (struct watch){.who = r->self, .notice = notice};
    more->watching = mine;
    int error = watch_link(thread, actor, theirs);
    if (!error)
        return 0;
    free(theirs);
    if (error == -ESRCH)
        (void)message_insist(thread, r->self, notice); /* at once; it is awake: this takes no memory */
    else
        envelope_free(thread, notice);
    if (error != -ESRCH) {
        more->watching = mine->next;
        free(mine);
        return error;
    }
    return 0;
}

void strand_unwatch(strand_actor actor)
{
    struct thread *thread = must_be_strand("strand_unwatch");
    struct runner *r = must_be_actor(thread, "strand_unwatch");
    struct more *more = cell_more(r->cell);
    struct watch **at = more ? find(more, actor) : NULL, *mine;
    if (!at || !(mine = *at))
        return;
    *at = mine->next;
    free(mine);
    give_up(thread, actor, r->self);
}
