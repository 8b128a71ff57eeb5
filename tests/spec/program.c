/*
 * Programs that a test supplies: functions that stand for processes, under seeds and on real threads.
 */
#define SUITE program
#include "test.h"

#include "strand/chan.h"
#include "strand/exception.h"
#include "strand/io.h"
#include "strand/process.h"
#include "strand/select.h"
#include "strand/sim.h"

#include <errno.h>
#include <signal.h>

#define FOREVER (3600 * STRAND_S)
#define ARGV(...) ((const char *const[]){__VA_ARGS__, NULL})

static void program(const char *name, strand_sim_program_fn *fn, void *arg)
{
    CHECK_EQ(strand_sim_program(name, fn, arg), 0);
}

static strand_process_end join(strand process)
{
    strand_process_end end = {.size = sizeof end};
    strand_process_join(process, &end);
    CHECK_EQ(end.error, 0);
    return end;
}

/* ---- functions that stand for programs --------------------------------------------------------------- */

/* Exits with the code that its argument names. */
static int exits(strand_sim_process *process, void *arg)
{
    (void)arg;
    process->user_ns = 7;
    process->system_ns = 8;
    process->peak_bytes = 9;
    return atoi(process->argv[1]);
}

static int cat(strand_sim_process *process, void *arg)
{
    (void)arg;
    char bytes[100];
    int64_t got;
    while ((got = strand_read(process->in, bytes, sizeof bytes)) > 0)
        if (strand_write_all(process->out, bytes, (size_t)got) < 0)
            return 2;
    return got < 0;
}

static void say(int fd, const char *text)
{
    CHECK_EQ(strand_write_all(fd, text, strlen(text)), strlen(text));
}

static int says_and_sleeps(strand_sim_process *process, void *arg)
{
    say(process->out, "ready\n");
    strand_sleep(FOREVER);
    return arg != NULL;
}

/* Ends with 5 some time after SIGTERM. */
static int ends_slowly(strand_sim_process *process, void *time_ns)
{
    int signal;
    strand_sim_handle(process, SIGTERM, STRAND_SIM_CATCH);
    say(process->out, "ready\n");
    CHECK_EQ(STRAND_RECEIVE(process->signals, &signal), 0);
    CHECK_EQ(signal, SIGTERM);
    strand_sleep((int64_t)(intptr_t)time_ns);
    return 5;
}

static int ignores(strand_sim_process *process, void *arg)
{
    strand_sim_handle(process, SIGTERM, STRAND_SIM_IGNORE);
    return says_and_sleeps(process, arg);
}

static void await_ready(int fd)
{
    char text[7] = "";
    CHECK_EQ(strand_read_all(fd, text, 6), 6);
    CHECK_STR(text, "ready\n");
}

static strand start(strand_scope scope, const char *name, int64_t grace_ns, int *out)
{
    strand process = strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = ARGV(name), .grace_ns = grace_ns,
                                                                     .out = {.kind = STRAND_STDIO_PIPE, .ours = out}));
    await_ready(*out);
    return process;
}

/* ---- ends and streams ------------------------------------------------------------------------------- */

TEST_INSIDE(a_function_stands_for_a_process)
{
    program("exits", exits, NULL);
    STRAND_SCOPE(scope);
    strand_process_end end = join(strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = ARGV("exits", "263"))));
    CHECK_EQ(end.code, 7);
    CHECK_EQ(end.signal, 0);
    CHECK(!end.stopped);
    CHECK_EQ(end.user_ns, 7);
    CHECK_EQ(end.system_ns, 8);
    CHECK_EQ(end.peak_bytes, 9);
}

static int describes(strand_sim_process *process, void *arg)
{
    char text[100];
    CHECK_PTR(arg, TEST_PTR(3));
    snprintf(text, sizeof text, "%s %s %s %s %d %d %d", process->argv[0], process->argv[1], process->env[0],
             process->directory, process->pid, (int)process->fd_count, process->fds[0].number);
    say(process->out, text);
    say(process->err, "errors");
    CHECK_EQ(process->size, sizeof *process);
    return 0;
}

