/*
 * What few actors have: names, watchers, behaviours, messages put aside. The protocol block is in actor.h.
 */
#ifndef ACTOR_MORE_H
#define ACTOR_MORE_H

#include "actor.h"

enum { NAME_MOST = 63 };

/* Of a cell that is not known yet, or in a turn of it: what there is more of it. NULL: no memory. */
struct more *more_of(struct thread *thread, struct cell *cell);
/* Of a cell that is being made. 0; -ENOMEM; -EINVAL: that can't be a name; -EEXIST: a sibling has it. */
int more_name(struct thread *thread, struct cell *cell, const char *name);
/* The actor is about to end: nobody finds it by its name, which others may have, before anybody is told. */
void more_unname(struct thread *thread, struct cell *cell);
/* It has ended: all is given back. */
void more_end(struct cell *cell);
/* Under the lock of any cell. NULL: no memory. */
struct more *more_under_lock(struct thread *thread, struct cell *cell);
/* It begins anew. */
void more_reset(struct runner *r);

/* ---- behaviours (behaviour.c) ------------------------------------------------------------------------------ */

struct behaviours {
    struct behaviours *below;
    strand_behaviour *receive;
};
static inline strand_behaviour *behaviour_of(const struct cell *cell)
{
    const struct more *more = cell_more(cell);
    return more && more->behaviours ? more->behaviours->receive : cell_kind(cell)->receive;
}
void behaviours_drop(struct more *more);
/* What was put aside comes next: in front of the batch, which is the turn's own. Room in the mailbox it takes no more.
 * Returns how many these are. */
size_t stash_return(struct runner *r);

/* ---- watching (watch.c) ------------------------------------------------------------------------------------ */

/* One receiver of the notice of an actor's end: an actor (struct watcher), or a promise, as one of its parts. */
struct watch {
    struct link link; /* in the watched one's list of watchers, or of those who ask */
    strand_actor who;
    _Atomic bool linked; /* in that list */
    bool asks;           /* for an answer, which may come before the end */
};

/* 0; -ESRCH: it has ended; -ENOMEM. */
int watch_link(struct thread *thread, strand_actor actor, struct watch *watch);
/* Afterwards nobody knows of it. */
void watch_unlink(struct thread *thread, strand_actor actor, struct watch *watch);
/* Who has asked it, and waits still, is told that there will be no answer. In its own turn. */
void watch_answer_none(struct thread *thread, struct cell *cell);
/* Who has watched one that has ended is told, once each, if need be when there is memory again. Returns the thread that
 * the caller goes on on. */
struct thread *watch_tell(struct thread *thread, struct link *watchers);
/* The same of those who ask. */
void watch_tell_askers(struct thread *thread, struct link *askers);
/* One that watches has ended itself. */
void watch_forget(struct thread *thread, struct tree *watching);
/* Whether a notice that comes is one that the actor waits for; it does not any more, and the notice is the actor's. */
bool watch_expects(struct cell *cell, strand_message *notice);

/* Under the lock of one below it, or of its own; or while all threads stand still. As strand_actor_path. */
size_t cell_path(const struct cell *cell, char *text, size_t room);
/* The same; but of a path that is too long there is the end, after "...". O(room), however deep it is. */
void cell_path_end(const struct cell *cell, char *text, size_t room);

/* ---- restarts (supervise.c) -------------------------------------------------------------------------------- */

/* As in strand_actor_class. */
struct limits {
    unsigned restarts_most;
    int64_t restarts_within, backoff, backoff_most;
};

struct restarts {
    struct index_node by_child;
    strand_actor child;
    unsigned count; /* since then */
    int64_t since;
    unsigned tries; /* without having been up for long */
    int64_t up;     /* since then it was */
};
void restarts_drop(struct more *more);

#endif
