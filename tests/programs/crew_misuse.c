/*
 * Misuse of crews and offloaded calls.
 */
#include "cases.h"

#include "strand/chan.h"
#include "strand/io.h"
#include "strand/sim.h"

#include <pthread.h>
#include <stdatomic.h>

static void *return_it(void *arg)
{
    return arg;
}

/* ---- handles ---------------------------------------------------------------------------------- */

static NOINLINE strand_crew open_and_leave(void)
{
    STRAND_SCOPE(scope);
    return strand_crew_open(scope, STRAND_CREW_ATTR(.name = "short-lived"));
}

/* contract 4.67 */
MISUSE(gone, "strand_offload_on", "its scope has been left", "the crew 'short-lived' was opened in")
{
    return strand_offload_on(open_and_leave(), return_it, arg);
}

MISUSE(gone_info, "strand_crew_info_get", "its scope has been left")
DOES(strand_crew_info info = {.size = sizeof info}; strand_crew_info_get(open_and_leave(), &info))

static strand_crew lent;
static _Atomic int opened, entered, finish, returning;

static void *stay(void *arg)
{
    entered = 1;
    while (!finish)
        ;
    returning = 1;
    return arg;
}

static void *offload_stay(void *arg)
{
    return strand_offload_on(lent, stay, arg);
}

static void *lend(void *arg)
{
    STRAND_SCOPE(scope);
    lent = strand_crew_open(scope, NULL);
    opened = 1;
    while (!entered)
        strand_yield();
    return arg;
}

static void *use_what_is_lent(void *arg)
{
    return strand_offload_on(lent, return_it, arg);
}

/* The owner leaves the scope, and has to wait. A call that is made before that may be refused. */
MISUSE(ending, "strand_offload_on", "its scope has been left")
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, lend, arg);
    while (!opened)
        strand_yield();
    strand_spawn(scope, offload_stay, arg);
    for (int i = 0; i < 10000; i++) {
        strand_exception_release(strand_try(use_what_is_lent, arg, NULL));
        strand_sleep(STRAND_MS);
    }
    return arg;
}

MISUSE(of_a_channel, "strand_offload_on", "is not a crew's")
{
    STRAND_SCOPE(scope);
    strand_chan chan = strand_chan_open(scope, 1, 1, NULL);
    strand_crew crew = {{chan.bits[0], chan.bits[1]}};
    return strand_offload_on(crew, return_it, arg);
}

static void *use_lent(void *arg)
{
    return strand_offload_with(STRAND_OFFLOAD_ATTR(.crew = lent), return_it, arg, 0);
}

static void *run_another(void *arg)
{
    return strand_run(STRAND_OPTIONS(.on_misuse = tell), use_lent, arg);
}

MISUSE(of_another_run, "strand_offload_with", "another run")
{
    STRAND_SCOPE(scope);
    lent = strand_crew_open(scope, NULL);
    return strand_offload(run_another, arg);
}

/* ---- arguments -------------------------------------------------------------------------------- */

MISUSE(open_without_size, "strand_crew_open", "strand_crew_attr.size")
{
    STRAND_SCOPE(scope);
    strand_crew_attr attr = {.max_threads = 1};
    strand_crew_open(scope, &attr);
    return arg;
}

MISUSE(call_without_size, "strand_offload_with", "strand_offload_attr.size")
{
    strand_offload_attr attr = {.borrows = true};
    return strand_offload_with(&attr, return_it, arg, 0);
}

MISUSE(info_without_size, "strand_crew_info_get", "strand_crew_info.size")
DOES(strand_crew_info info = {.size = 0}; strand_crew_info_get((strand_crew){{0, 0}}, &info))

MISUSE(too_many_threads, "strand_crew_open", "1 to 1024")
DOES(STRAND_SCOPE(scope); strand_crew_open(scope, STRAND_CREW_ATTR(.max_threads = 1025)))

MISUSE(negative_threads, "strand_crew_open", "1 to 1024")
DOES(STRAND_SCOPE(scope); strand_crew_open(scope, STRAND_CREW_ATTR(.max_threads = -1)))

