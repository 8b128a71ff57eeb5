/*
 * profileprocess: runs a process together with supporters, such as profilers and tracers, that work on it.
 *
 *     profileprocess --with 'perf record -o perf.data -p {pid}' --with 'pidstat -p {pid} 1' -- server --port 80
 *
 * The process under test starts first, and the supporters with its pid. When one of them ends, or SIGTERM or SIGINT
 * arrives, the supporters are stopped. When all of them have ended, the process under test is stopped: no supporter
 * loses its object while it writes its results. The program is fit to be pid 1 of a container: it reaps orphans, and
 * its exit status is that of the process under test.
 *
 * A supporter has to stay in the foreground. One that leaves a process behind has ended; in a container the process
 * ends with pid 1. Stopping takes up to twice the time of --grace, which a container engine has to allow.
 *
 *   main.c         the command line
 *   coordinate.c   the order of starts, waits and stops; signals
 *   output.c       the log, and the output of the processes, line by line
 */
#ifndef PROFILEPROCESS_H
#define PROFILEPROCESS_H

#include <strand/io.h>
#include <strand/process.h>
#include <strand/sync.h>

/* A text has no such character: it stands for {pid} in the words of a supporter. */
#define PID_MARK '\x1a'

/* Where lines are written to. */
struct sink {
    int fd;
    strand_mutex lock; /* held while a line is written */
};

struct process {
    char **argv; /* of a supporter: with PID_MARK */
    char name[48];
    strand strand; /* stands for the process */
    int pid;
    bool runs;    /* its end has not been taken */
    bool stopped; /* it was running when it was asked to end */
    strand_process_end end;
};

enum { STREAMS = 2 /* standard output and error */ };

struct profile {
    /* From the command line. */
    struct process *processes; /* the process under test, and then its supporters */
    size_t count;
    int64_t grace_ns; /* as in strand_process_attr */
    int stop_signal;
    strand_process_fd *fds; /* that the process under test inherits, beside the standard streams */
    size_t fd_count;
    bool prefix;         /* relay the output, each line with its process' name */
    bool on_terminal;    /* the standard input is a terminal */
    bool ignores_hangup; /* started by nohup */
    struct sink output, errors, *log, log_file;

    strand_signals signals;
    int requests; /* signals that have asked for the end */
    bool ends;    /* a process has ended, or a signal has asked for it */
    struct process *starting;
    int failure;         /* the exit status if that can't be started, or 0 */
    strand_case *cases;  /* for one signal and the end of each process */
    strand_scope relays; /* of the strands that relay output */
    strand *relay;       /* these strands */
    size_t relay_count;
    strand_event output_ends; /* what is in the pipes now is the rest */
};

/* Blocks SIGTERM and SIGINT, and no other signal, or unblocks all: these two are not lost before coordinate takes them,
 * and change nothing when all has ended. */
void block_requests(bool blocked);

/* The root strand. Returns the exit status. */
void *coordinate(void *profile);

/* Writes a line to the log, with the time. A log that takes nothing loses the line after a second. */
__attribute__((format(printf, 2, 3))) void log_line(struct profile *profile, const char *format, ...);

/* Relays a process' output, or its errors, to the end: a strand closes `fd`. */
void relay_start(struct profile *profile, const struct process *process, int fd, struct sink *sink);
/* Waits until all output is relayed, or handle_signal has seen that the user can't wait. */
void relays_finish(struct profile *profile);

/* A signal of profile->signals: asks for the end, or is for the process under test. */
void handle_signal(struct profile *profile, int number);
/* All is killed, and nothing that still runs is waited for. */
bool is_hurried(const struct profile *profile);

#endif
