/*
 * Select: wait for the first of several operations. A case describes one operation that a strand would perform, or one
 * event that it waits for. A select takes an array of cases and performs exactly one of them.
 *
 *     strand_case cases[] = {strand_on_receive(chan, &value), strand_on_time(strand_in(STRAND_S))};
 *     switch (strand_select(cases, 2, 0)) {
 *     case 0: ...                 received, or cases[0].result is -EPIPE
 *     case 1: ...                 one second has passed
 *     }
 *
 * Each header makes the cases of its own objects: strand/chan.h (send, receive), strand/port.h (messages),
 * strand/sync.h (semaphores, events, groups, latches) and strand/io.h (descriptors, signals). This header has the cases
 * of strands and of time.
 *
 * Which callers:
 *
 *   any thread          strand_ticker_every
 *   any strand          all other functions
 *   a signal handler    no function
 *
 * Suspension: only strand_select and strand_wait_tick may suspend the caller. They are cancellation points.
 *
 * Cost: a few nanoseconds, unless a function says otherwise.
 */
#ifndef STRAND_SELECT_H
#define STRAND_SELECT_H

#include "../strand.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One case of a select. A case is a plain value: the caller may keep it in an array, change the array and use the case
 * again. {0} is a case that never happens. */
typedef struct strand_case {
    const struct strand_source_ *source; /* the type of the operation */
    uint64_t object[2];                  /* the object that the operation works on */
    void *value;                         /* the value to send, or the memory to receive into */
    int64_t detail;
    uint64_t reserved[2];
    unsigned flags;
    int result; /* set in the case that happened: 0, what the case's maker documents, or a negated errno code */
} strand_case;

/** Flags of strand_select. */
enum strand_select_flag {
    STRAND_SELECT_ORDERED = 1, /* prefer the first case of the array that can happen now; else choose at random */
    STRAND_SELECT_NOW = 2      /* do not wait: return -EAGAIN if no case can happen now; no cancellation point */
};
/** A set of flags of strand_select: 0, or some of enum strand_select_flag. */
typedef STRAND_FLAGS_(strand_select_flag) strand_select_flags;

/**
 * Wait until one of `count` cases can happen, and perform it. The other cases have had no effect. If several cases can
 * happen, strand_select chooses one at random (a seeded run lets the seed choose), or the first one with
 * STRAND_SELECT_ORDERED. An array may list the same channel several times, for sending and for receiving; a select
 * never sends to itself.
 *
 * The caller owns the array; strand_select writes only the `result` of the case that happened. The objects and values
 * that cases point to must stay valid until the call returns. An interrupted call has performed no case. Cost:
 * O(count); about 60 ns with four channels, one of which has a waiter.
 *
 * Returns the index of the case that happened; its `result` is 0 or a negated errno code, such as -EPIPE for a closed
 * channel. Returns -EAGAIN if STRAND_SELECT_NOW is set and no case can happen now. Returns -EPIPE if no case can ever
 * happen, because each is {0} or has dropped out (strand_case_drop). Throws STRAND_SYSTEM if there is no memory; no
 * case has happened then.
 */
STRAND_BLOCKS int strand_select(strand_case *cases, size_t count, strand_select_flags flags);

/** Make a case drop out of its select when its channel is closed (and, for a receive, empty). Without this the case
 * happens then, with the result -EPIPE. Returns the changed case. */
strand_case strand_case_drop(strand_case c);

/** Make the case that a strand has ended, which strand_wait waits for too. A stale handle counts as ended. Passing {0}
 * or the calling strand is misuse. The case's result is 0. */
strand_case strand_on_end(strand other);
/** Make the case that the run is being shut down, which strand_wait_stopping (strand/pool.h) waits for too. The case's
 * result is 0. */
strand_case strand_on_stopping(void);
/** Make the case that an instant has come. The instant {0} never comes. The case's result is 0. A select that waits for
 * it costs O(log timers of the pool) more. */
strand_case strand_on_time(strand_time when);

/* ---- tickers --------------------------------------------------------------------------------------------- */

/** A ticker: instants at equal distances. A ticker is a plain value that one strand at a time may use. */
typedef struct strand_ticker {
    int64_t next_ns, period_ns; /* the instant of the next tick, and the distance of two */
    uint64_t missed;            /* ticks that passed before the newest one while nobody waited for them */
    uint64_t reserved;
} strand_ticker;

/** Make a ticker whose first tick comes after one period. `period_ns` below 1 is misuse. A ticker owns no memory and
 * needs no release. Any thread may call it. */
strand_ticker strand_ticker_every(int64_t period_ns);
/**
 * Wait for the next tick of a ticker. A late caller does not move the later ticks. Returns the number of ticks that
 * were missed since the last call: 0 for a caller that keeps up. An interrupted call consumes no tick. Throws
 * STRAND_SYSTEM if there is no memory for a timer. The caller owns *ticker, which must stay valid until the call
 * returns. Cost: like strand_sleep_until, O(log timers of the pool).
 */
STRAND_BLOCKS uint64_t strand_wait_tick(strand_ticker *ticker);
/** Make the case that the next tick of a ticker has come. *ticker must stay valid until the select returns; its field
 * `missed` then holds the number of missed ticks. The case's result is 0. A select that waits for it costs O(log timers
 * of the pool) more. */
strand_case strand_on_tick(strand_ticker *ticker);

#ifdef __cplusplus
}
#endif
#endif
