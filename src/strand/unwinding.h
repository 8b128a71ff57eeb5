/*
 * The strands of a run that unwind, and since when: for the watchdog, and only in runs that have one.
 *
 * PARTIES   a strand from its throw to the catch, while its clean-ups run, which may block for long; the watchdog.
 * STATE     runtime.unwindings: the strands that unwind and that the watchdog has not reported, in the order in which
 *           they began. A strand with several exceptions in flight is listed once, by the outermost.
 * OWNERSHIP the list and `watchdog_ref` belong to the holder of the lock. A strand takes the lock when its exception is
 *           caught. So while the lock is held, a strand that is in the list, or whose `watchdog_ref` is set, does not
 *           end, and its control block, its name and its stack can be read.
 * ORDERING  a parked thread has entered the throws of its strands in the list. The watchdog reads the list after it
 *           has seen that all threads are parked ([WD2] of src/debug/watchdog.h).
 * NOT DONE  examining all strands from time to time: there may be a million. A record at each wait: waits are many,
 *           throws are few.
 * TESTED BY tests/models/watchdog.pml, tests/spec/watchdog.c.
 */
#ifndef STRAND_UNWINDING_H
#define STRAND_UNWINDING_H

#include "../base/atomic.h"
#include "../base/list.h"

struct cb;
struct runtime;

/* Lies in the flight of a strand's outermost exception. */
struct unwinding {
    struct link link;                /* in runtime.unwindings */
    struct unwinding **watchdog_ref; /* the watchdog's pointer to this, cleared when the unwinding is over; or NULL */
    struct cb *c;                    /* NULL: not recorded */
    int64_t since;
};

struct unwindings {
    bool kept; /* the run has a watchdog; set before it has a strand */
    atomic_flag lock;
    struct link all;
};

void unwinding_begins_(struct cb *me, struct unwinding *unwinding);
void unwinding_ends_(struct unwinding *unwinding);

#endif
