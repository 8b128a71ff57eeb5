/*
 * Processes: their streams, their output, stopping them.
 */
#include "fault.h"

#include "strand/io.h"
#include "strand/process.h"
#include "strand/sim.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

/* The library's free: calls.c. */
void fault_free(void *memory);

static void free_captured(strand_captured *captured)
{
    fault_free(captured->output);
    fault_free(captured->errors);
}

static void output(void)
{
    const char *const argv[] = {"cat", NULL};
    __attribute__((cleanup(free_captured))) strand_captured got = {.size = sizeof got};
    strand_process_capture(STRAND_PROCESS_ATTR(.argv = argv), STRAND_CAPTURE_ATTR(.input = "word", .input_size = 4),
                           &got);
    FAULT_CHECK(got.end.code == 0 && got.output_size == 4 && strcmp(got.output, "word") == 0);
}

static void null_and_terminal(void)
{
    const char *const argv[] = {"sh", "-c", "exit 3", NULL};
    FAULT_FD int terminal = -1;
    STRAND_SCOPE(scope);
    strand_process_end end = {.size = sizeof end};
    strand_process_join(
        strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = argv, .in = {.kind = STRAND_STDIO_NULL},
                                                        .out = {.kind = STRAND_STDIO_TERMINAL, .ours = &terminal})),
        &end);
    FAULT_CHECK(end.code == 3);
}

static void stopped(void)
{
    const char *const argv[] = {"sleep", "1000", NULL};
    STRAND_SCOPE(scope);
    strand process = strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = argv, .grace_ns = STRAND_MS));
    strand_must(strand_process_signal(process, SIGCONT));
    strand_cancel(process, NULL);
    strand_process_end end = {.size = sizeof end};
    strand_process_join(process, &end);
    FAULT_CHECK(end.stopped && (end.signal == SIGTERM || end.signal == SIGKILL));
}

typedef STRAND_CHAN(strand_orphan) orphans;

/* What a reaper has left, because it was stopped. */
static void await_children(char *unused)
{
    (void)unused;
    while (waitpid(-1, NULL, 0) > 0)
        ;
}

static void orphan(void)
{
    __attribute__((cleanup(await_children))) char unused = 0;
    (void)unused;
    const char *const argv[] = {"sh", "-c", "exec 3<&0; (read x <&3; exit 5) & exit 0", NULL};
    FAULT_FD int held = -1;
    strand_orphan got;
    STRAND_SCOPE(scope);
    orphans ends = STRAND_CHAN_OPEN(orphans, scope, 1);
    strand reaper = strand_process_reap(scope, ends.untyped, STRAND_REAP_SUBREAPER);
    strand process = strand_process_start(
        scope, STRAND_PROCESS_ATTR(.argv = argv, .in = {.kind = STRAND_STDIO_PIPE, .ours = &held}));
    strand_process_join(process, NULL);
    strand_must(strand_close(held));
    held = -1;
    strand_must(STRAND_RECEIVE(ends, &got));
    FAULT_CHECK(got.end.code == 5);
    strand_cancel(reaper, NULL);
    strand_join(reaper);
}

static void none_is_left(char *unused)
{
    (void)unused;
    FAULT_CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

static void *root(void *arg)
{
    (void)arg;
    __attribute__((cleanup(none_is_left))) char unused = 0;
    (void)unused;
    output();
    null_and_terminal();
    stopped();
    orphan();
    return FAULT_DONE;
}

FAULT_WORKLOAD(processes, RUN_ALONE | RUN_PAIR, root, )

/* ---- functions that stand for programs -------------------------------------------------------------- */

/* Leaves the error that it gets in *error. */
static int echoes(strand_sim_process *process, void *error)
{
    char bytes[8];
    int64_t got = strand_read_all(process->in, bytes, sizeof bytes), late = strand_read(process->in, &bytes[7], 1);
    if (late < 0)
        got = late;
    if (got > 0)
        got = strand_write_all(process->out, bytes, (size_t)got);
    *(int *)error = got < 0 ? (int)got : 0;
    return 3;
}

static int catches(strand_sim_process *process, void *arg)
{
    int signal = 0;
    strand_sim_handle(process, SIGTERM, STRAND_SIM_CATCH);
    return STRAND_RECEIVE(process->signals, &signal) == 0 && signal == SIGTERM && arg ? 4 : 5;
}

static void *play(void *arg)
{
    (void)arg;
    const char *const echo[] = {"echoes", NULL}, *const catcher[] = {"catches", NULL};
    __attribute__((cleanup(free_captured))) strand_captured got = {.size = sizeof got};
    static int error;
    error = 0;
    strand_must(strand_sim_program("echoes", echoes, &error));
    strand_must(strand_sim_program("catches", catches, NULL));
    strand_process_capture(STRAND_PROCESS_ATTR(.argv = echo), STRAND_CAPTURE_ATTR(.input = "word", .input_size = 4),
                           &got);
    strand_must(error);
    FAULT_CHECK(got.end.signal || (got.end.code == 3 && got.output_size == 4 && strcmp(got.output, "word") == 0));
    STRAND_SCOPE(scope);
    strand_process_end end = {.size = sizeof end};
    const strand_stdio null = {.kind = STRAND_STDIO_NULL};
    strand process =
        strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = catcher, .in = null, .grace_ns = STRAND_MS));
    strand_cancel(process, NULL);
    strand_process_join(process, &end);
    FAULT_CHECK(end.stopped && (end.code == 5 || end.signal == SIGTERM || end.signal == SIGKILL));
    return FAULT_DONE;
}

FAULT_WORKLOAD(programs, RUN_ALONE | RUN_PAIR, play, )
