/*
 * The order of starts, waits and stops. The scopes are nested as the lives of the processes are, so the order holds on
 * each way out, after a failure too.
 */
#define _GNU_SOURCE /* sigabbrev_np, basename */
#include "profileprocess.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Exit statuses, as those of shells. */
enum { UNKNOWN = 125, CANNOT_RUN = 126, NOT_FOUND = 127, BY_SIGNAL = 128 };

static const char *name_of(int signal)
{
    const char *name = sigabbrev_np(signal);
    return name ? name : "of real time";
}

/* ---- starting -------------------------------------------------------------------------------- */

/* The word with the number in place of each mark. The caller frees it. */
static char *put_number(const char *word, int pid)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    for (; out && *word; word++)
        if (*word == PID_MARK)
            fprintf(out, "%d", pid);
        else
            putc(*word, out);
    if (!out || fclose(out) != 0)
        strand_throw_with(&STRAND_SYSTEM, STRAND_THROW_INFO(.code = -ENOMEM), "no memory for an argument");
    return text;
}

static void put_numbers(char **argv, int pid)
{
    for (; *argv; argv++) {
        char *word = put_number(*argv, pid);
        free(*argv);
        *argv = word;
    }
}

static void log_start(struct profile *p, const struct process *process)
{
    char text[1024] = "";
    size_t used = 0;
    for (char **word = process->argv; *word && used < sizeof text; word++)
        used += (size_t)snprintf(text + used, sizeof text - used, " %s", *word);
    log_line(p, "%s started%s:%s", process->name, process == p->processes ? ", the process under test" : "", text);
}

/* The process under test inherits the standard input. If that is a terminal, it shares the group of this program, so
 * that it may read, and the user suspends and continues both together. */
static void start(struct profile *p, strand_scope scope, struct process *process)
{
    bool tested = process == p->processes;
    int out, err;
    strand_process_attr attr = {.size = sizeof attr,
                                .argv = (const char *const *)process->argv,
                                .in.kind = tested ? STRAND_STDIO_INHERIT : STRAND_STDIO_NULL,
                                .group = tested && p->on_terminal ? STRAND_PROCESS_SHARED : STRAND_PROCESS_GROUP,
                                .fds = p->fds,
                                .fd_count = tested ? p->fd_count : 0,
                                .stop_signal = tested ? p->stop_signal : SIGTERM,
                                .grace_ns = p->grace_ns};
    if (p->prefix) {
        attr.out = (strand_stdio){.kind = STRAND_STDIO_PIPE, .ours = &out};
        attr.err = (strand_stdio){.kind = STRAND_STDIO_PIPE, .ours = &err};
    }
    p->starting = process;
    process->strand = strand_process_start(scope, &attr);
    process->runs = true;
    process->pid = strand_process_pid(process->strand);
    snprintf(process->name, sizeof process->name, "%.32s[%d]", basename(process->argv[0]), process->pid);
    log_start(p, process);
    if (p->prefix) {
        relay_start(p, process, out, &p->output);
        relay_start(p, process, err, &p->errors);
    }
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void take_end(struct profile *p, struct process *process)
{
    strand_process_end *end = &process->end;
    end->size = sizeof *end;
    strand_process_join(process->strand, end);
    process->runs = false;
    p->ends = true;
    if (end->error)
        log_line(p, "%s ended: %s", process->name, strerror(-end->error));
    else if (end->signal)
        log_line(p, "%s ended by signal %d (%s)%s", process->name, end->signal, name_of(end->signal),
                 end->dumped_core ? ", and has dumped core" : "");
    else
        log_line(p, "%s ended with exit code %d", process->name, end->code);
}

/* Takes the next signal, or the next end of a process. With STRAND_SELECT_NOW it takes one if there is one. A signal
 * comes first: Ctrl-C on a terminal is there before the process that it ends has ended. */
static void await(struct profile *p, strand_select_flags flags)
{
    int number;
    p->cases[0] = strand_on_signal(p->signals, &number);
    for (size_t i = 0; i < p->count; i++)
        p->cases[i + 1] = p->processes[i].runs ? strand_on_end(p->processes[i].strand) : (strand_case){0};
    int which = strand_select(p->cases, p->count + 1, flags | STRAND_SELECT_ORDERED);
    if (which == 0)
        handle_signal(p, number);
    else if (which > 0)
        take_end(p, &p->processes[which - 1]);
}

/* ---- signals --------------------------------------------------------------------------------- */

void block_requests(bool blocked)
{
    sigset_t set;
    sigemptyset(&set);
    if (blocked) {
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGINT);
    }
    pthread_sigmask(SIG_SETMASK, &set, NULL);
}

