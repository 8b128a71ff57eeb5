/*
 * Time: many sleepers, deadlines, tickers.
 */
#include "fault.h"

#include "strand/date.h"
#include "strand/select.h"

#include <errno.h>

enum { SLEEPERS = 150 };

static void *sleeper(void *arg)
{
    strand_sleep((int64_t)(uintptr_t)arg * STRAND_US);
    return arg;
}

static void *late(void *arg)
{
    STRAND_DEADLINE(strand_in(STRAND_MS));
    strand_sleep(3600 * STRAND_S);
    return arg;
}

static void *root(void *arg)
{
    (void)arg;
    STRAND_SCOPE(scope);
    for (uintptr_t i = 0; i < SLEEPERS; i++)
        strand_spawn(scope, sleeper, (void *)(2000 + i));
    strand_scope_join(scope);
    strand_exception *e = strand_try(late, NULL, NULL);
    FAULT_CHECK(e != NULL);
    if (!strand_exception_is(e, &STRAND_TIMED_OUT))
        strand_rethrow(e);
    strand_exception_release(e);
    strand_ticker ticker = strand_ticker_every(100 * STRAND_US);
    for (int i = 0; i < 5; i++)
        strand_wait_tick(&ticker);
    return FAULT_DONE;
}

FAULT_WORKLOAD(timers, RUN_ANY, root, )

static void *dates(void *arg)
{
    (void)arg;
    strand_date date = {strand_date_now().ns + STRAND_MS};
    int error;
    while ((error = strand_wait_date(date)) == -ECANCELED)
        ;
    strand_must(error);
    FAULT_CHECK(strand_date_now().ns >= date.ns);
    return FAULT_DONE;
}

/* A seeded run has neither a descriptor nor a clock of the system. */
FAULT_WORKLOAD(dates, RUN_ALONE | RUN_PAIR, dates, )
