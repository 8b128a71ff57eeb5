/*
 * A run that stands still, or as much of it as can be held, while somebody looks at it; and its strands, written down.
 * What dumps, the graph of waits and the report of what keeps a run busy have in common. Page: docs/protocols/dump.md.
 */
#ifndef DEBUG_STILL_H
#define DEBUG_STILL_H

#include "look.h"

/* One looks at a run at a time: others wait, and stand still for it meanwhile. Returns 0; -EBUSY: this thread does so
 * already, and a handler has interrupted it. */
int still_begin(struct thread *thread);
void still_end(struct thread *thread);

/* Hold all other threads of the run; look->loose if some can't be, and then what they run is asked for, with signals if
 * they are allowed. False: the strands can't be looked at. still_let_go in either case. Between the two nothing is
 * written to a descriptor, and no memory of malloc's taken. */
bool still_hold(struct look *look, bool signals);
void still_let_go(struct thread *thread);

/* From a thread that is none of any run's: of all runs, the newest first. fn gets a record of a thread. Returns what fn
 * returned first that is no 0; -EOPNOTSUPP: a seeded run, which is left out; -ESRCH: there is none. */
int still_each_run(int (*fn)(struct thread *thread, void *arg), void *arg);

/* ---- the roll: all strands --------------------------------------------------------------------------------- */

struct entry {
    struct cb *c;
    uint64_t id, owner; /* owner: of its anchor; 0 for the root */
};

struct roll {
    struct entry *entries; /* in the order of owners, then of ids */
    void *beside;          /* `each` zero bytes for every entry, and as many once more; of more than can come */
    size_t count, over;    /* over: of them have ended, and nobody has consumed them */
    size_t left_out;       /* of the others, for which there was no room */
    size_t each, room, size;
};

/* How many strands there are about now. */
size_t roll_estimate(struct runtime *runtime);
/* Room for all that there are now, and some more. Before anybody is held. Returns 0 or a negated errno code. */
int roll_open(struct roll *roll, struct runtime *runtime, size_t each);
/* Written down, while the others are held; beside may be elsewhere afterwards. */
void roll_call(struct roll *roll, struct runtime *runtime);
void roll_close(struct roll *roll);
/* The first entry with this owner, or where it would stand. */
size_t roll_first_of(const struct roll *roll, uint64_t owner);

/* ---- without memory ---------------------------------------------------------------------------------------- */

/* The strands, one by one, while they run: nobody is held, since a slow reader would hold them then. logs: to the log,
 * instead of the descriptor. Returns 0 or a negated errno code; -ENOMEM: from outside, of a run of one thread. */
int list_plainly(struct thread *thread, int fd, bool logs, const char *instead_of);

#endif
