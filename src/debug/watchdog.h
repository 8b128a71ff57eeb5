/*
 * The watchdog: a thread of its own that looks, a few times within options.watchdog, whether strands have given way. It
 * reads what they do anyway, so they do nothing for it. Its life is in watchdog.c, what it sees of threads in stays.c,
 * of strands that unwind in cleanups.c, and what it says of them in late.c. Page: docs/protocols/watchdog.md.
 *
 * PARTIES   the watchdog; the threads of the run; strands that unwind (unwinding.h).
 * STATE     of each thread thread.held, and what the watchdog has seen of it (struct stay). subprocess.drowsy: the
 *           watchdog sleeps until a thread moves, or is about to.
 *
 *             all rest --drowsy = true--> once more: all rest? --sleeps, without an end--> moved
 *             moved --drowsy = false--> looks
 *             somebody moves --sleeps for a quarter of the limit--> looks
 *
 * OWNERSHIP struct stay, and all of struct watchdog but `stop`, `wake`, `woken` and the figures, are the
 *           watchdog's. What strands are on stays mapped while it looks: opened_look_begin.
 * INVARIANTS [G1] a thread moves for longer than a moment: then the watchdog is awake, or about to be woken. [G2] a
 *           strand unwinds that is not reported: then the watchdog does not sleep beyond the time when it would be
 *           late.
 * ORDERING  the watchdog stores drowsy, then reads all of `held`; a thread stores that it moves, then reads drowsy:
 *           both seq_cst, so one of them sees the other. Who rests has entered before what he unwinds.
 * PROGRESS  a thread that moves wakes the watchdog once; it looks for a quarter of the limit before it is drowsy
 *           again.
 * NOT DONE  a time in each thread's record, written at switches: every switch would pay. A timer signal for each
 *           thread: it would break off system calls of the program, and finds nothing that the count of switches
 *           does not tell. Holding the other threads still while one strand is looked at: they are not late.
 * TESTED BY tests/models/watchdog.pml, tests/spec/watchdog.c, tests/spec/watchdog_quiet.c.
 */
#ifndef DEBUG_WATCHDOG_H
#define DEBUG_WATCHDOG_H

#include "late.h"

enum { CLEANUPS_MOST = 16 };

/* How long a thread has to answer where it is. */
#define WATCHDOG_ANSWER_NS INT64_C(50000000)

/* A strand whose unwinding is reported. */
struct cleanup {
    struct unwinding *unwinding; /* NULL: it is over; under the lock of the unwindings */
    bool used;
    int64_t since, due;
    unsigned reports;
    uint64_t id;
    char name[32];
};

struct watchdog {
    struct worker worker; /* the record of a thread, for one that is none of the pools' */
    struct runtime *runtime;
    arch_thread os;
    int64_t limit, cleanups_limit, period;
    _Atomic bool stop;
    _Atomic uint32_t wake; /* futex */
    _Atomic int64_t woken; /* when */
    int64_t time, clock;   /* at the present look: its own, which stands while the process does; and the run's */
    int64_t delayed;       /* its thread, so far */
    int64_t credited;      /* when credit was given last */
    int credit;            /* reports that may be made now */
    uint64_t left_out;     /* that were not, since the last */
    struct cleanup cleanups[CLEANUPS_MOST];
    struct looker *looker;
    struct out out;
    _Atomic uint64_t late, late_ns; /* for statistics */
};

/* ---- watchdog.c ------------------------------------------------------------------------------------------ */

/* Calls it for the pools of the run, until it returns false; returns whether it never did. */
bool watchdog_each_pool(struct watchdog *w, bool (*fn)(struct watchdog *w, struct pool *pool));
/* Around a look at what strands are on. */
void watchdog_look_begin(struct watchdog *w);
void watchdog_look_end(struct watchdog *w);
/* Somebody is late by so much, for the first time, or still. */
void watchdog_count(struct watchdog *w, int64_t ns, bool first);
/* Whether one more report may be made, which is made next; else it is left out, and counted as that. */
bool watchdog_may_report(struct watchdog *w);
/* It is out. That something is over can always be said. */
void watchdog_report(struct watchdog *w, struct late *late);
/* When something that has lasted for `ns` is to be reported again. */
int64_t watchdog_next(int64_t due, int64_t ns);

void watchdog_figures(const struct watchdog *watchdog, uint64_t *late, uint64_t *late_ns);

/* ---- stays.c: strands that hold their thread -------------------------------------------------------------- */

void stays_look(struct watchdog *w);
/* Whether the strand has held its thread at the last look, and will be reported for that before its unwinding is. */
bool stays_has(struct watchdog *w, struct cb *c);
/* The run is over. */
void stays_end(struct watchdog *w);

/* ---- cleanups.c: strands that unwind ---------------------------------------------------------------------- */

void cleanups_look(struct watchdog *w);
/* The next instant at which one is late, or to be reported again. */
int64_t cleanups_due(struct watchdog *w);
/* So much of the time so far does not count. */
void cleanups_put_off(struct watchdog *w, int64_t ns);
void cleanups_end(struct watchdog *w);

#endif
