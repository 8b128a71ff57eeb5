/*
 * Crews whose threads exit at once, so each call may have to start a thread that other calls count on; and calls that
 * their callers leave. A caller whose request fails reports that; all others continue.
 */
#include "fault.h"

#include "strand/io.h"
#include "strand/sim.h"

enum { CALLERS = 5, TURNS = 6, LEAVERS = 4 };

static struct {
    strand_crew crew;
    _Atomic int ran, taken, dropped, released, left;
} world;

static void *call(void *arg)
{
    strand_sim_sleep((intptr_t)arg * 5 * STRAND_US);
    return arg;
}

static void *caller(void *arg)
{
    for (intptr_t i = 0; i < TURNS; i++) {
        void *result = strand_offload_on(world.crew, call, (void *)i);
        FAULT_CHECK(result == (void *)i);
        strand_yield();
    }
    return arg;
}

/* Failures do not interrupt other callers. So if a call is lost, its caller waits for ever, and the deadlock is
 * reported. */
static void all_call(int threads, int64_t idle_ns)
{
    STRAND_SCOPE_WITH(scope, STRAND_COLLECT);
    world.crew = strand_crew_open(scope, STRAND_CREW_ATTR(.max_threads = threads, .idle_ns = idle_ns));
    for (int i = 0; i < CALLERS; i++)
        strand_spawn(scope, caller, NULL);
    strand_scope_join(scope);
}

static void *count_call(void *arg)
{
    world.ran++;
    strand_sim_sleep(100 * STRAND_US);
    return arg;
}

static void drop(void *result)
{
    (void)result;
    world.dropped++;
}

static void release(void *arg)
{
    FAULT_CHECK(*(uintptr_t *)arg == LEAVERS);
    world.released++;
}

static void note_left(bool *left)
{
    world.left += *left;
}

static void *leaver(void *arg)
{
    bool left __attribute__((cleanup(note_left))) = true;
    uintptr_t copied = LEAVERS;
    strand_offload_with(STRAND_OFFLOAD_ATTR(.crew = world.crew, .drop = drop, .release = release), count_call, &copied,
                        sizeof copied);
    left = false;
    world.taken++;
    return arg;
}

static void some_leave(void)
{
    STRAND_SCOPE(scope);
    world.crew = strand_crew_open(scope, STRAND_CREW_ATTR(.max_threads = 2));
    for (int i = 0; i < LEAVERS; i++)
        strand_spawn(scope, leaver, NULL);
    strand_sleep(150 * STRAND_US);
    strand_scope_cancel(scope, "enough");
}

static void *root(void *arg)
{
    (void)arg;
    world.ran = world.taken = world.dropped = world.released = world.left = 0;
    all_call(1, 1);
    all_call(2, 1);
    all_call(2, 20 * STRAND_US);
    some_leave();
    FAULT_CHECK(world.taken + world.dropped == world.ran);
    FAULT_CHECK(world.released == world.left);
    return FAULT_DONE;
}

FAULT_WORKLOAD(crews, RUN_ANY, root, .options.max_offload_threads = 1)