TEST_INSIDE(it_gets_the_arguments_and_more)
{
    program("file", describes, TEST_PTR(3));
    strand_captured got = {.size = sizeof got};
    strand_process_capture(STRAND_PROCESS_ATTR(.argv = ARGV("name", "word"), .file = "file", .env = ARGV("A=B"),
                                               .directory = "folder", .fds = &(strand_process_fd){9, 1}, .fd_count = 1),
                           NULL, &got);
    CHECK_STR(got.output, "name word A=B folder 1000 1 9");
    CHECK_STR(got.errors, "errors");
    free(got.output);
    free(got.errors);
}

TEST_INSIDE(it_reads_and_writes_through_pipes)
{
    enum { SIZE = 3000 };
    char *bytes = malloc(SIZE);
    for (int i = 0; i < SIZE; i++)
        bytes[i] = (char)(i * 7 + i / 256);
    program("cat", cat, NULL);
    strand_captured got = {.size = sizeof got};
    strand_process_capture(STRAND_PROCESS_ATTR(.argv = ARGV("cat")),
                           STRAND_CAPTURE_ATTR(.input = bytes, .input_size = SIZE), &got);
    CHECK_EQ(got.output_size, SIZE);
    CHECK_EQ(memcmp(got.output, bytes, SIZE), 0);
    CHECK_EQ(got.end.code, 0);
    free(got.output);
    free(got.errors);
    free(bytes);
}

static int uses_null(strand_sim_process *process, void *arg)
{
    char byte;
    char *many = calloc(1, 200000);
    CHECK_EQ(strand_read(process->in, &byte, 1), 0);
    CHECK_EQ(strand_write_all(process->out, many, 200000), 200000);
    CHECK_EQ(strand_write_all(process->err, many, 200000), 200000);
    free(many);
    return arg != NULL;
}

TEST_INSIDE(a_null_stream_is_empty_and_takes_all)
{
    program("null", uses_null, NULL);
    const strand_stdio null = {.kind = STRAND_STDIO_NULL};
    STRAND_SCOPE(scope);
    CHECK_EQ(join(strand_process_start(scope,
                                       STRAND_PROCESS_ATTR(.argv = ARGV("null"), .in = null, .out = null, .err = null)))
                 .code,
             0);
}

TEST_INSIDE(processes_may_be_connected_by_the_callers_pipe)
{
    int ends[2], out;
    program("cat", cat, NULL);
    program("ready", says_and_sleeps, NULL);
    CHECK_EQ(strand_pipe(ends), 0);
    STRAND_SCOPE(scope);
    strand writer = strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = ARGV("ready"),
                                                                    .out = {.kind = STRAND_STDIO_FD, .fd = ends[1]},
                                                                    .err = {.kind = STRAND_STDIO_OUTPUT}));
    strand reader = strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = ARGV("cat"),
                                                                    .in = {.kind = STRAND_STDIO_FD, .fd = ends[0]},
                                                                    .out = {.kind = STRAND_STDIO_PIPE, .ours = &out}));
    await_ready(out);
    strand_cancel(writer, NULL);
    CHECK_EQ(join(writer).signal, SIGTERM);
    strand_close(ends[1]);
    CHECK_EQ(join(reader).code, 0);
    strand_close(ends[0]);
    strand_close(out);
}

static int closes_late(strand_sim_process *process, void *arg)
{
    say(process->out, "word");
    strand_sleep(STRAND_MS);
    say(process->out, "s");
    return arg != NULL;
}

