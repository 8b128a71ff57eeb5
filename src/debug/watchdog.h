/*
 * The watchdog: a thread that checks, a few times within options.watchdog_ns, whether strands have yielded. It reads
 * what they update anyway, so they pay nothing for it. Its life is in watchdog.c, its observation of threads in
 * watch_threads.c, of episodes (strands that unwind or stop a process) in watch_episodes.c, and the text of its reports
 * in watch_report.c. Page:
 * docs/protocols/watchdog.md.
 *
 * PARTIES   the watchdog; the threads of the run; strands in an episode (src/strand/episode.h).
 * STATE     of each thread: thread.hold.state, and what the watchdog has observed of it (struct occupancy).
 *           subprocess.drowsy: the watchdog sleeps until a thread moves, or is about to sleep.
 *
 *             all parked --drowsy = true--> check again: all parked? --sleeps, without a time limit--> a thread moved
 *             a thread moved --drowsy = false--> checks
 *             some thread moves --sleeps for a quarter of the limit--> checks
 *
 * OWNERSHIP struct occupancy, and all of struct watchdog but `stop`, `wake`, `woken` and the figures, belong to the
 *           watchdog. The stacks of strands stay mapped while it reads them: readers_enter.
 * INVARIANTS [WD1] while a thread moves for longer than a moment, the watchdog is awake, or about to be woken. [WD2]
 *           while a strand unwinds that is not reported, the watchdog does not sleep beyond the time when that strand
 *           would be late.
 * ORDERING  the watchdog stores drowsy, then reads hold.state of all; a thread stores that it moves, then reads drowsy:
 *           both seq_cst, so one of them sees the other [WD1]. A parked thread has listed its episodes before.
 *           [WD3] closing stores `stop`, then `wake`; the watchdog clears `wake`, then loads `stop`; seq_cst: it ends,
 *           or does not sleep.
 * PROGRESS  a thread that moves wakes the watchdog once; the watchdog then checks for a quarter of the limit before it
 *           is drowsy again.
 * NOT DONE  a time in each thread's record, written at switches: every switch would pay. A timer signal for each
 *           thread: it would interrupt system calls of the program, and finds nothing that the count of switches does
 *           not show. Holding the other threads while one strand is inspected: they are not late. Threads that watch
 *           each other: none does while all are held. Processor time of the strand: it stands still in the system calls
 *           that the watchdog has to find. A fresh start after each delay of the watchdog: a busy machine would never
 *           report a strand.
 * TESTED BY tests/models/watchdog.pml, tests/spec/watchdog.c, tests/spec/watchdog_reports.c,
 *           tests/spec/watchdog_processes.c.
 */
#ifndef DEBUG_WATCHDOG_H
#define DEBUG_WATCHDOG_H

#include "watch_report.h"

enum { NOTES_MOST = 16 };

/* How long a thread has to answer. */
#define WATCHDOG_ANSWER_NS INT64_C(50000000)

/* An episode that is reported. */
struct note {
    struct episode *episode; /* NULL: it is over; under the lock of the episodes */
    bool used;
    int64_t since, due;
    unsigned reports;
    uint64_t id;
    int pid; /* of a process that is stopped */
    char name[32];
};

/* The episodes of one kind. */
struct watched {
    struct episodes *episodes;
    enum strand_watchdog_case kind;
    int64_t limit;
    struct note notes[NOTES_MOST];
};
enum { WATCHED_KINDS = 2 };

struct watchdog {
    struct worker worker; /* a thread's record, for a thread that is in no pool */
    struct runtime *runtime;
    arch_thread os;
    int64_t limit, period;
    _Atomic bool stop;
    _Atomic uint32_t wake; /* futex */
    _Atomic int64_t woken; /* when */
    int64_t time, clock;   /* at the current check: the watchdog's own time, which stands still while the process does;
                            * and the run's */
    int64_t delayed;       /* how long its thread could not run so far */
    int64_t credited;      /* when credit was last given */
    int credit;            /* reports that may be made now */
    uint64_t left_out;     /* reports left out since the last one */
    struct watched watched[WATCHED_KINDS];
    struct scratch *scratch;
    struct output out;
    _Atomic uint64_t late, late_ns; /* for statistics */
};

/* ---- watchdog.c ------------------------------------------------------------------------------------------ */

/* Call fn for the pools of the run. Returns whether it returned true for all. */
bool watchdog_each_pool(struct watchdog *w, bool (*fn)(struct watchdog *w, struct pool *pool));
/* Around reading the stacks of strands. */
void watchdog_read_begin(struct watchdog *w);
void watchdog_read_end(struct watchdog *w);
/* Count a strand that is late by so much, for the first time, or still. */
void watchdog_count(struct watchdog *w, int64_t ns, bool first);
/* Whether one more report may be made, which the caller then makes. Otherwise it is counted as left out. */
bool watchdog_may_report(struct watchdog *w);
/* Issue a report. Reports that something is over need no credit. */
void watchdog_report(struct watchdog *w, struct watch_report *report);
/* When something that has lasted for `ns` has to be reported again. */
int64_t watchdog_next(int64_t due, int64_t ns);

void watchdog_figures(const struct watchdog *watchdog, uint64_t *late, uint64_t *late_ns);

/* ---- watch_threads.c: strands that occupy their thread --------------------------------------------------------- */

void watch_threads_check(struct watchdog *w);
/* Whether the strand occupied its thread at the last check, and will be reported for that within `limit`, before its
 * episode is. */
bool watch_threads_has(struct watchdog *w, struct cb *c, int64_t limit);
/* At the end of the run. */
void watch_threads_end(struct watchdog *w);

/* ---- watch_episodes.c: strands that unwind, or stop a process -----------------------------------------------------
 */

/* Before the run has a strand. */
void watch_episodes_open(struct watchdog *w, int64_t cleanups_limit);
/* Whether strands list their episodes. */
void watch_episodes_keep(struct runtime *runtime, bool kept);
void watch_episodes_check(struct watchdog *w);
/* The next instant at which a strand is late, or has to be reported again. */
int64_t watch_episodes_due(struct watchdog *w);
/* Extend all limits by time that does not count. */
void watch_episodes_put_off(struct watchdog *w, int64_t ns);
void watch_episodes_end(struct watchdog *w);

#endif
