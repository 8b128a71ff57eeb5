/*
 * Misuse of processes.
 */
#include "cases.h"

#include "strand/process.h"
#include "strand/sim.h"

#include <limits.h>

static const char *const argv[] = {"true", NULL};
static int fd;

static void *return_it(void *arg)
{
    return arg;
}

static NOINLINE strand_scope enter_and_leave(void)
{
    STRAND_SCOPE(scope);
    return scope;
}

/* ---- attributes ------------------------------------------------------------------------------- */

#define STARTS(...) DOES(STRAND_SCOPE(scope); strand_process_start(scope, STRAND_PROCESS_ATTR(__VA_ARGS__)))

MISUSE(no_attr, "strand_process_start", "strand_process_attr is NULL")
DOES(STRAND_SCOPE(scope); strand_process_start(scope, NULL))
MISUSE(no_size, "strand_process_start", "strand_process_attr.size is 0")
DOES(STRAND_SCOPE(scope); strand_process_start(scope, &(strand_process_attr){.argv = argv}))
MISUSE(no_arguments, "strand_process_start", "attr.argv is empty")
STARTS(.argv = NULL)
MISUSE(empty_arguments, "strand_process_start", "attr.argv is empty")
STARTS(.argv = &argv[1])
MISUSE(odd_stream, "strand_process_start", "attr.out.kind is 99")
STARTS(.argv = argv, .out = {.kind = (enum strand_stdio_kind)99})
MISUSE(pipe_to_nowhere, "strand_process_start", "attr.in.ours is NULL")
STARTS(.argv = argv, .in = {.kind = STRAND_STDIO_PIPE})
MISUSE(descriptor_for_nothing, "strand_process_start", "attr.err.ours is set")
STARTS(.argv = argv, .err = {.kind = STRAND_STDIO_NULL, .ours = &fd})
MISUSE(output_as_input, "strand_process_start", "which is for attr.err")
STARTS(.argv = argv, .in = {.kind = STRAND_STDIO_OUTPUT})
MISUSE(two_masters, "strand_process_start", "the terminal has one master")
STARTS(.argv = argv, .in = {.kind = STRAND_STDIO_TERMINAL, .ours = &fd},
       .out = {.kind = STRAND_STDIO_TERMINAL, .ours = &(int){0}})
MISUSE(terminal_in_the_callers_group, "strand_process_start", "leads a session")
STARTS(.argv = argv, .in = {.kind = STRAND_STDIO_TERMINAL, .ours = &fd}, .group = STRAND_PROCESS_SHARED)
MISUSE(standard_number, "strand_process_start", "attr.fds[0].number is 2")
STARTS(.argv = argv, .fds = (const strand_process_fd[]){{2, 0}}, .fd_count = 1)
MISUSE(great_number, "strand_process_start", "attr.fds[0].number is")
STARTS(.argv = argv, .fds = (const strand_process_fd[]){{INT_MAX, 0}}, .fd_count = 1)
MISUSE(number_twice, "strand_process_start", "attr.fds[0].number and attr.fds[1].number are both 5")
STARTS(.argv = argv, .fds = (const strand_process_fd[]){{5, 0}, {5, 1}}, .fd_count = 2)
MISUSE(no_descriptors, "strand_process_start", "attr.fds")
STARTS(.argv = argv, .fd_count = 1)
MISUSE(change_of_no_variable, "strand_process_start", "attr.env_changes[1] is \"=1\"")
STARTS(.argv = argv, .env_changes = (const char *const[]){"A=1", "=1", NULL})
MISUSE(no_limits, "strand_process_start", "attr.limits")
STARTS(.argv = argv, .limit_count = 1)
MISUSE(no_groups, "strand_process_start", "attr.user->groups")
STARTS(.argv = argv, .user = &(const strand_process_user){.group_count = 1})
MISUSE(callers_user, "strand_process_start", "is -1")
STARTS(.argv = argv, .user = &(const strand_process_user){.user = UINT32_MAX})
MISUSE(odd_group, "strand_process_start", "attr.group is 7")
STARTS(.argv = argv, .group = (enum strand_process_group)7)
MISUSE(odd_signal, "strand_process_start", "attr.stop_signal is 65")
STARTS(.argv = argv, .stop_signal = 65)