TEST_INSIDE(its_pipes_are_closed_when_it_ends)
{
    int out;
    char text[8] = "";
    program("late", closes_late, NULL);
    STRAND_SCOPE(scope);
    strand process = strand_process_start(
        scope, STRAND_PROCESS_ATTR(.argv = ARGV("late"), .out = {.kind = STRAND_STDIO_PIPE, .ours = &out}));
    CHECK_EQ(strand_read_all(out, text, sizeof text - 1), 5);
    CHECK_STR(text, "words");
    CHECK_EQ(join(process).code, 0);
    strand_close(out);
}

/* ---- failures of the start ------------------------------------------------------------------------- */

static void *start_missing(void *scope)
{
    int fd;
    strand_process_start(*(strand_scope *)scope,
                         STRAND_PROCESS_ATTR(.argv = ARGV("true"), .in = {.kind = STRAND_STDIO_PIPE, .ours = &fd}));
    return NULL;
}

static void *start_with_terminal(void *scope)
{
    int fd, terminal;
    strand_process_start(*(strand_scope *)scope,
                         STRAND_PROCESS_ATTR(.argv = ARGV("exits", "0"), .in = {.kind = STRAND_STDIO_PIPE, .ours = &fd},
                                             .out = {.kind = STRAND_STDIO_TERMINAL, .ours = &terminal}));
    return NULL;
}

TEST_INSIDE(a_program_that_no_function_stands_for_does_not_exist)
{
    program("exits", exits, NULL);
    struct {
        strand_fn *fn;
        int code;
        const char *words;
    } table[] = {{start_missing, -ENOENT, "running the program: true"},
                 {start_with_terminal, -ENOTSUP, "opening a standard stream: standard"}};
    STRAND_SCOPE(scope);
    int before = test_count_entries("/proc/self/fd");
    for (int i = 0; i < 2; i++) {
        strand_exception *e = strand_try(table[i].fn, &scope, NULL);
        CHECK_KIND(e, &STRAND_SYSTEM);
        CHECK_EQ(strand_exception_code(e), table[i].code);
        CHECK_CONTAINS(strand_exception_text(e), table[i].words);
        strand_exception_release(e);
    }
    CHECK(test_count_entries("/proc/self/fd") <= before + 4);
}

static int exits_nine(strand_sim_process *process, void *arg)
{
    return process->pid > 0 && !arg ? 9 : 0;
}

TEST_INSIDE(the_latest_function_of_a_name_counts)
{
    program("exits", exits, NULL);
    program("exits", exits_nine, NULL);
    STRAND_SCOPE(scope);
    CHECK_EQ(join(strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = ARGV("exits", "1")))).code, 9);
}

/* ---- signals and stopping -------------------------------------------------------------------------- */

TEST_INSIDE(a_signal_that_it_does_not_handle_ends_it)
{
    int out;
    program("ready", says_and_sleeps, NULL);
    STRAND_SCOPE(scope);
    strand process = start(scope, "ready", 0, &out);
    CHECK_EQ(strand_process_pid(process), 1000);
    CHECK_EQ(strand_process_signal(process, 0), 0);
    CHECK_EQ(strand_process_signal(process, SIGCHLD), 0);
    CHECK_EQ(strand_process_signal(process, SIGSTOP), 0);
    CHECK_EQ(strand_process_signal(process, 65), -EINVAL);
    CHECK(!strand_ended(process));
    CHECK_EQ(strand_process_signal(process, SIGUSR1), 0);
    strand_process_end end = join(process);
    CHECK_EQ(end.signal, SIGUSR1);
    CHECK_EQ(end.code, -1);
    CHECK(!end.stopped);
    strand_close(out);
}

TEST_INSIDE(an_ended_one_keeps_its_number_and_gets_no_signal)
{
    program("exits", exits, NULL);
    STRAND_SCOPE(scope);
    strand process = strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = ARGV("exits", "1")));
    strand_wait(process);
    CHECK_EQ(strand_process_pid(process), 1000);
    CHECK_EQ(strand_process_signal(process, SIGKILL), -ESRCH);
    strand_process_end end = join(process);
    CHECK_EQ(end.code, 1);
    CHECK_EQ(end.pid, 1000);
}

