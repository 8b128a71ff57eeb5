/*
 * Diagnostics of a run (strand_run): dumps of its strands, reports of who waits for whom and of what keeps a pool busy,
 * the watchdog's reports, and counters.
 *
 * Which callers:
 *
 *   any thread          strand_dump, strand_waits_print, strand_busy_print; a plain thread gets all runs of the process
 *   any strand          strand_stats_get
 *   a signal handler    strand_dump, under the conditions of its text
 *
 * Suspension: no function suspends or is a cancellation point. Those that print block their thread while the descriptor
 * blocks.
 *
 * Cost: O(strands) to print, while the other threads of the run stand still for a part of the time, unless a function
 * says otherwise. A run that does not use this header pays nothing for it.
 */
#ifndef STRAND_DEBUG_H
#define STRAND_DEBUG_H

#include "../strand.h"
#include "pool.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The ways to print strands with equal traces. */
enum strand_dump_grouping {
    STRAND_DUMP_AUTO = 0, /* as a tree of single strands up to 100 strands, else like STRAND_DUMP_GROUPED */
    STRAND_DUMP_SINGLE,   /* as a tree of single strands */
    STRAND_DUMP_GROUPED   /* once for all strands with the same trace, with their number */
};

/** The options of strand_dump. Zero is the default of each field but `size`. */
typedef struct strand_dump_options {
    size_t size; /* sizeof(strand_dump_options); required */
    enum strand_dump_grouping grouping;
    bool no_signals; /* send no signal to a thread that reaches no switch within 100 ms */
} strand_dump_options;

/** Write options as an argument, with `size` filled in: strand_dump(2, STRAND_DUMP(.grouping = STRAND_DUMP_SINGLE)). */
#define STRAND_DUMP(...) STRAND_SIZED_(strand_dump_options, __VA_ARGS__)

/**
 * Print the tree of strands of the caller's run to a descriptor. A plain thread, which belongs to no run, gets the
 * trees of all of them; none of these ends before the call returns. For each strand the dump shows: its name and id;
 * whether it is runnable or blocked, on what and since when (a mutex with its holder); the scope it is anchored to;
 * whether and by whom it is cancelled; its stack depth; its last thread; its pool, if that is not the first; its shared
 * fibre and whether its stack is saved; and its stack trace. Very many strands are grouped, in bounded memory.
 *
 * The other threads of the run stop at their next switch and continue before anything is written. A thread that reaches
 * no switch within 100 ms is inspected where it waits if it waits in a system call. Else it gets a signal once: the
 * highest real-time signal that the program does not use. The handler only records where the thread is; it stays
 * installed. A system call that the thread begins at that moment may return EINTR if the system does not restart it;
 * without /proc this also holds for a call in which the thread waits. A thread that does not answer is printed as
 * running.
 *
 * The dump prints control characters in names as C escape sequences, and C++ function names mangled, because demangling
 * needs memory (use c++filt).
 *
 * `options` may be NULL. The call does not use malloc. If there is no other memory either, it prints a plain list
 * without traces and stops no thread. It does not suspend, and it blocks the thread while the descriptor blocks. A
 * non-blocking descriptor is abandoned after one second without progress, because its reader may be a strand of this
 * thread.
 *
 * Any thread may call it. A signal handler may, if it has interrupted no function of this library but strand_dump (or
 * an idle thread), and no function of the C library that holds a lock, such as malloc: libunwind may need that lock. A
 * strand of a run with one thread that cannot be stopped from outside is not shown, unless dumps on SIGQUIT were
 * enabled. Seeded runs are not shown from outside. Cost: O(strands); a million strands take about 0.4 s.
 *
 * Returns 0, an error of the descriptor, or: -EAGAIN if nobody reads the descriptor; -EBUSY in a handler that has
 * interrupted a dump of this thread; -ESRCH on a plain thread if no run exists; -EOPNOTSUPP for a seeded run from
 * outside; -ENOMEM from outside if there is no memory for a run of one thread.
 */
int strand_dump(int fd, const strand_dump_options *options);

/**
 * Print to a descriptor which strand of the caller's run waits for which. For each blocked strand it shows what the
 * strand waits for, since when, where the strand was spawned, and which strands would have to act: the child that it
 * joins, the holder of the mutex, the strands that have not arrived at the barrier; or that time or an external event
 * would have to. If more than a hundred strands are blocked, strands of one spawn site that wait alike are printed
 * once, with their number. The cycles follow, the shortest first: strands of which each waits for the next one, so that
 * none can continue unless one of them is interrupted.
 *
 *     2 of 3 strands are blocked, 2 of them in 1 cycle
 *     strand 'a' #3 waits for mutex at 0x55d0c8, since 12.1 ms; spawned in start+0x41
 *         strand 'b' #4 would have to unlock it, locked in work+0x1c; it is blocked too
 *     ...
 *     2 strands wait for each other:
 *         strand 'a' #3 waits for mutex at 0x55d0c8, which strand 'b' #4 has locked
 *         strand 'b' #4 joins strand 'a' #3
 *
 * The report contains no guesses. The library knows the holder of a mutex, a read-write lock or a once, and the strand
 * whose end is waited for. It does not know which strand will release a permit, send or signal; such a waiter waits for
 * no particular strand and is in no cycle. A select is in a cycle only if it has one case left.
 *
 * The call stops the other threads and needs memory like strand_dump, about 100 bytes per strand. Any thread may call
 * it, but no signal handler; a plain thread gets all runs. Returns what strand_dump returns. Cost: O(strands).
 */
int strand_waits_print(int fd);

