/*
 * Signals that strands wait for.
 */
#include "fault.h"

#include "strand/io.h"

#include <signal.h>

static void *wait_for_one(void *arg)
{
    STRAND_SIGNALS(signals, SIGUSR2, SIGHUP);
    *(_Atomic bool *)arg = true;
    FAULT_CHECK(strand_wait_signal(signals) == SIGUSR2);
    return arg;
}

static void *root(void *arg)
{
    (void)arg;
    _Atomic bool there = false;
    STRAND_SIGNALS(signals, SIGUSR1, SIGUSR2);
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, wait_for_one, (void *)&there);
    while (!there)
        strand_yield();
    raise(SIGUSR1);
    FAULT_CHECK(strand_wait_signal(signals) == SIGUSR1);
    strand_sleep(STRAND_MS);
    raise(SIGUSR2);
    FAULT_CHECK(strand_wait_signal(signals) == SIGUSR2);
    strand_join(child);
    return FAULT_DONE;
}

FAULT_WORKLOAD(signals, RUN_ALONE | RUN_PAIR, root, )