/* ---- scopes, handles, capturing ---------------------------------------------------------------- */

static void *start_in(void *scope)
{
    strand_process_start(*(strand_scope *)scope, STRAND_PROCESS_ATTR(.argv = argv));
    return scope;
}

MISUSE(scope_that_was_left, "strand_process_start", "the scope has been left")
DOES(strand_process_start(enter_and_leave(), STRAND_PROCESS_ATTR(.argv = argv)))
MISUSE(scope_of_another_strand, "strand_process_start", "only the strand that opened a scope may do that")
{
    static strand_scope other;
    STRAND_SCOPE(scope);
    other = scope;
    strand_join(strand_spawn(scope, start_in, &other));
    return arg;
}
MISUSE(no_process, "strand_process_join", "the strand is no process")
DOES(STRAND_SCOPE(scope); strand_process_join(strand_spawn(scope, return_it, NULL), NULL))
MISUSE(joined_twice, "strand_join", "the strand is gone")
{
    STRAND_SCOPE(scope);
    strand process = strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = argv));
    strand_process_join(process, NULL);
    strand_process_join(process, NULL);
    return arg;
}
MISUSE(end_without_size, "strand_process_join", "strand_process_end.size is 0")
{
    STRAND_SCOPE(scope);
    strand_process_end end = {.size = 0};
    strand_process_join(strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = argv)), &end);
    return arg;
}
MISUSE(captured_without_size, "strand_process_capture", "strand_captured.size is 0")
DOES(strand_captured got = {.size = 0}; strand_process_capture(STRAND_PROCESS_ATTR(.argv = argv), NULL, &got))
MISUSE(no_input, "strand_process_capture", "input")
DOES(strand_captured got = {.size = sizeof got};
     strand_process_capture(STRAND_PROCESS_ATTR(.argv = argv), STRAND_CAPTURE_ATTR(.input_size = 1), &got))
MISUSE(two_inputs, "strand_process_capture", "both capture.input and attr.in are set")
DOES(strand_captured got = {.size = sizeof got};
     strand_process_capture(STRAND_PROCESS_ATTR(.argv = argv, .in = {.kind = STRAND_STDIO_NULL}),
                            STRAND_CAPTURE_ATTR(.input = "x", .input_size = 1), &got))

/* ---- reaping -------------------------------------------------------------------------------- */

MISUSE(odd_flags, "strand_process_reap", "flags is 0x6")
DOES(STRAND_SCOPE(scope); strand_process_reap(scope, (strand_chan){{0, 0}}, 6))
MISUSE(other_values, "strand_process_reap", "the channel's values have 4 bytes")
DOES(STRAND_SCOPE(scope); strand_process_reap(scope, strand_chan_open(scope, 4, 1, NULL), 0))
MISUSE(no_such_channel, "strand_process_reap", "channel")
DOES(STRAND_SCOPE(scope); strand_process_reap(scope, (strand_chan){{8, 8}}, 0))
MISUSE(reaper_of_a_scope_that_was_left, "strand_process_reap", "the scope has been left")
DOES(strand_process_reap(enter_and_leave(), (strand_chan){{0, 0}}, 0))

/* ---- functions that stand for programs ----------------------------------------------------------------- */

static int handles(strand_sim_process *process, void *arg)
{
    const int *what = arg;
    strand_sim_handle(process, what[0], (enum strand_sim_action)what[1]);
    return 0;
}

static void *handle_in_a_program(int signal, int action)
{
    static int what[2];
    what[0] = signal;
    what[1] = action;
    strand_must(strand_sim_program("true", handles, what));
    STRAND_SCOPE(scope);
    strand_process_join(strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = argv)), NULL);
    return NULL;
}

MISUSE(program_without_a_name, "strand_sim_program", "the name is empty")
DOES(strand_must(strand_sim_program("", handles, NULL)))
MISUSE(program_without_a_function, "strand_sim_program", "the function is NULL")
DOES(strand_must(strand_sim_program("true", NULL, NULL)))
MISUSE(kill_cannot_be_handled, "strand_sim_handle", "signal 9 can't be handled")
DOES(handle_in_a_program(9, STRAND_SIM_IGNORE))
MISUSE(odd_action, "strand_sim_handle", "the action is 3")
DOES(handle_in_a_program(10, 3))