/**
 * Print to a descriptor what keeps a pool of the caller's run busy; {0} means each of its pools. The report shows the
 * threads that run strands, which strands these are and since when the threads have been busy; the number of runnable
 * strands and where the first of them are queued; the pending timers and the strands of the next ones; the strands that
 * wait for external events: descriptors, signals, ports, offloaded calls; and the number of strands that a closing pool
 * waits for. A pool with none of these is printed as idle. Strands that wait for strands, a mutex or a channel do not
 * keep a pool busy and are only counted; strand_waits_print shows them.
 *
 *     pool 'first': 2 threads (stealing)
 *         thread 0 (4711) runs strand 'root' #1, which asked for this report; it has been busy for 3.1 ms
 *         1 timer is pending
 *             strand 'beat' #5 waits for 87.0 ms more
 *         1 waits for the outside: 1 for descriptors
 *             strand 'reader' #6 waits for descriptor 7
 *         12 wait for strands, or for actions of strands: that does not keep it busy
 *
 * The call stops the other threads and needs memory like strand_dump. Any thread may call it, but no signal handler; a
 * plain thread passes {0} and gets all pools of all runs. A stale pool is misuse. Returns what strand_dump returns.
 * Cost: O(strands) per pool.
 */
int strand_busy_print(strand_pool pool, int fd);

/** The cases that the watchdog of a run reports (strand_options.watchdog_ns, in strand/pool.h). */
enum strand_watchdog_case {
    STRAND_WATCHDOG_OCCUPIES = 1, /* a strand occupies its thread */
    STRAND_WATCHDOG_CLEANUPS,     /* a strand has been unwinding for long, usually because a clean-up blocks */
    STRAND_WATCHDOG_PROCESS       /* a process (strand/process.h) has not ended long after it was stopped */
};

/** A report of the watchdog. All pointers are valid during the call only. */
struct strand_watchdog_report {
    size_t size; /* sizeof(strand_watchdog_report), as the library knows it */
    enum strand_watchdog_case kind;
    bool over;           /* the case is over; below `limit_ns` only left_out, text and pid are set */
    unsigned reports;    /* the number of reports of this case, this one included */
    uint64_t id;         /* the strand's id */
    const char *name;    /* the strand's name */
    const char *spawned; /* the spawn site, as "function+0x12"; "" for the root strand or if over */
    /* The duration in nanoseconds, exact to a quarter of the limit. Time in which the whole process stood still does
     * not count (a debugger, SIGSTOP, a sleeping machine). */
    int64_t duration_ns;
    int64_t limit_ns; /* strand_options.watchdog_ns, or watchdog_cleanups_ns */

    /* Where the strand is. */
    const char *where;   /* "it computes", "it waits in the system", "blocked: joins strand #7, since 3.1 ms" */
    bool waits;          /* it occupies its thread inside a system call or a page fault */
    bool unwinding;      /* an exception is in flight: the strand is in a clean-up */
    const char *section; /* a description of the no-suspend section around it; "" if there is none */
    strand_pool pool;
    int thread;          /* the index of its thread in the pool; -1: it does not run */
    uint32_t thread_id;  /* the thread's id in the system */
    int64_t cpu_ns;      /* CPU time of the thread since the case began; -1: unknown */
    void *const *frames; /* return addresses of the program, innermost first */
    size_t frame_count;  /* 0: unknown */

    /* What the strand delays. */
    size_t runnable;     /* strands that wait at least for its thread, or for any thread if the pool has one queue */
    int64_t runnable_ns; /* one of them has waited at least this long */
    bool stalled;        /* strands occupy all threads of the pool for longer than the limit; only then: */
    size_t timers;       /* at least this many timers are due */
    int64_t timer_ns;    /* the first of them is late by this many nanoseconds */
    bool events;         /* descriptors have events that strands wait for */

    uint64_t left_out;     /* reports omitted since the last one, because there were too many */
    const char *text;      /* the whole report in one or more lines, as it is logged without a hook */
    const char *pool_name; /* of `pool` */

    /* STRAND_WATCHDOG_PROCESS. The strand is the handle of the process; `where` says how far the stop is. */
    int pid;           /* the process; 0 in other cases */
    int signal;        /* the last signal sent: the stop signal, or SIGKILL when the time of grace is over */
    int signal_error;  /* 0, or a negated errno code: the system has refused to send it (-EPERM) */
    int64_t kill_ns;   /* the time until SIGKILL; 0: it has been sent */
    char state;        /* as proc(5) names it: 'D' is an uninterruptible wait, which not even SIGKILL ends, 'T' or 't'
                        * a process that is suspended or held by a debugger; 0: unknown */
    const char *scope; /* the scope that is left only when the process has ended, as "file:line"; "" in other cases */
};

/** Counters of a run. */
typedef struct strand_stats {
    size_t size;       /* sizeof(strand_stats); required */
    uint64_t spawned;  /* strands ever started in this run */
    uint64_t ended;    /* strands that have ended */
    uint64_t live;     /* the difference, the root included */
    uint64_t stacks;   /* stacks that exist, in use or kept for the next strand */
    uint64_t threads;  /* threads of all pools */
    uint64_t switches; /* from one strand to another */
    uint64_t steals;   /* fibres taken from other threads' queues */
    uint64_t wakes;    /* threads woken by a system call */
    uint64_t sleeps;   /* times a thread went to sleep */
    uint64_t late;     /* cases that the watchdog found, reported or not */
    uint64_t late_ns;  /* the longest of these cases so far, in nanoseconds */
} strand_stats;
/** Read the counters of the caller's run into *stats. The caller sets stats->size; the function fills in the fields
 * that this size covers. Counters of other threads may lag. Cost: O(threads of the run), a few ns each; the other
 * threads do not stop. */
void strand_stats_get(strand_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
