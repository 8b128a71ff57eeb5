/*
 * Looking inside a running sub-process.
 */
#ifndef STRAND_DEBUG_H
#define STRAND_DEBUG_H

#include "../strand.h"
#include "pool.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Whether strands that stand at the same place are printed one by one. */
enum strand_dump_grouping {
    STRAND_DUMP_AUTO = 0, /* one by one, as a tree, if there are 100 at most; else as STRAND_DUMP_GROUPED */
    STRAND_DUMP_SINGLE,   /* one by one, however many there are */
    STRAND_DUMP_GROUPED   /* those with the same trace, at the same place, once, with their number */
};

/** What strand_dump may be told. Zero is the default of each. */
typedef struct strand_dump_options {
    size_t size; /* sizeof(strand_dump_options); required */
    enum strand_dump_grouping grouping;
    bool no_signals; /* a thread that comes to no switch within 100 ms is not sent a signal to tell where it is */
} strand_dump_options;

/** Options in the place of an argument: strand_dump(2, STRAND_DUMP(.grouping = STRAND_DUMP_SINGLE)). */
#define STRAND_DUMP(...) STRAND_SIZED_(strand_dump_options, __VA_ARGS__)

/**
 * Print the tree of strands of the caller's sub-process to a descriptor; if a plain thread calls it, which belongs to
 * none, those of all sub-processes, one after the other, which then do not end before it returns. Of each strand its
 * name and id, whether it is runnable or blocked, on what and since when (by its name, if it has one; of a mutex also
 * who holds it), the scope that it is anchored to, whether it is cancelled and by whom, how much of its stack it uses
 * and on what thread it ran, of a strand on another pool than the first which that is, of one on an opened fibre which
 * fibre that is and whether its frames are copied out, and its stack trace, also of those whose frames are. Very many
 * strands are grouped, in bounded memory.
 *
 * The other threads of the sub-process are held at their next switch meanwhile, and go on before anything is written. A
 * thread that does not come to one within 100 ms is looked at where it waits, if it does so in a system call, and waits
 * on. Else it is sent a signal once, and tells where it is: the highest real-time signal that the program does not use.
 * Its handler does nothing else, and stays. A system call that the thread begins just then may return EINTR where the
 * system does not begin it again; where /proc can't be read, also one in which it waits. A thread that does not answer
 * is said to be running.
 *
 * Control characters in a name are printed as escape sequences of C. Names of C++ functions stay mangled, since reading
 * them takes memory: c++filt does.
 *
 * options may be NULL. Takes no memory of malloc's. Without any memory a plain list is printed instead, without traces,
 * and while all run. Does not suspend; it blocks the thread as long as a descriptor that blocks does. One that does not
 * is given up when nothing could be written for a second: whoever is to read it may be a strand of this thread.
 *
 * Any thread; a signal handler too, if what it has interrupted is no function of this library's but strand_dump, or a
 * thread that has nothing to do, and none of the C library's with a lock, such as malloc: libunwind may need that. What
 * a single thread of a sub-process runs is not shown from outside if that thread can't be held, unless dumps on SIGQUIT
 * were asked for; seeded runs are not shown from outside.
 *
 * Returns 0, or a negated errno code: of the descriptor; -EAGAIN: nobody reads it; -EBUSY: in a handler that has
 * interrupted a dump of this thread; -ESRCH: a plain thread, and nothing runs; -EOPNOTSUPP: a seeded run, from outside;
 * -ENOMEM: from outside, no memory for a sub-process of one thread.
 */
int strand_dump(int fd, const strand_dump_options *options);

/**
 * Print who waits for whom in the caller's sub-process to a descriptor: each strand that is blocked, what it waits for,
 * since when, where it was spawned, and who would have to act before it can go on: the child that it joins, the holder
 * of the mutex, those who have not come to the barrier; or somebody outside, or time. If more than a hundred are
 * blocked, strands that were spawned at the same place and wait alike are printed once, with their number. Then, the
 * shortest first, the rings: strands of which each waits for the next one, and so none ever goes on, unless one of them
 * is interrupted.
 *
 *     2 of 3 strands are blocked, 2 of them in 1 ring
 *     strand 'a' #3 waits for mutex at 0x55d0c8, since 12.1 ms; spawned in start+0x41
 *         strand 'b' #4 would have to unlock it, locked in work+0x1c; it is blocked too
 *     ...
 *     2 strands wait for each other:
 *         strand 'a' #3 waits for mutex at 0x55d0c8, which strand 'b' #4 has locked
 *         strand 'b' #4 joins strand 'a' #3
 *
 * Nothing is guessed: who holds a mutex, a read-write lock or the turn of a once is known, and who is waited for by its
 * end. Who has a permit of a semaphore, or is going to send or to signal, is not: such a strand waits for nobody in
 * particular and is in no ring. A wait for any of several is in a ring only if there is one left.
 *
 * The others are held meanwhile, and memory is taken, as by strand_dump; about 100 bytes for each strand. Any thread,
 * not in a signal handler; a plain thread, which belongs to none, gets those of all sub-processes. Returns what
 * strand_dump does. O(strands).
 */