bool is_hurried(const struct profile *p)
{
    return p->requests > 1;
}

static void kill_stopped(struct profile *p)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->processes[i].runs && p->processes[i].stopped)
            strand_process_signal(p->processes[i].strand, SIGKILL);
}

/* The terminal sends its signals to the process under test as well, which may handle Ctrl-C, as a shell does. Such a
 * signal asks for the end only of what ends already. */
static bool asks_for_end(const struct profile *p, int number)
{
    return number == SIGTERM || (number == SIGINT && (!p->on_terminal || p->ends));
}

void handle_signal(struct profile *p, int number)
{
    bool by_terminal = p->on_terminal && (number == SIGINT || number == SIGQUIT || number == SIGWINCH);
    if (asks_for_end(p, number)) {
        p->ends = true;
        p->requests++;
        log_line(p, "SIG%s arrived%s", name_of(number), is_hurried(p) ? " again: killing instead of stopping" : "");
        if (is_hurried(p))
            kill_stopped(p);
    } else if (!by_terminal && !(number == SIGHUP && p->ignores_hangup) && p->processes->runs)
        strand_process_signal(p->processes->strand, number);
}

/* ---- stopping -------------------------------------------------------------------------------- */

static bool any_runs(const struct process *first, const struct process *end)
{
    while (first < end && !first->runs)
        first++;
    return first < end;
}

/* Stops the processes from `first` to `end`, all at the same time, and waits for all of them. */
static void stop(struct profile *p, struct process *first, struct process *end, const char *names)
{
    if (!any_runs(first, end))
        return;
    log_line(p, "stopping %s", names);
    for (struct process *process = first; process < end; process++)
        if (process->runs) {
            strand_cancel(process->strand, "profileprocess stops it");
            process->stopped = true;
        }
    if (is_hurried(p))
        kill_stopped(p);
    while (any_runs(first, end))
        await(p, 0);
}

/* ---- the order ------------------------------------------------------------------------------- */

static void start_supporters(struct profile *p, strand_scope scope)
{
    const struct process *tested = p->processes;
    for (size_t i = 1; i < p->count && !strand_ended(tested->strand); i++) {
        await(p, STRAND_SELECT_NOW);
        if (p->ends)
            return;
        put_numbers(p->processes[i].argv, tested->pid);
        start(p, scope, &p->processes[i]);
    }
}

static void refuse(struct profile *p, const strand_exception *e)
{
    int error = -strand_exception_code(e);
    p->failure = error == ENOENT ? NOT_FOUND : CANNOT_RUN;
    log_line(p, "%s can't be started: %s", p->starting->argv[0], strerror(error));
}

static void run_processes(struct profile *p)
{
    struct process *tested = p->processes, *supporters = tested + 1, *end = tested + p->count;
    STRAND_SCOPE(test);
    {
        STRAND_SCOPE(support);
        STRAND_TRY {
            start(p, test, tested);
            start_supporters(p, support);
            while (!p->ends)
                await(p, 0);
        }
        STRAND_CATCH(&STRAND_SYSTEM, e) {
            refuse(p, e);
        }
        STRAND_END
        stop(p, supporters, end, "the supporters");
    }
    stop(p, tested, supporters, tested->name);
}

static int exit_status(const struct profile *p)
{
    const strand_process_end *end = &p->processes->end;
    if (p->failure)
        return p->failure;
    return end->error ? UNKNOWN : end->signal ? BY_SIGNAL + end->signal : end->code;
}

void *coordinate(void *profile)
{
    struct profile *p = profile;
    STRAND_SIGNALS(signals, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH);
    block_requests(false);
    STRAND_SCOPE(reaping);
    strand reaper = strand_process_reap(reaping, (strand_chan){{0}}, 0); /* of orphans, which pid 1 gets */
    STRAND_SCOPE(relays);
    p->signals = signals;
    p->relays = relays;
    run_processes(p);
    relays_finish(p);
    int status = exit_status(p);
    log_line(p, "exit status %d", status);
    strand_cancel(reaper, "all has ended");
    block_requests(true);
    return (void *)(intptr_t)status;
}
