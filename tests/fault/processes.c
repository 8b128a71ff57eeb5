/*
 * Processes: their streams, their output, stopping them.
 */
#include "fault.h"

#include "strand/io.h"
#include "strand/process.h"

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
