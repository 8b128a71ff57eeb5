/*
 * Looking for seeds, which is done in a child process.
 */
#include "fault.h"

#include "strand/io.h"
#include "strand/sim.h"

enum { SEEDS = 3 };

static void *nothing(void *arg)
{
    strand_yield();
    return arg;
}

/* Outside of strands. */
static void *search(void *result)
{
    *(int *)result = strand_sim_search(NULL, 1, SEEDS, nothing, NULL, NULL);
    return result;
}

static void *root(void *arg)
{
    int result = 0;
    (void)arg;
    strand_offload(search, &result);
    strand_must(result);
    FAULT_CHECK(result == 0 || result == 1); /* 1: a run in the child has failed */
    return FAULT_DONE;
}

FAULT_WORKLOAD(search, RUN_ALONE, root, .options.max_offload_threads = 1)
