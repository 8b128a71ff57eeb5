/*
 * Processes that functions stand for: parents start them, signal them from other strands, and join them, stop them, or
 * leave their scopes, at any time. Each process begins once and has ended when its parent goes on; it ends by its own
 * exit code, unless a signal ended it that it does not handle; one that is stopped gets its time of grace and no more;
 * and what it has written before its end arrives.
 */
#include "sim.h"

#include "strand/exception.h"
#include "strand/io.h"
#include "strand/process.h"
#include "strand/sim.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { PARENTS = 3, ROUNDS = 3, CODE = 7, CODE_CAUGHT = 5 };
#define GRACE (200 * STRAND_US)
#define FOREVER (3600 * STRAND_S)

/* What a process does. */
enum way { EXITS, WRITES, IGNORES, CATCHES, CATCHES_SLOWLY, SLEEPS, WAYS };

static struct {
    _Atomic int begun, ended, started, joined, left, by_signal, refused;
    _Atomic int64_t bytes;
} world;

/* ---- programs ---------------------------------------------------------------------------------------- */

static void count_end(int *unused)
{
    (void)unused;
    world.ended++;
}

static int exit_after(int64_t ns, int code)
{
    strand_sleep(ns);
    return code;
}

static int await_signal(strand_sim_process *process, int64_t ns)
{
    int signal;
    strand_sim_handle(process, SIGTERM, STRAND_SIM_CATCH);
    while (STRAND_RECEIVE(process->signals, &signal) == 0 && signal != SIGTERM)
        ;
    return exit_after(ns, CODE_CAUGHT);
}

static int program(strand_sim_process *process, void *arg)
{
    __attribute__((cleanup(count_end), unused)) int counted = 0;
    (void)arg;
    world.begun++;
    enum way way = (enum way)atoi(process->argv[1]);
    int64_t ns = (int64_t)atoi(process->argv[2]) * STRAND_US;
    switch (way) {
    case EXITS:
        return exit_after(ns, CODE);
    case WRITES:
        for (int i = 0; i < 3; i++) {
            strand_sleep(ns);
            if (strand_write_all(process->out, "bytes", 5) != 5)
                return 1;
            world.bytes += 5;
        }
        return CODE;
    case IGNORES:
        strand_sim_handle(process, SIGTERM, STRAND_SIM_IGNORE);
        return exit_after(FOREVER, CODE);
    case CATCHES:
        return await_signal(process, 0);
    case CATCHES_SLOWLY:
        return await_signal(process, FOREVER);
    default:
        return exit_after(FOREVER, CODE);
    }
}

/* ---- parents ------------------------------------------------------------------------------------------- */

struct job {
    enum way way;
    strand process;
    int out;
    bool has_out;
    bool signalled; /* by a strand beside the parent */
};

static void check_end(const struct job *job, const strand_process_end *end, bool stopped)
{
    bool own = end->code == CODE || end->code == CODE_CAUGHT, refuses = sim_refuses_memory();
    SIM_CHECK_EQ(end->error, 0);
    SIM_CHECK((end->code == -1) == (end->signal != 0));
    SIM_CHECK(own || end->signal == SIGKILL || end->signal == SIGTERM || end->signal == SIGUSR1 ||
              (refuses && end->signal == SIGABRT) || (refuses && end->code == 1));
    SIM_CHECK(stopped || !end->stopped);
    SIM_CHECK(end->code != CODE || job->way == EXITS || job->way == WRITES);
    SIM_CHECK(end->code != CODE_CAUGHT || job->way == CATCHES);
    SIM_CHECK(end->signal != SIGKILL || refuses || (end->stopped && (job->way == IGNORES || job->way >= CATCHES)));
    SIM_CHECK(end->signal != SIGUSR1 || job->signalled);
    world.by_signal += end->signal != 0;
}

static void signal_it(struct sim_life *me, void *arg)
{
    struct job *job = arg;
    strand_sleep((int64_t)sim_draw(&me->chance, 100) * STRAND_US);
    job->signalled = true;
    int error = strand_process_signal(job->process, SIGUSR1);
    SIM_CHECK(error == 0 || error == -ESRCH || (sim_refuses_memory() && error == -ENOMEM));
}

