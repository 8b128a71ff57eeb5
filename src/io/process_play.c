/*
 * Programs that a test supplies (strand_sim_program): a function on a strand of the keeper's stands for the process. It
 * uses pipes of strand_pipe and the time of strand_sleep, so in a seeded run all of it is simulated. The protocol block
 * is in process.h.
 */
#include "process.h"

#include "descriptor.h"

#include "../../include/strand/exception.h"
#include "../../include/strand/io.h"
#include "../../include/strand/pool.h"

#include "../strand/escape.h"
#include "../strand/interrupt.h"
#include "../strand/misuse.h"
#include "../strand/throw.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIGNALS = 64, SIGNAL_ROOM = 8, SIGNAL_ABORT = 6, SIGNAL_KILL = 9, SIGNAL_STOP = 19, PID_FIRST = 1000 };

struct program {
    struct program *next;
    strand_sim_program_fn *fn;
    void *arg;
    char name[];
};

static uint64_t bit_of(int signal)
{
    return UINT64_C(1) << (signal - 1);
}

/* Signals that do not end a process by default. A process is not suspended: that of SIGSTOP has no effect. */
static bool is_harmless(int signal)
{
    static const int harmless[] = {17 /* SIGCHLD */, 18 /* SIGCONT */, SIGNAL_STOP,     20 /* SIGTSTP */,
                                   21 /* SIGTTIN */, 22 /* SIGTTOU */, 23 /* SIGURG */, 28 /* SIGWINCH */};
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (signal == harmless[i])
            return true;
    return false;
}

/* ---- programs ------------------------------------------------------------------------------------------------- */

int strand_sim_program(const char *name, strand_sim_program_fn *fn, void *arg)
{
    static const char function[] = "strand_sim_program";
    struct thread *thread = must_be_strand(function);
    struct io_run *io = io_run_of(thread);
    if (!name || !*name)
        MISUSE(function, "", "the name is empty");
    if (!fn)
        MISUSE(function, "", "the function is NULL: pass the one that stands for the program");
    must_not_escape(thread, arg, "the argument", function);
    size_t length = strlen(name) + 1;
    struct program *program = platform_malloc(thread, sizeof *program + length);
    if (!program)
        return -ENOMEM;
    *program = (struct program){.fn = fn, .arg = arg};
    memcpy(program->name, name, length);
    spin_lock(&io->processes_lock, thread);
    program->next = io->programs;
    io->programs = program;
    spin_unlock(&io->processes_lock);
    return 0;
}

void programs_close(struct io_run *io)
{
    while (io->programs) {
        struct program *next = io->programs->next;
        free(io->programs);
        io->programs = next;
    }
}

/* Programs stay until the end of the run; the latest of a name counts. Returns whether there are any. */
static bool find(struct thread *thread, const char *file, struct program **out, int *pid)
{
    struct io_run *io = io_run_of(thread);
    spin_lock(&io->processes_lock, thread);
    struct program *program = io->programs;
    bool any = program != NULL;
    while (program && strcmp(program->name, file) != 0)
        program = program->next;
    *pid = program ? PID_FIRST + io->played++ : 0;
    spin_unlock(&io->processes_lock);
    *out = program;
    return any;
}

int play_make(struct thread *thread, struct process *process)
{
    struct program *program;
    int pid;
    if (!find(thread, process->file, &program, &pid))
        return 0;
    if (!program)
        return -ENOENT;
    size_t extra = process->exec.fd_count - PROCESS_STREAMS;
    struct play *play = platform_calloc(thread, 1, sizeof *play + extra * sizeof *play->fds);
    if (!play)
        return -ENOMEM;
    for (size_t i = 0; i < extra; i++) {
        const struct arch_exec_fd *fd = &process->exec.fds[PROCESS_STREAMS + i];
        play->fds[i] = (strand_process_fd){.number = fd->number, .fd = fd->source};
    }
    for (int i = 0; i < PROCESS_STREAMS; i++)
        play->own[i] = play->sinks[i] = -1;
    play->fn = program->fn;
    play->arg = program->arg;
    play->seen = (strand_sim_process){.size = sizeof play->seen,
                                      .pid = pid,
                                      .argv = process->exec.argv,
                                      .env = process->exec.env,
                                      .directory = process->exec.directory,
                                      .fds = play->fds,
                                      .fd_count = extra};
    process->child.pid = pid;
    process->play = play;
    return 0;
}

/* ---- signals --------------------------------------------------------------------------------------------------- */

void strand_sim_handle(strand_sim_process *process, int signal, enum strand_sim_action action)
{
    static const char function[] = "strand_sim_handle";
    struct thread *thread = must_be_strand(function);
    must_be_there(process, "strand_sim_process", function);
    if (signal < 1 || signal > SIGNALS || signal == SIGNAL_KILL || signal == SIGNAL_STOP)
        MISUSE(function, "", "signal %d can't be handled", signal);
    if ((unsigned)action > STRAND_SIM_CATCH)
        MISUSE(function, "", "the action is %d, which is none of enum strand_sim_action", (int)action);
    struct play *play = CONTAINER(process, struct play, seen);
    spin_lock(&io_run_of(thread)->processes_lock, thread);
    play->ignored &= ~bit_of(signal);
    play->caught &= ~bit_of(signal);
    if (action == STRAND_SIM_IGNORE)
        play->ignored |= bit_of(signal);
    else if (action == STRAND_SIM_CATCH)
        play->caught |= bit_of(signal);
    spin_unlock(&io_run_of(thread)->processes_lock);
}

