/*
 * The command line.
 */
#define _GNU_SOURCE /* sigabbrev_np */
#include "profileprocess.h"

#include "../common/options.h"

#include <strand/pool.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wordexp.h>

static const char about[] =
    "Runs COMMAND, and supporters that get its process number, such as profilers. When any of them ends, or SIGTERM\n"
    "or SIGINT arrives, it stops the supporters, waits for all of them, and stops COMMAND only then. A second signal\n"
    "kills them. Other signals (HUP, QUIT, USR1, USR2, WINCH) go to COMMAND. If the standard input is a terminal,\n"
    "Ctrl-C is for COMMAND. Fit to be pid 1 of a container.\n"
    "Exit status: that of COMMAND, or 128 and the number of the signal that ended it; 127 a program was not found;\n"
    "126 it could not be run; 125 the status is unknown; 2 the command line.\n";

/* ---- words ----------------------------------------------------------------------------------- */

static void *must_allocate(void *memory)
{
    if (!memory) {
        fprintf(stderr, "profileprocess: %s\n", strerror(ENOMEM));
        exit(EXIT_FAILURE);
    }
    return memory;
}

/* The line with PID_MARK in place of each {pid}, which would be no word of a shell. */
static char *mark_pids(const char *line)
{
    static const char place[] = "{pid}";
    char *text = must_allocate(strdup(line));
    for (char *at = text; (at = strstr(at, place)); at++) {
        *at = PID_MARK;
        memmove(at + 1, at + sizeof place - 1, strlen(at + sizeof place - 1) + 1);
    }
    return text;
}

/* The words of a supporter. No shell runs: the supporter's process is the supporter. */
static char **split(const struct program *program, const char *line)
{
    static const char *const errors[] = {[WRDE_NOSPACE] = "there is no memory",
                                         [WRDE_BADCHAR] = "it has one of the characters | & ; < > ( ) { } unquoted",
                                         [WRDE_CMDSUB] = "it has a command to be replaced by its output",
                                         [WRDE_SYNTAX] = "a quote or a brace is not closed"};
    char *text = mark_pids(line);
    wordexp_t words;
    int error = wordexp(text, &words, WRDE_NOCMD);
    if (error)
        options_refuse(program, "--with can't be '%s': %s", line, errors[error]);
    if (!words.we_wordc)
        options_refuse(program, "--with can't be '%s': it has no word", line);
    free(text);
    return words.we_wordv;
}

/* ---- values ---------------------------------------------------------------------------------- */

static int signal_of(const struct program *program, const char *text)
{
    const char *name = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;
    char *end;
    long number = strtol(text, &end, 10);
    if (*text && !*end && number > 0 && number < NSIG)
        return (int)number;
    for (int i = 1; i < NSIG; i++)
        if (sigabbrev_np(i) && strcasecmp(sigabbrev_np(i), name) == 0)
            return i;
    options_refuse(program, "--stop can't be '%s'; it takes a signal: TERM, SIGINT, 15, ...", text);
}

static void open_log(struct profile *p, const struct program *program, const char *path)
{
    if (!path)
        p->log = &p->errors;
    else if (strcmp(path, "-") == 0)
        p->log = &p->output;
    else {
        p->log = &p->log_file;
        p->log_file.fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
        if (p->log_file.fd < 0)
            options_refuse(program, "--log can't be '%s': %s", path, strerror(errno));
    }
}

static void read_command_line(struct profile *p, int argc, char **argv)
{
    struct option_list supporters = {0};
    const char *stop = "TERM", *log = NULL;
    const struct option_row options[] = {
        {"with", 'w', "LINE",
         "a supporter: words as for a shell, with {pid} for COMMAND's process number;\nmay be given again",
         OPTION_LIST(supporters)},
        {"grace", 'g', "S", "seconds from the stop of a process to SIGKILL (default 5)",
         OPTION_TIME(p->grace_ns, STRAND_S, 0, 1e6L)},
        {"stop", 's', "SIGNAL", "the signal that stops COMMAND (default TERM); a supporter gets SIGTERM",
         OPTION_TEXT(stop)},
        {"prefix", 'p', NULL, "put the name of its process in front of each line of output", OPTION_FLAG(p->prefix)},
        {"log", 'l', "FILE", "where to log each step; - is the standard output (default: standard error)",
         OPTION_TEXT(log)},
        {0},
    };
    const struct program program = {"profileprocess", about, "COMMAND", options};
    char **command = options_read_command(&program, argc, argv);
    if (p->grace_ns == 0)
        p->grace_ns = -1; /* at once */
    p->stop_signal = signal_of(&program, stop);
    p->count = 1 + supporters.count;
    p->processes = must_allocate(calloc(p->count, sizeof *p->processes));
    p->cases = must_allocate(calloc(1 + p->count, sizeof *p->cases));
    p->relay = must_allocate(calloc(STREAMS * p->count, sizeof *p->relay));
    p->processes[0].argv = command;
    for (size_t i = 0; i < supporters.count; i++)
        p->processes[1 + i].argv = split(&program, supporters.values[i]);
    free(supporters.values);
    open_log(p, &program, log);
}

/* COMMAND inherits what this program has, as it would without it. */
static void keep_descriptors(struct profile *p)
{
    enum { NUMBER_MOST = 65535 };
    DIR *folder = opendir("/proc/self/fd");
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        int fd = atoi(entry->d_name);
        if (fd <= STDERR_FILENO || fd > NUMBER_MOST || (fcntl(fd, F_GETFD) & FD_CLOEXEC))
            continue;
        p->fds = must_allocate(reallocarray(p->fds, p->fd_count + 1, sizeof *p->fds));
        p->fds[p->fd_count++] = (strand_process_fd){.number = fd, .fd = fd};
    }
    if (folder)
        closedir(folder);
}

/* A parent may have blocked or ignored them. The end of a child that is ignored has no status. */
static void reset_signals(struct profile *p)
{
    struct sigaction hangup;
    block_requests(true);
    signal(SIGCHLD, SIG_DFL);
    sigaction(SIGHUP, NULL, &hangup);
    p->ignores_hangup = hangup.sa_handler == SIG_IGN;
}

int main(int argc, char **argv)
{
    static struct profile profile = {
        .grace_ns = 5 * STRAND_S,
        .output.fd = STDOUT_FILENO,
        .errors.fd = STDERR_FILENO,
    };
    reset_signals(&profile);
    read_command_line(&profile, argc, argv);
    keep_descriptors(&profile);
    profile.on_terminal = isatty(STDIN_FILENO);
    return (int)(intptr_t)strand_run(NULL, coordinate, &profile);
}
