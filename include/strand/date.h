/*
 * Dates: waiting by the system's clock, which a person or a time server may set. Instants of strand_time belong to a
 * clock that nobody sets; they are right for everything that takes or limits a time. A date is right for what is to
 * happen at a time of day.
 *
 *     strand_date date = {midnight_in_ns()};
 *     int error;
 *     while ((error = strand_wait_date(date)) == -ECANCELED)     the clock was set
 *         date.ns = midnight_in_ns();
 *
 * Which callers:
 *
 *   any thread          strand_date_now
 *   any strand          all other functions
 *   a signal handler    no function
 *
 * Suspension: only strand_wait_date may suspend the caller. It is a cancellation point.
 *
 * Cost: a few nanoseconds, unless a function says otherwise.
 *
 * In a seeded run the clock is virtual: it is midnight of 1 January 2000 (UTC) when the run begins, and strand_sim_date
 * (strand/sim.h) sets it.
 */
#ifndef STRAND_DATE_H
#define STRAND_DATE_H

#include "select.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A date: the nanoseconds since midnight of 1 January 1970 (UTC), without leap seconds. */
typedef struct strand_date {
    int64_t ns;
} strand_date;

/** Get the date by the system's clock (CLOCK_REALTIME), or the virtual one in a seeded run. Any thread may call it.
 * Cost: reading the clock, some tens of ns. */
strand_date strand_date_now(void);

/**
 * Wait until a date has come. A wait ends early when the clock is set, so that a caller can compute its date again:
 * "tomorrow at six" may be another instant then. It also ends early when the system wakes up from sleep, which the
 * kernel reports in the same way. Time during which the system sleeps counts. A clock that was set before the call is
 * not reported: the date decides. Slewing the clock, as time servers do, does not set it.
 *
 * Returns 0 if the date has come; -ECANCELED if the clock was set, or the system has woken up, and the date has not
 * come; or a negated errno code of the system, such as -EMFILE. An interrupted call has no effect. Cost: a descriptor
 * while it waits, and five system calls; if the date has passed, that of strand_date_now.
 */
STRAND_BLOCKS STRAND_CHECKED int strand_wait_date(strand_date when);

/** Make the case that a date has come, the clock was set, or the system has woken up from sleep. The case's result is
 * that of strand_wait_date. Cost: a few ns; a select that waits takes a descriptor and five system calls. */
strand_case strand_on_date(strand_date when);

#ifdef __cplusplus
}
#endif
#endif