TEST_INSIDE(a_process_may_end_in_its_own_way_within_its_grace)
{
    int out;
    program("slow", ends_slowly, TEST_PTR(2 * STRAND_MS));
    STRAND_SCOPE(scope);
    strand process = start(scope, "slow", FOREVER, &out);
    strand_time before = strand_now();
    strand_cancel(process, NULL);
    strand_process_end end = join(process);
    CHECK_EQ(end.code, 5);
    CHECK_EQ(end.signal, 0);
    CHECK(end.stopped);
    CHECK(strand_now().ns - before.ns >= 2 * STRAND_MS);
    strand_close(out);
}

TEST_INSIDE(a_process_that_ignores_its_stop_signal_is_killed_after_its_grace)
{
    int out;
    program("ignores", ignores, NULL);
    STRAND_SCOPE(scope);
    strand process = start(scope, "ignores", 3 * STRAND_MS, &out);
    CHECK_EQ(strand_process_signal(process, SIGTERM), 0);
    strand_time before = strand_now();
    strand_cancel(process, NULL);
    strand_process_end end = join(process);
    CHECK_EQ(end.signal, SIGKILL);
    CHECK(end.stopped);
    CHECK(strand_now().ns - before.ns >= 3 * STRAND_MS);
    strand_close(out);
}

TEST_INSIDE(a_process_that_takes_longer_than_its_grace_is_killed)
{
    int out;
    program("slow", ends_slowly, TEST_PTR(FOREVER));
    STRAND_SCOPE(scope);
    strand process = start(scope, "slow", STRAND_MS, &out);
    strand_cancel(process, NULL);
    CHECK_EQ(join(process).signal, SIGKILL);
    strand_close(out);
}

/* It catches the interruption, and goes on as long as it can. */
static int clings(strand_sim_process *process, void *arg)
{
    say(process->out, "ready\n");
    for (int i = 0; i < 3; i++) {
        STRAND_TRY {
            strand_sleep(FOREVER);
        }
        STRAND_CATCH(&STRAND_INTERRUPTED, e) {
        }
        STRAND_END
    }
    return arg == NULL ? 4 : 3;
}

TEST_INSIDE(sigkill_ends_a_process_whatever_it_does)
{
    int out;
    char byte;
    program("clings", clings, NULL);
    STRAND_SCOPE(scope);
    strand process = start(scope, "clings", -1, &out);
    strand_cancel(process, NULL);
    strand_process_end end = join(process);
    CHECK_EQ(end.signal, SIGKILL);
    CHECK_EQ(end.code, -1);
    CHECK_EQ(strand_read(out, &byte, 1), 0);
    strand_close(out);
}

static int throws(strand_sim_process *process, void *arg)
{
    process->dumps_core = true;
    strand_throw(&STRAND_ERROR, "thrown by %d", process->pid + (arg != NULL));
}

TEST_INSIDE(an_exception_of_the_function_aborts_the_process)
{
    program("throws", throws, NULL);
    STRAND_SCOPE(scope);
    strand_process_end end = join(strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = ARGV("throws"))));
    CHECK_EQ(end.signal, SIGABRT);
    CHECK(end.dumped_core);
}

static int counts_signals(strand_sim_process *process, void *arg)
{
    int signal, sum = arg != NULL;
    strand_sim_handle(process, SIGUSR1, STRAND_SIM_CATCH);
    strand_sim_handle(process, SIGUSR2, STRAND_SIM_CATCH);
    say(process->out, "ready\n");
    while (STRAND_RECEIVE(process->signals, &signal) == 0 && signal == SIGUSR1)
        sum++;
    strand_sim_handle(process, SIGUSR1, STRAND_SIM_DEFAULT);
    say(process->out, "ready\n");
    strand_sleep(FOREVER);
    return sum;
}

