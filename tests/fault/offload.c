/*
 * Calls that block their thread: a crew that is hired one by one, and strands that are interrupted meanwhile.
 */
#include "fault.h"

#include "strand/io.h"

#include <time.h>

enum { CALLERS = 12 };

static void *call(void *arg)
{
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    return arg;
}

static void *caller(void *arg)
{
    void *result = strand_offload(call, arg);
    FAULT_CHECK(result == arg);
    return result;
}

static void *root(void *arg)
{
    (void)arg;
    STRAND_SCOPE(scope);
    for (uintptr_t i = 1; i <= CALLERS; i++)
        strand_spawn(scope, caller, (void *)i);
    strand_scope_join(scope);
    for (uintptr_t i = 1; i <= CALLERS; i++)
        strand_cancel(strand_spawn(scope, caller, (void *)i), NULL);
    strand_sleep(STRAND_MS);
    strand_scope_cancel(scope, "enough");
    return FAULT_DONE;
}

FAULT_WORKLOAD(offload, RUN_ANY, root, .options.max_offload_threads = 3)