static void read_all(const struct job *job)
{
    char byte;
    while (job->has_out && strand_read(job->out, &byte, 1) == 1)
        world.bytes--;
}

/* Joins it, if it ends by itself; or stops it before. Processes that run for ever are stopped. */
static void end_it(struct sim_life *me, struct job *job)
{
    strand_process_end end = {.size = sizeof end};
    bool stops = sim_one_in(&me->chance, 2) || (job->way != EXITS && job->way != WRITES);
    strand_sleep((int64_t)sim_draw(&me->chance, 100) * STRAND_US);
    strand_time before = strand_now();
    if (stops)
        strand_cancel(job->process, "by its parent");
    else
        read_all(job);
    strand_process_join(job->process, &end);
    SIM_CHECK(!stops || end.signal != SIGKILL || sim_refuses_memory() || strand_now().ns - before.ns >= GRACE);
    check_end(job, &end, stops);
    world.joined++;
}

static void start(struct sim_life *me, strand_scope scope, struct job *job)
{
    char way[8], time[8];
    job->way = (enum way)sim_draw(&me->chance, WAYS);
    snprintf(way, sizeof way, "%d", (int)job->way);
    snprintf(time, sizeof time, "%u", (unsigned)sim_draw(&me->chance, 60));
    const char *const argv[] = {"program", way, time, NULL};
    strand_stdio out = {.kind = STRAND_STDIO_NULL};
    if (job->way == WRITES)
        out = (strand_stdio){.kind = STRAND_STDIO_PIPE, .ours = &job->out};
    job->process = strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = argv, .out = out, .grace_ns = GRACE));
    job->has_out = job->way == WRITES;
    world.started++;
}

static void close_out(struct job **job)
{
    if ((*job)->has_out) {
        STRAND_SHIELD;
        strand_must((int)strand_close((*job)->out));
    }
    free(*job);
}

static void use_one(struct sim_life *me, void *arg)
{
    (void)arg;
    __attribute__((cleanup(close_out))) struct job *job = calloc(1, sizeof *job);
    STRAND_SCOPE(scope);
    start(me, scope, job);
    STRAND_SCOPE(others);
    if (sim_one_in(&me->chance, 3))
        sim_spawn(me, others, signal_it, job);
    if (sim_one_in(&me->chance, 4)) { /* leaves the scope */
        world.left++;
        strand_scope_cancel(others, NULL);
        strand_scope_cancel(scope, "it is left");
        return;
    }
    end_it(me, job);
    strand_scope_join(others);
}

static void parent(struct sim_life *me, void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        strand_exception *e = sim_try(me, use_one, arg);
        SIM_CHECK(!e || sim_no_memory(e) || strand_exception_is(e, &STRAND_INTERRUPTED));
        world.refused += e && sim_no_memory(e);
        sim_settle(e);
    }
}

static void root(struct sim_life *me, void *arg)
{
    strand_must(strand_sim_program("program", program, NULL));
    STRAND_SCOPE_WITH(scope, STRAND_COLLECT);
    struct sim_life *parents[PARENTS];
    for (int i = 0; i < PARENTS; i++)
        parents[i] = sim_spawn(me, scope, parent, arg);
    strand_sleep((int64_t)sim_draw(&me->chance, 300) * STRAND_US);
    if (sim_one_in(&me->chance, 2))
        sim_cancel(parents[sim_draw(&me->chance, PARENTS)], "among processes");
    strand_scope_join(scope);
}

static void oracle(void)
{
    SIM_CHECK_EQ(world.begun, world.ended);
    SIM_CHECK(world.begun <= world.started || sim_refuses_memory());
    sim_observe((uint64_t)world.begun << 32 | (uint64_t)world.by_signal << 16 | (uint64_t)world.joined);
}

SIM_WORKLOAD_THAT(SIM_NO_MEMORY, processes, root, oracle, world);