int play_signal(struct play *play, int signal)
{
    struct thread *thread = thread_self();
    if (signal < 0 || signal > SIGNALS)
        return -EINVAL;
    if (signal == 0)
        return 0;
    spin_lock(&io_run_of(thread)->processes_lock, thread);
    bool caught = play->caught & bit_of(signal);
    bool ends = !caught && !(play->ignored & bit_of(signal)) && !is_harmless(signal) && !play->returned;
    if (ends && !play->killed)
        play->killed = signal; /* [PC5] */
    spin_unlock(&io_run_of(thread)->processes_lock);
    if (ends)
        strand_cancel(play->strand, "a signal ends the process");
    return caught ? strand_chan_post(play->seen.signals.untyped, &signal) : 0;
}

/* ---- the process --------------------------------------------------------------------------------------------- */

static void *call(void *arg)
{
    struct process *process = arg;
    struct play *play = process->play;
    play->code = play->fn(&play->seen, play->arg);
    return NULL;
}

void play_close(struct play *play)
{
    for (int i = 0; i < PROCESS_STREAMS; i++) {
        if (play->own[i] >= 0)
            (void)descriptor_close(thread_self(), play->own[i], false);
        play->own[i] = -1;
    }
}

/* A process ends once: by the return of the function, or by the first signal that ends it [PC5]. */
static void *run_program(void *arg)
{
    struct process *process = arg;
    struct play *play = process->play;
    strand_exception *e = strand_try(call, process, NULL);
    struct thread *thread = thread_self();
    spin_lock(&io_run_of(thread)->processes_lock, thread);
    if (e && !play->killed)
        play->killed = SIGNAL_ABORT;
    play->returned = true; /* [PC5] */
    spin_unlock(&io_run_of(thread)->processes_lock);
    strand_exception_release(e);
    play_close(play);
    return NULL;
}

/* Reads what is written to null streams. */
static void *discard(void *arg)
{
    int *sink = arg;
    char bytes[256];
    while (strand_read(*sink, bytes, sizeof bytes) > 0)
        ;
    (void)descriptor_close(thread_self(), *sink, false); /* after an error, the process gets -EPIPE */
    *sink = -1;
    return NULL;
}

void play_begin(struct process *process, strand_scope scope)
{
    struct play *play = process->play;
    play->seen.signals.untyped = strand_chan_open(scope, sizeof(int), SIGNAL_ROOM, NULL);
    for (int i = 1; i < PROCESS_STREAMS; i++)
        if (play->sinks[i] >= 0)
            strand_spawn_with(scope, STRAND_ATTR(.name = "null stream"), discard, &play->sinks[i], 0);
    play->strand = strand_spawn_with(scope, STRAND_ATTR(.name = process->name), run_program, process, 0);
}

void play_end(const struct play *play, struct arch_exec_end *end)
{
    int killed = play->returned ? play->killed : SIGNAL_KILL; /* it got no stack: as if memory had run out */
    *end = (struct arch_exec_end){.code = killed ? -1 : play->code & 255,
                                  .signal = killed,
                                  .dumped_core = killed && play->seen.dumps_core,
                                  .user_ns = play->seen.user_ns,
                                  .system_ns = play->seen.system_ns,
                                  .peak_bytes = play->seen.peak_bytes};
}

void play_free(struct play *play)
{
    if (!play)
        return;
    play_close(play);
    for (int i = 0; i < PROCESS_STREAMS; i++)
        if (play->sinks[i] >= 0)
            (void)descriptor_close(thread_self(), play->sinks[i], false);
    free(play);
}

/* ---- the standard streams --------------------------------------------------------------------------------------- */

/* Makes a pipe: the process's end, and the other one. The process reads from its standard input. */
static int open_pipe(struct play *play, int which, int *other)
{
    int ends[2], error = strand_pipe(ends);
    if (error)
        return error;
    play->own[which] = ends[which != 0];
    *other = ends[which == 0];
    return 0;
}

static int open_null(struct play *play, int which)
{
    int other, error = open_pipe(play, which, &other);
    if (!error && which == 0)
        (void)descriptor_close(thread_self(), other, false);
    else if (!error)
        play->sinks[which] = other;
    return error;
}

int play_open_stream(struct play *play, const strand_stdio *stream, int which, int *ours)
{
    int *const fds[PROCESS_STREAMS] = {&play->seen.in, &play->seen.out, &play->seen.err};
    int error = 0;
    switch (stream->kind) {
    case STRAND_STDIO_TERMINAL:
        return -ENOTSUP;
    case STRAND_STDIO_NULL:
        error = open_null(play, which);
        break;
    case STRAND_STDIO_PIPE:
        error = open_pipe(play, which, ours);
        break;
    default:
        break;
    }
    *fds[which] = stream->kind == STRAND_STDIO_FD       ? stream->fd
                  : stream->kind == STRAND_STDIO_OUTPUT ? play->seen.out
                  : play->own[which] >= 0               ? play->own[which]
                                                        : which;
    return error;
}
