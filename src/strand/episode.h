/*
 * Episodes: what strands of a run may do for too long while they are on no thread, and since when. There are two kinds:
 * strands that unwind, and keepers that stop a process (src/io/process.h). They are for the watchdog, and are listed
 * only in runs that have one.
 *
 * PARTIES   a strand from the beginning of its episode to the end, during which it may block for long; the watchdog.
 * STATE     a list for each kind: the episodes that the watchdog has not reported, in the order in which they began. A
 *           strand with several exceptions in flight is listed once, by the outermost.
 * OWNERSHIP a list and the `watchdog_ref` of its episodes belong to the holder of its lock. A strand takes the lock
 *           when its episode ends: when the exception is caught, when the process has been reaped. So while the lock is
 *           held, a strand whose episode is in the list, or has a `watchdog_ref`, does not end, and its control block,
 *           its name, its stack, and the record of its process can be read. The scope that it is anchored to does not
 *           end either ([C1] of scope.h); under the run's lock of hand-offs it is the same scope all the time.
 * ORDER OF LOCKS the lock of a list, then the run's lock of hand-offs.
 * ORDERING  a parked thread has listed the episodes of its strands. The watchdog reads the lists after it has seen that
 *           all threads are parked ([WD2] of src/debug/watchdog.h).
 * NOT DONE  examining all strands from time to time: there may be a million. A record at each wait: waits are many,
 *           episodes are few.
 * TESTED BY tests/models/watchdog.pml, tests/spec/watchdog.c, tests/spec/watchdog_processes.c.
 */
#ifndef STRAND_EPISODE_H
#define STRAND_EPISODE_H

#include "../base/atomic.h"
#include "../base/list.h"

struct cb;

/* Lies where the strand leaves it until the episode ends, off all stacks. */
struct episode {
    struct link link;              /* in the list */
    struct episode **watchdog_ref; /* the watchdog's pointer to this, cleared when the episode is over; or NULL */
    struct cb *c;                  /* NULL: not listed */
    int64_t since;
    bool left_out; /* the watchdog has found it late, and had no note for it yet */
};

/* A list of one kind. */
struct episodes {
    bool kept; /* the run has a watchdog; set before it has a strand */
    atomic_flag lock;
    struct link all;
};

/* The run has a watchdog. Sets episode->c. */
void episode_begins_(struct cb *me, struct episodes *episodes, struct episode *episode);
/* episode->c is set. */
void episode_ends_(struct episodes *episodes, struct episode *episode);

#endif
