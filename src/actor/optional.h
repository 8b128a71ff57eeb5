/*
 * What only few actors have: names, watchers, behaviours, stashed messages. The protocol block is in actor.h.
 */
#ifndef ACTOR_OPTIONAL_H
#define ACTOR_OPTIONAL_H

#include "actor.h"

enum { NAME_MOST = 63 };

/* Get or make the `struct optional` of a cell that is not published yet, or in a turn of it. NULL: no memory. */
struct optional *optional_of(struct thread *thread, struct cell *cell);
/* Name a cell that is being made. Returns 0; -ENOMEM; -EINVAL: not a valid name; -EEXIST: a sibling has it. */
int optional_name(struct thread *thread, struct cell *cell, const char *name);
/* Remove the name of an actor that is about to end, so that it can be reused before watchers are notified. */
void optional_unname(struct thread *thread, struct cell *cell);
/* As optional_of, under the lock of any cell. NULL: no memory. */
struct optional *optional_under_lock(struct thread *thread, struct cell *cell);

/* ---- behaviours (behaviour.c) ------------------------------------------------------------------------------ */

struct behaviours {
    struct behaviours *below;
    strand_behaviour *receive;
};
static inline strand_behaviour *behaviour_of(const struct cell *cell)
{
    const struct optional *optional = cell_optional(cell);
    return optional && optional->behaviours ? optional->behaviours->receive : cell_type(cell)->receive;
}
void behaviours_drop(struct optional *optional);

/* ---- watching (watch.c) ------------------------------------------------------------------------------------ */

/* A receiver of the notice of an actor's end: an actor (struct watcher), or a promise, which contains it. */
struct watch {
    struct link link; /* in the watched actor's list of watchers, or of askers */
    strand_actor who;
    _Atomic bool linked; /* in that list */
    bool asks;           /* it waits for an answer, which may come before the end */
};

/* Link a watch. Returns 0; -ESRCH: the actor has ended; -ENOMEM. */
int watch_link(struct thread *thread, strand_actor actor, struct watch *watch);
/* Unlink a watch. Afterwards nothing refers to it. */
void watch_unlink(struct thread *thread, strand_actor actor, struct watch *watch);
/* In the actor's own turn: notify all askers that there will be no answer. */
void watch_answer_none(struct thread *thread, struct cell *cell);
/* Notify the watchers of an actor that has ended, once each, waiting for memory if necessary. Returns the thread that
 * the caller resumes on. */
struct thread *watch_notify_watchers(struct thread *thread, struct link *watchers);
/* Likewise, for askers. */
void watch_notify_askers(struct thread *thread, struct link *askers);
/* Free the watches of a watching actor that has ended. */
void watch_forget(struct thread *thread, struct tree *watching);
/* Whether the actor expects a notice that has come. If so, it no longer watches, and the notice becomes an ordinary
 * message. */
bool watch_expects(struct cell *cell, strand_message *notice);

/* Under the lock of the cell, or of one below it; or while all threads are held. As strand_actor_path. */
size_t cell_path(const struct cell *cell, char *text, size_t room);
/* Likewise, but a path that is too long is cut at its beginning, and starts with "...". O(room), however deep it is. */
void cell_path_end(const struct cell *cell, char *text, size_t room);

/* ---- restarts (supervise.c) -------------------------------------------------------------------------------- */

/* As in strand_actor_class. */
struct limits {
    unsigned max_restarts;
    int64_t restarts_within_ns, backoff_ns, max_backoff_ns;
};

struct restarts {
    struct index_node by_child;
    strand_actor child;
    unsigned count; /* restarts since then */
    int64_t since;
    unsigned tries; /* restarts without a long time up in between */
    int64_t up;     /* up since then */
};
void restarts_drop(struct optional *optional);

#endif