static void *open_in(void *scope)
{
    strand_crew_open(*(strand_scope *)scope, NULL);
    return scope;
}

MISUSE(in_a_foreign_scope, "strand_crew_open", "only the strand that opened a scope")
DOES(STRAND_SCOPE(scope); strand_join(strand_spawn(scope, open_in, &scope)))

/* ---- sections --------------------------------------------------------------------------------- */

MISUSE(leave_in_a_section, "STRAND_SCOPE", "no-suspend section")
{
    STRAND_NO_SUSPEND;
    STRAND_SCOPE(scope);
    strand_crew_open(scope, NULL);
    return arg;
}

MISUSE(sleep_as_a_plain_thread, "strand_sim_sleep", "it was called from a strand, which would block its thread")
DOES(strand_sim_sleep(1))
MISUSE(route_of_no_address, "strand_sim_route", "address is NULL")
DOES(STRAND_IGNORE(strand_sim_route(NULL, STRAND_SIM_OPEN, 0)))
MISUSE(route_that_is_none, "strand_sim_route", "9 is not a route, or its delay of 0 ns is negative")
DOES(STRAND_IGNORE(strand_sim_route("::1", (enum strand_sim_route)9, 0)))

/* ---- functions and hooks ---------------------------------------------------------------------- */

static void *throw_it(void *arg)
{
    (void)arg;
    strand_throw(&STRAND_ERROR, "on purpose");
}

MISUSE_BY_THREAD(throw_offloaded, "strand_throw", "outside of strands")
{
    return strand_offload(throw_it, arg);
}

static void *exit_it(void *arg)
{
    pthread_exit(arg);
}

MISUSE_BY_THREAD(exit_thread, "strand_offload", "instead of returning")
{
    return strand_offload(exit_it, arg);
}

MISUSE_BY_THREAD(exit_thread_of_a_crew, "strand_offload_on", "the crew 'short-lived' was opened in")
{
    STRAND_SCOPE(scope);
    return strand_offload_on(strand_crew_open(scope, STRAND_CREW_ATTR(.name = "short-lived")), exit_it, arg);
}

static void throw_hook(void *arg)
{
    (void)throw_it(arg);
}

static ON_PURPOSE void sleep_hook(void *arg)
{
    (void)arg;
    strand_sleep(1);
}

static ON_PURPOSE void yield_hook(void *arg)
{
    (void)arg;
    strand_yield();
}

static void set_finish(void *arg)
{
    (void)arg;
    finish = 1;
    while (!returning)
        ;
    strand_time end = strand_in(200 * STRAND_MS);
    while (strand_now().ns < end.ns) /* so that the function has returned before this does, and the strand drops */
        ;
}

static strand_offload_attr attr = {.size = sizeof attr};

static void *call(void *arg)
{
    return strand_offload_with(&attr, stay, arg, 0);
}

static void *interrupt_call(void *arg)
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, call, arg);
    while (!entered)
        strand_yield();
    strand_cancel(child, NULL);
    strand_wait(child);
    return arg;
}

static void *interrupt_early(void *arg)
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, call, arg);
    strand_cancel(child, NULL);
    strand_wait(child);
    return arg;
}

MISUSE(drop_throws, "strand_offload_attr.drop", "has thrown")
{
    attr.drop = throw_hook;
    attr.stop = set_finish;
    return interrupt_call(arg);
}

MISUSE(release_throws, "strand_offload_attr.release", "has thrown")
{
    attr.release = throw_hook;
    return interrupt_early(arg);
}

MISUSE(release_blocks, "strand_yield", "strand_offload_attr.release")
{
    attr.release = yield_hook;
    return interrupt_early(arg);
}

MISUSE(stop_throws, "strand_offload_attr.stop", "has thrown")
{
    attr.stop = throw_hook;
    return interrupt_call(arg);
}

MISUSE(stop_blocks, "strand_sleep", "strand_offload_attr.stop")
{
    attr.stop = sleep_hook;
    return interrupt_call(arg);
}
