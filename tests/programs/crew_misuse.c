/*
 * One misuse of a crew, or of an offloaded call, per argument; the report goes to standard error, and the program has
 * to end by abort().
 */
#include "strand.h"
#include "strand/chan.h"
#include "strand/io.h"
#include "strand/pool.h"
#include "strand/sim.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#if defined(__clang__)
#define ON_PURPOSE                                                                                                     \
    __attribute__((no_thread_safety_analysis)) /* what the compiler can see to be misuse is meant to be */
#else
#define ON_PURPOSE
#endif

static void *return_it(void *arg)
{
    return arg;
}

/* ---- handles ---------------------------------------------------------------------------------- */

static __attribute__((noinline)) strand_crew open_and_leave(void)
{
    STRAND_SCOPE(scope);
    return strand_crew_open(scope, STRAND_CREW_ATTR(.name = "short-lived"));
}

static void *gone(void *arg)
{
    return strand_offload_on(open_and_leave(), return_it, arg);
}

static void *gone_info(void *arg)
{
    strand_crew_info info = {.size = sizeof info};
    strand_crew_info_get(open_and_leave(), &info);
    return arg;
}

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
static void *ending(void *arg)
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

static void *of_a_channel(void *arg)
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
    return strand_run(NULL, use_lent, arg);
}

static void *of_another_run(void *arg)
{
    STRAND_SCOPE(scope);
    lent = strand_crew_open(scope, NULL);
    return strand_offload(run_another, arg);
}

/* ---- arguments -------------------------------------------------------------------------------- */

static void *open_without_size(void *arg)
{
    STRAND_SCOPE(scope);
    strand_crew_attr attr = {.max_threads = 1};
    strand_crew_open(scope, &attr);
    return arg;
}

static void *call_without_size(void *arg)
{
    strand_offload_attr attr = {.borrows = true};
    return strand_offload_with(&attr, return_it, arg, 0);
}

static void *info_without_size(void *arg)
{
    strand_crew_info info = {.size = 0};
    strand_crew_info_get((strand_crew){{0, 0}}, &info);
    return arg;
}

static void *too_many_threads(void *arg)
{
    STRAND_SCOPE(scope);
    strand_crew_open(scope, STRAND_CREW_ATTR(.max_threads = 1025));
    return arg;
}

static void *negative_threads(void *arg)
{
    STRAND_SCOPE(scope);
    strand_crew_open(scope, STRAND_CREW_ATTR(.max_threads = -1));
    return arg;
}

static void *no_function(void *arg)
{
    return strand_offload_with(NULL, NULL, arg, 0);
}

static void *no_arguments(void *arg)
{
    (void)arg;
    return strand_offload_with(NULL, return_it, NULL, 4);
}

static void *open_in(void *scope)
{
    strand_crew_open(*(strand_scope *)scope, NULL);
    return scope;
}

static void *in_a_foreign_scope(void *arg)
{
    STRAND_SCOPE(scope);
    strand_join(strand_spawn(scope, open_in, &scope));
    return arg;
}

/* ---- sections --------------------------------------------------------------------------------- */

static ON_PURPOSE void *leave_in_a_section(void *arg)
{
    STRAND_NO_SUSPEND;
    STRAND_SCOPE(scope);
    strand_crew_open(scope, NULL);
    return arg;
}

static void *sleep_as_a_plain_thread(void *arg)
{
    strand_sim_sleep(1);
    return arg;
}

/* ---- functions and hooks ---------------------------------------------------------------------- */

static void *throw_it(void *arg)
{
    (void)arg;
    strand_throw(&STRAND_ERROR, "on purpose");
}

static void *throw_offloaded(void *arg)
{
    return strand_offload(throw_it, arg);
}

static void *exit_it(void *arg)
{
    pthread_exit(arg);
}

static void *exit_thread(void *arg)
{
    return strand_offload(exit_it, arg);
}

static void *exit_thread_of_a_crew(void *arg)
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

static void *drop_throws(void *arg)
{
    attr.drop = throw_hook;
    attr.stop = set_finish;
    return interrupt_call(arg);
}

static void *release_throws(void *arg)
{
    attr.release = throw_hook;
    return interrupt_early(arg);
}

static void *release_blocks(void *arg)
{
    attr.release = yield_hook;
    return interrupt_early(arg);
}

static void *stop_throws(void *arg)
{
    attr.stop = throw_hook;
    return interrupt_call(arg);
}

static void *stop_blocks(void *arg)
{
    attr.stop = sleep_hook;
    return interrupt_call(arg);
}

static const struct {
    const char *name;
    strand_fn *fn;
} cases[] = {
#define CASE(name)                                                                                                     \
    {                                                                                                                  \
#name, name                                                                                                    \
    }
    CASE(gone),
    CASE(gone_info),
    CASE(ending),
    CASE(of_a_channel),
    CASE(of_another_run),
    CASE(open_without_size),
    CASE(call_without_size),
    CASE(info_without_size),
    CASE(too_many_threads),
    CASE(negative_threads),
    CASE(no_function),
    CASE(no_arguments),
    CASE(in_a_foreign_scope),
    CASE(leave_in_a_section),
    CASE(sleep_as_a_plain_thread),
    {"throw", throw_offloaded},
    CASE(exit_thread),
    CASE(exit_thread_of_a_crew),
    CASE(drop_throws),
    CASE(release_throws),
    CASE(release_blocks),
    CASE(stop_throws),
    CASE(stop_blocks),
};

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(name, cases[i].name) == 0)
            strand_run(NULL, cases[i].fn, NULL);
    puts("still alive");
    return 0;
}
