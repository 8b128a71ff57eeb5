/*
 * Waiting for one of many. A case is one operation that a strand would do, or one event that it waits for; a select
 * takes several and does exactly one. Cases are made by the headers of what they wait for: strand/chan.h (send,
 * receive), strand/sync.h (semaphores, events, ...), strand/io.h (descriptors, signals); here are those of strands and
 * of time.
 */
#ifndef STRAND_SELECT_H
#define STRAND_SELECT_H

#include "../strand.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One case of a select, a value: kept in an array, changed and used again as one likes. {0} is a case that never
 *  happens. */
typedef struct strand_case {
    const struct strand_source_ *source; /* what kind */
    uint64_t object[2];                  /* which one */
    void *value;                         /* where a value comes from, or goes */
    int64_t detail;
    unsigned flags;
    int result; /* of the case that has happened: 0, what its maker says, or a negated errno code (-EPIPE: closed) */
} strand_case;

/** How a select chooses and waits. */
enum {
    STRAND_SELECT_ORDERED = 1, /* of those that can happen now, the first in the array; else any, at random */
    STRAND_SELECT_NOW = 2      /* do not wait: -EAGAIN if none can happen now. No cancellation point */
};

/**
 * Wait until one of the cases can happen, and do it. Returns its place in the array; its `result` says how it went: 0,
 * or a negated errno code, such as -EPIPE for a channel that is closed. All others have had no effect. Of several that
 * can happen any may be the one (by chance, under a seed by the seed's choice), or the first listed (ORDERED). The same
 * channel may stand in it several times, to send and to receive; a select never meets itself. -EAGAIN: with NOW, none
 * could happen. -EPIPE: none ever can, because all are {0} or have dropped out (strand_case_drop). The values that
 * cases point to have to stay until it returns; the array is the caller's and only `result` of it is written. Throws
 * STRAND_SYSTEM if memory is refused, before anything has happened. O(cases).
 */
STRAND_BLOCKS int strand_select(strand_case *cases, size_t count, unsigned flags);

/** The case drops out, instead of happening with -EPIPE, when its channel is closed (and, for a receive, empty). */
strand_case strand_case_drop(strand_case c);

/** The strand has ended, or is gone: as strand_wait. {0} and the caller itself are misuse. */
strand_case strand_on_end(strand other);
/** The run is being shut down: as strand_wait_stopping (strand/pool.h). */
strand_case strand_on_stopping(void);
/** The instant has come. {0}: it never does. */
strand_case strand_on_time(strand_time when);

/* ---- tickers --------------------------------------------------------------------------------------------- */

/** A ticker: instants at equal distances. A value of one strand's: not to be used by two at a time. */
typedef struct strand_ticker {
    int64_t next, period; /* ns */
    uint64_t missed;      /* ticks that passed without being waited for, before the newest */
} strand_ticker;

/** A ticker whose first tick comes after one period (ns, at least 1, else it is misuse). Takes no memory: nothing is to
 *  be given back. Any thread. */
strand_ticker strand_ticker_every(int64_t period);
/**
 * Wait for the next tick. Returns how many ticks were missed since the one before: 0 for a caller that keeps up. The
 * ticks stay where they are: lateness does not move the later ones. Interrupted, it has taken none.
 */
STRAND_BLOCKS uint64_t strand_tick(strand_ticker *ticker);
/** The next tick of the ticker, which has to stay where it is until the select returns; `missed` is in it then. */
strand_case strand_on_tick(strand_ticker *ticker);

#ifdef __cplusplus
}
#endif
#endif
