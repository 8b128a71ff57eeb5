/*
 * Runs: on several threads of their own, inside of another, on the other scheduler.
 */
#include "fault.h"

static void *leaf(void *arg)
{
    strand_yield();
    return arg;
}

static void *inner_root(void *arg)
{
    (void)arg;
    STRAND_SCOPE(scope);
    for (int i = 0; i < 8; i++)
        strand_spawn(scope, leaf, NULL);
    strand_scope_join(scope);
    return FAULT_DONE;
}

/* A run inside of a strand; what leaves it is thrown. */
static void run(int threads, const char *scheduler)
{
    strand_exception *e = NULL;
    void *result =
        strand_run(STRAND_OPTIONS(.threads = threads, .own_threads = true, .scheduler = scheduler, .uncaught = &e),
                   inner_root, NULL);
    if (e)
        strand_rethrow(e);
    FAULT_CHECK(result == FAULT_DONE);
}

static void *root(void *arg)
{
    (void)arg;
    FAULT_CHECK(strand_threads_allowed() >= 1);
    run(1, "stealing");
    run(4, "global");
    run(STRAND_THREADS_ALLOWED, NULL);
    return FAULT_DONE;
}

FAULT_WORKLOAD(runs, RUN_ALONE | RUN_PAIR, root, )
