/*
 * Runs that are out of work: a deadlock and its report; waits for quiescence, of pools that come and go; and a run that
 * ends because it is out of work.
 */
#include "fault.h"

#include "strand/sync.h"

static struct {
    strand_mutex mutex[2];
    strand_barrier both;
    strand_event never;
} shared;

static void *take_two(void *arg)
{
    int me = (int)(intptr_t)arg;
    STRAND_LOCKED(&shared.mutex[me]);
    strand_barrier_wait(&shared.both);
    STRAND_LOCKED(&shared.mutex[1 - me]);
    return arg;
}

static void *wait_for_each_other(void *arg)
{
    STRAND_SCOPE(scope);
    for (intptr_t i = 0; i < 2; i++)
        strand_spawn(scope, take_two, (void *)i);
    strand_scope_join(scope);
    return arg;
}

/* The root is interrupted by the deadlock, or an exception reports the fault. */
static void *deadlock(void *arg)
{
    volatile bool told = false;
    (void)arg;
    shared.mutex[0] = shared.mutex[1] = (strand_mutex){0};
    shared.both = (strand_barrier)STRAND_BARRIER_INIT(2);
    STRAND_TRY {
        wait_for_each_other(NULL);
    }
    STRAND_CATCH(&STRAND_DEADLOCK, e) {
        told = true;
    }
    STRAND_END
    FAULT_CHECK(told);
    return FAULT_DONE;
}

static void keep_silent(const char *message, void *arg)
{
    (void)message, (void)arg;
}

FAULT_WORKLOAD(deadlock, RUN_ALONE | RUN_PAIR, deadlock, .options.on_log = keep_silent)

/* ---- quiet ----------------------------------------------------------------------------------------------- */

static void *nap(void *arg)
{
    strand_sleep(10 * STRAND_US);
    return arg;
}

static void *wait_for_ever(void *arg)
{
    strand_event_wait(&shared.never);
    return arg;
}

static void *quiet(void *arg)
{
    STRAND_SCOPE(scope);
    STRAND_DEADLINE(strand_in(60 * STRAND_S));
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1));
    (void)arg;
    for (int i = 0; i < 2; i++) {
        strand_spawn(scope, nap, NULL);
        strand_spawn_with(scope, STRAND_ATTR(.pool = pool), nap, NULL, 0);
    }
    strand_spawn(scope, wait_for_ever, NULL);
    strand_wait_quiet(pool, 0);
    strand_wait_quiet((strand_pool){{0}}, 0);
    strand_wait_quiet((strand_pool){{0}}, STRAND_QUIET_RUN);
    strand_scope_cancel(scope, NULL);
    strand_scope_join(scope);
    return FAULT_DONE;
}

FAULT_WORKLOAD(quiet, RUN_ANY, quiet, )