TEST_INSIDE(caught_signals_arrive_in_their_order)
{
    int out;
    program("counts", counts_signals, NULL);
    STRAND_SCOPE(scope);
    strand process = start(scope, "counts", 0, &out);
    for (int i = 0; i < 20; i++) /* more than the channel has room for */
        CHECK_EQ(strand_process_signal(process, SIGUSR1), 0);
    CHECK_EQ(strand_process_signal(process, SIGUSR2), 0);
    await_ready(out);
    CHECK_EQ(strand_process_signal(process, SIGUSR1), 0);
    CHECK_EQ(join(process).signal, SIGUSR1);
    strand_close(out);
}

static void *leave_running(void *out)
{
    STRAND_SCOPE(scope);
    start(scope, "ready", 0, out);
    return NULL;
}

TEST_INSIDE(leaving_the_scope_stops_it_and_reports_it_as_live)
{
    int out;
    char byte;
    program("ready", says_and_sleeps, NULL);
    strand_exception *e = strand_try(leave_running, &out, NULL);
    CHECK_KIND(e, &STRAND_LIVE_STRANDS);
    CHECK_CONTAINS(strand_exception_text(e), "process ready");
    strand_exception_release(e);
    CHECK_EQ(strand_read(out, &byte, 1), 0);
    strand_close(out);
}

/* ---- capturing --------------------------------------------------------------------------------------- */

static int writes_for_ever(strand_sim_process *process, void *arg)
{
    while (strand_write_all(process->out, "0123456789", 10) == 10)
        strand_sleep(STRAND_US);
    return arg != NULL;
}

static void *capture_too_much(void *got)
{
    strand_process_capture(STRAND_PROCESS_ATTR(.argv = ARGV("writes"), .grace_ns = FOREVER),
                           STRAND_CAPTURE_ATTR(.max_size = 1000), got);
    return NULL;
}

TEST_INSIDE(more_output_than_allowed_stops_it)
{
    strand_captured got = {.size = sizeof got};
    program("writes", writes_for_ever, NULL);
    strand_exception *e = strand_try(capture_too_much, &got, NULL);
    CHECK_KIND(e, &STRAND_SYSTEM);
    CHECK_EQ(strand_exception_code(e), -EFBIG);
    strand_exception_release(e);
}

static int writes_slowly(strand_sim_process *process, void *arg)
{
    for (int i = 0; i < 20; i++) {
        strand_sleep((int64_t)(intptr_t)arg);
        say(i % 2 ? process->err : process->out, "ab");
    }
    return 6;
}

TEST_INSIDE(capturing_waits_for_a_slow_writer)
{
    strand_captured got = {.size = sizeof got};
    program("slow", writes_slowly, TEST_PTR(100 * STRAND_US));
    strand_process_capture(STRAND_PROCESS_ATTR(.argv = ARGV("slow")), NULL, &got);
    CHECK_STR(got.output, "abababababababababab");
    CHECK_STR(got.errors, "abababababababababab");
    CHECK_EQ(got.end.code, 6);
    free(got.output);
    free(got.errors);
}

/* ---- interruptions ----------------------------------------------------------------------------------- */

static void *capture_slowly(void *arg)
{
    strand_captured got = {.size = sizeof got};
    strand_process_capture(STRAND_PROCESS_ATTR(.argv = ARGV("slow"), .grace_ns = STRAND_MS),
                           STRAND_CAPTURE_ATTR(.input = "bytes", .input_size = 5), &got);
    free(got.output);
    free(got.errors);
    return arg;
}

static void *capture_until(void *arg)
{
    STRAND_DEADLINE(strand_in((int64_t)(intptr_t)arg));
    capture_slowly(NULL);
    return NULL;
}

