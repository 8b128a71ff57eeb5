/*
 * Holds a run, as far as possible, for an inspection, and lists its strands. Shared by dumps, the wait-for graph and
 * the report of what keeps a run busy. Page: docs/protocols/dump.md.
 */
#ifndef DEBUG_STOPPED_RUN_H
#define DEBUG_STOPPED_RUN_H

#include "inspect.h"

/* Begin an inspection of the run. One thread inspects a run at a time: others wait, and are held for it meanwhile.
 * Returns 0, or -EBUSY: this thread inspects it already, and a handler has interrupted that. */
int stopped_run_begin(struct thread *thread);
void stopped_run_end(struct thread *thread);

/* Hold all other threads of the run. view->loose is set if some can't be held; these are then asked for what they run,
 * with signals if they are allowed. Returns false if the strands can't be read. stopped_run_let_go follows in either
 * case. Between the two nothing is written to a descriptor or allocated by malloc. */
bool stopped_run_hold(struct view *view, bool signals);
void stopped_run_let_go(struct thread *thread);

/* From a thread that belongs to no run: call fn for all runs, the newest first, with a record of a thread. Returns the
 * first result of fn that is not 0; -EOPNOTSUPP: a seeded run, which is left out; -ESRCH: there is none. */
int stopped_run_each_run(int (*fn)(struct thread *thread, void *arg), void *arg);

/* ---- the roll: all strands --------------------------------------------------------------------------------- */

struct entry {
    struct cb *c;
    uint64_t id, owner; /* owner: id of its anchor's owner; 0 for the root */
};

struct roll {
    struct entry *entries; /* sorted by owner, then by id */
    void *beside;          /* `each` zero bytes for every entry, and once more; for `room` entries */
    size_t count, over;    /* over: how many have ended, and were not consumed */
    size_t left_out;       /* how many had no room */
    size_t each, room, size;
};

/* Roughly how many strands there are now. */
size_t roll_estimate(struct runtime *runtime);
/* Allocate room for all current strands, and some more. Before threads are held. Returns 0 or a negated errno code. */
int roll_open(struct roll *roll, struct runtime *runtime, size_t each);
/* Fill the roll, while the others are held; `beside` may move. */
void roll_call(struct roll *roll, struct runtime *runtime);
void roll_close(struct roll *roll);
/* The first entry with this owner, or its position if there is none. */
size_t roll_first_of(const struct roll *roll, uint64_t owner);

/* ---- without memory ----------------------------------------------------------------------------------------- */

/* List the strands, one by one, while they run: no thread is held, since a slow reader would hold it up. logs: to the
 * log, instead of the descriptor. Returns 0 or a negated errno code; -ENOMEM: from outside, for a run of one thread. */
int list_plainly(struct thread *thread, int fd, bool logs, const char *instead_of);

#endif