int strand_waits_print(int fd);

/**
 * Print to a descriptor what keeps a pool of the caller's sub-process from being idle; {0}: each of its pools. The
 * threads that run strands, which, and since when they have not been idle; how many strands can run, and where the
 * first of them stand: in a slot or a queue, pinned, on their way; the timers that are pending, and whose the next ones
 * are; who waits for somebody outside: descriptors, signals, ports, offloaded calls; and of one that is closing how
 * many strands it waits for. Of a pool with none of these it says that it is idle. Strands that wait for strands, for a
 * mutex or a channel do not keep it busy, and are only counted: strand_waits_print shows them.
 *
 *     pool 'first': 2 threads (stealing)
 *         thread 0 (4711) runs strand 'root' #1, which asks for this; it has been busy for 3.1 ms
 *         1 timer is pending
 *             strand 'beat' #5 waits for 87.0 ms more
 *         1 waits for the outside: 1 for descriptors
 *             strand 'reader' #6 waits for descriptor 7
 *         12 wait for strands, or for what strands do: that does not keep it busy
 *
 * The others are held meanwhile, and memory is taken, as by strand_dump. Any thread, not in a signal handler; a plain
 * thread, which belongs to none, gets all pools of all sub-processes, and asks with {0}. A pool that is gone is misuse.
 * Returns what strand_dump does. O(strands) for each pool.
 */
int strand_busy_print(strand_pool pool, int fd);

/** What the watchdog of a run reports (options.watchdog, in strand/pool.h). */
enum strand_late_kind {
    STRAND_LATE_HOLDS = 1, /* a strand holds its thread */
    STRAND_LATE_CLEANUPS   /* a strand has been unwinding for long, as a rule because a clean-up blocks */
};

/** A report of the watchdog. All pointers are valid during the call only. */
struct strand_late {
    size_t size; /* sizeof(struct strand_late), as the library knows it */
    enum strand_late_kind kind;
    bool over; /* what was reported is over: of what stands below `limit` only left_out and `text` are filled in */
    unsigned reports; /* of this, so far; this one is counted */
    uint64_t id;      /* the strand's */
    const char *name;
    const char *spawned; /* where it was, as "function+0x12"; "": the root, or over */
    /* It has lasted for so many nanoseconds, or a quarter of the limit more. Times when the whole process stood still
     * do not count: in a debugger, by SIGSTOP, on a machine that sleeps. */
    int64_t ns;
    int64_t limit; /* options.watchdog, or watchdog_cleanups */

    /* Where it is. */
    const char *where; /* in words: "it computes", "it waits in the system", "blocked: joins strand #7, since 3.1 ms" */
    bool waits;        /* in a call of the system, or for a page, while it holds its thread */
    bool unwinding;    /* an exception is in flight: it is in a clean-up */
    const char *section; /* the no-suspend section that it is in, in words; "": none */
    strand_pool pool;
    int thread;          /* the number of its thread in the pool; -1: it runs on none */
    uint32_t thread_id;  /* the system's */
    int64_t cpu_ns;      /* so much of a processor its thread has used meanwhile; -1: not known */
    void *const *frames; /* of the program, innermost first */
    size_t frame_count;  /* 0: not known */

    /* What it delays. */
    size_t runnable;     /* strands that wait for its thread, at least; with one queue, for any of the pool's threads */
    int64_t runnable_ns; /* one of them has waited for so long, at least */
    bool stalled;        /* all threads of the pool are held by strands, for longer than the limit; only then: */
    size_t timers;       /* so many are due, at least */
    int64_t timer_ns;    /* by so much the first of them is late */
    bool events;         /* there are events of descriptors that strands wait for */

    uint64_t left_out;     /* so many reports since the last one were too many */
    const char *text;      /* all this in words, in one or more lines: what is logged if there is no hook */
    const char *pool_name; /* of `pool` */
};

/** Figures of a sub-process. */
struct strand_stats {
    size_t size;       /* sizeof(struct strand_stats); required */
    uint64_t spawned;  /* strands ever started in this sub-process */
    uint64_t ended;    /* strands that have ended */
    uint64_t live;     /* the difference, the root included */
    uint64_t stacks;   /* stacks that exist, in use or kept for the next strand */
    uint64_t threads;  /* threads of all pools */
    uint64_t switches; /* from one strand to another */
    uint64_t steals;   /* fibres taken from other threads' queues */
    uint64_t wakes;    /* threads woken by a system call */
    uint64_t sleeps;   /* times a thread went to sleep */
    uint64_t late;     /* strands that the watchdog found late, whether it has reported them or not */
    uint64_t late_ns;  /* the longest of that, so far */
};
/** Fill in those figures that the struct has room for. Those of other threads may lag. */
void strand_stats_get(struct strand_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