/* A sanitizer sees whether memory is left. */
TEST_INSIDE(an_interruption_at_any_time_leaves_nothing)
{
    int timed_out = 0, before = 0;
    program("slow", writes_slowly, TEST_PTR(50 * STRAND_US));
    for (int i = 0; i < 20; i++) {
        strand_exception *e = strand_try(capture_until, TEST_PTR(i * 100 * STRAND_US), NULL);
        CHECK(!e || strand_exception_is(e, &STRAND_TIMED_OUT));
        timed_out += e != NULL;
        strand_exception_release(e);
        before = i == 0 ? test_count_entries("/proc/self/fd") : before;
    }
    CHECK(timed_out > 0);
    CHECK(test_count_entries("/proc/self/fd") <= before + 4); /* what the first wait makes */
}

static void *cancel_capture(void *child)
{
    strand_cancel(*(strand *)child, "at some time");
    return NULL;
}

TEST_INSIDE(a_cancel_at_any_step_leaves_nothing)
{
    program("slow", writes_slowly, TEST_PTR(STRAND_US));
    for (int i = 0; i < 5; i++) {
        STRAND_SCOPE(scope);
        strand *child = malloc(sizeof *child);
        *child = strand_spawn(scope, capture_slowly, NULL);
        for (int steps = i * 7; steps > 0; steps--)
            strand_yield();
        strand_join(strand_spawn(scope, cancel_capture, child));
        strand_wait(*child);
        free(child);
        strand_scope_cancel(scope, NULL);
    }
}

static void *signal_until_gone(void *arg)
{
    const strand *process = arg;
    int got;
    while ((got = strand_process_signal(*process, SIGUSR1)) == 0)
        strand_yield();
    CHECK_EQ(got, -ESRCH);
    return NULL;
}

static int catches_some(strand_sim_process *process, void *arg)
{
    int signal;
    strand_sim_handle(process, SIGUSR1, STRAND_SIM_CATCH);
    say(process->out, "ready\n");
    for (int i = 0; i < 3; i++)
        CHECK_EQ(STRAND_RECEIVE(process->signals, &signal), 0);
    return arg != NULL;
}

TEST_RACE(a_signal_and_the_end_of_the_function_do_not_meet)
{
    program("catches", catches_some, NULL);
    for (int i = 0; i < 5; i++) {
        int out;
        STRAND_SCOPE(scope);
        strand *process = malloc(sizeof *process), signallers[2];
        *process = start(scope, "catches", 0, &out);
        for (int k = 0; k < 2; k++)
            signallers[k] = strand_spawn(scope, signal_until_gone, process);
        CHECK_EQ(join(*process).code, 0);
        for (int k = 0; k < 2; k++)
            strand_join(signallers[k]);
        free(process);
        strand_close(out);
    }
}

/* ---- the same seed ----------------------------------------------------------------------------------- */

static void *scenario(void *arg)
{
    strand_captured got = {.size = sizeof got};
    int out;
    program("slow", writes_slowly, TEST_PTR(70 * STRAND_US));
    program("ignores", ignores, NULL);
    strand_process_capture(STRAND_PROCESS_ATTR(.argv = ARGV("slow")), NULL, &got);
    free(got.output);
    free(got.errors);
    STRAND_SCOPE(scope);
    strand process = start(scope, "ignores", STRAND_S, &out);
    strand_cancel(process, NULL);
    CHECK_EQ(join(process).signal, SIGKILL);
    strand_close(out);
    return arg;
}

static strand_sim_report report_of(uint64_t seed)
{
    strand_sim_report report = {.size = sizeof report};
    struct strand_sim sim = {.size = sizeof sim, .silent = true, .report = &report};
    strand_run(STRAND_OPTIONS(.threads = 2, .has_seed = true, .seed = seed, .sim = &sim), scenario, NULL);
    return report;
}

TEST_PROGRAM(a_seed_repeats_a_run_with_processes)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        strand_sim_report first = report_of(seed), second = report_of(seed);
        CHECK_EQ(first.schedule, second.schedule);
        CHECK_EQ(first.time_ns, second.time_ns);
        CHECK(first.time_ns >= STRAND_S); /* the grace, in virtual time */
    }
    CHECK(report_of(1).schedule != report_of(2).schedule);
}
