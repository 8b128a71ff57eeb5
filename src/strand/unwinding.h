/*
 * Which strands of a run unwind, since when: kept for a watchdog, and only in runs that have one.
 *
 * PARTIES   a strand, from its throw until that lands, whatever it does meanwhile: its clean-ups run, and may block
 *           for long; the watchdog, which looks.
 * STATE     runtime.unwindings: the strands that unwind and that the watchdog has not reported, the first that
 *           began in front. One of several exceptions in flight stands there for its strand: the outermost.
 * OWNERSHIP the list, and `told`, are whoever's holds the lock. A strand whose unwinding stands in the list, or is
 *           told of, does not end as long as the lock is held: it has to take it to land. So its control block, its
 *           name and its stack can be read.
 * ORDERING  who rests has entered what it has thrown: the watchdog looks at the list after it has seen that all
 *           rest ([WD2] of src/debug/watchdog.h).
 * NOT DONE  a look at all strands now and then: there may be a million of them. A record at each wait: those are
 *           many, and throws are few.
 * TESTED BY tests/models/watchdog.pml, tests/spec/watchdog.c.
 */
#ifndef STRAND_UNWINDING_H
#define STRAND_UNWINDING_H

#include "../base/atomic.h"
#include "../base/list.h"

struct cb;
struct runtime;

/* Of the outermost exception that is in flight; in its record. */
struct unwinding {
    struct link link;        /* in runtime.unwindings */
    struct unwinding **told; /* the watchdog's record of it, which is emptied when it is over; NULL: none */
    struct cb *c;            /* NULL: nobody is to be told of this one */
    int64_t since;
};

struct unwindings {
    bool kept; /* there is a watchdog: set before the run has a strand */
    atomic_flag lock;
    struct link all;
};

void unwinding_begins_(struct cb *me, struct unwinding *unwinding);
void unwinding_ends_(struct unwinding *unwinding);

#endif
