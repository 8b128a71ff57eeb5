/*
 * Looking inside a running sub-process.
 */
#ifndef STRAND_DEBUG_H
#define STRAND_DEBUG_H

#include "../strand.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Print the tree of strands of the caller's sub-process to a descriptor: of each its name and id, whether it is
 * runnable or blocked, on what and since when, the scope that it is anchored to, whether it is cancelled and by whom,
 * and its stack trace. The other threads of the sub-process are held at their next switch meanwhile; a strand that does
 * not come to one within 100 ms is said to be running. Returns 0, or a negated errno code of the descriptor. Does not
 * suspend.
 */
int strand_dump(int fd);

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
