/*
 * Looking inside a running sub-process.
 */
#ifndef STRAND_DEBUG_H
#define STRAND_DEBUG_H

#include "../strand.h"

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
 * and on what thread it ran, of a strand on an opened fibre which fibre that is and whether its frames are copied out,
 * and its stack trace, also of those whose frames are. Very many strands are grouped, in bounded memory.
 *
 * The other threads of the sub-process are held at their next switch meanwhile, and go on before anything is written. A
 * thread that does not come to one within 100 ms is sent a signal once, and tells where it is: the highest real-time
 * signal that the program does not use. Its handler does nothing else, and stays; a system call in which that thread
 * waits may return EINTR where the system does not begin it again. A thread that does not answer is said to be running.
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

/** Figures of a sub-process. */
struct strand_stats {
    size_t size;       /* sizeof(struct strand_stats); required */
    uint64_t spawned;  /* strands ever started in this sub-process */
    uint64_t ended;    /* strands that have ended */
    uint64_t live;     /* the difference, the root included */
    uint64_t stacks;   /* stacks that exist, in use or kept for the next strand */
    uint64_t threads;  /* threads of the default pool */
    uint64_t switches; /* from one strand to another */
    uint64_t steals;   /* fibres taken from other threads' queues */
    uint64_t wakes;    /* threads woken by a system call */
    uint64_t sleeps;   /* times a thread went to sleep */
};
/** Fill in those figures that the struct has room for. Those of other threads may lag. */
void strand_stats_get(struct strand_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
