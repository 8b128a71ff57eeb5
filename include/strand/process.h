/*
 * Processes: other programs that run as children of scopes, as strands do.
 *
 *     STRAND_SCOPE(scope);
 *     const char *const argv[] = {"sort", "-n", NULL};
 *     int numbers, sorted;
 *     strand_stdio in = {.kind = STRAND_STDIO_PIPE, .ours = &numbers};
 *     strand_stdio out = {.kind = STRAND_STDIO_PIPE, .ours = &sorted};
 *     strand sort = strand_process_start(scope, STRAND_PROCESS_ATTR(.argv = argv, .in = in, .out = out));
 *     ...                                            write to numbers, strand_close(numbers), read from sorted
 *     strand_process_end end = {.size = sizeof end};
 *     strand_process_join(sort, &end);               end.code is the exit code
 *
 * A strand of the library keeps each process, and its handle stands for the process. So all functions for strands work:
 * strand_wait waits for the end of the process, strand_on_end makes it a case of a select, strand_hand_off hands the
 * process to another scope, and strand_cancel stops it. Leaving the scope stops the processes that still run there, all
 * at the same time, and waits for them. If the owner has neither joined nor stopped one, the scope throws
 * STRAND_LIVE_STRANDS, as for any strand.
 *
 * Stopping a process sends its stop signal to its process group, and SIGCONT, so that a suspended process sees it. If
 * the process has not ended when its time of grace is over, the group gets SIGKILL. When the process has ended, what is
 * left of its group gets SIGKILL too. The library does nothing to the group of a process that ends without being
 * stopped. A process that the caller may not signal, such as one of another user, ends when it likes, and its scope
 * waits for it. The watchdog of a run reports a process that takes long to end (STRAND_WATCHDOG_PROCESS in
 * strand/debug.h). The library stops processes when their scopes are left: if the program itself is killed, they
 * continue.
 *
 * The library waits by process descriptors (pidfd). Unless the program calls strand_process_reap, the library installs
 * no handler of SIGCHLD, and it never waits for children that it has not started. So waitpid(2) for other children,
 * system(3) and popen(3) work beside it. A wait for any child (wait(2), waitpid(-1, ...)) may take the status of a
 * process of the library: its end then has the error -ECHILD. A program that ignores SIGCHLD gets the same error for
 * each. strand_process_reap does both: it handles SIGCHLD, and it takes the statuses of all other children.
 *
 * Which callers:
 *
 *   the owner of the scope, or any   strand_process_start
 *   strand if the scope is open      strand_process_reap
 *   the owner of the scope           strand_process_join
 *   any strand                       strand_process_pid, strand_process_signal, strand_process_capture
 *   a signal handler                 no function
 *
 * Suspension: functions marked STRAND_BLOCKS may suspend the caller and are cancellation points. strand_process_pid and
 * strand_process_signal do not suspend.
 *
 * Cost: the system calls that a function stands for, and less than a microsecond beside them, unless a function says
 * otherwise.
 *
 * In a seeded run, functions of the test may stand for the programs (strand_sim_program in strand/sim.h). Otherwise the
 * run starts processes of the system: it cannot be repeated exactly, and virtual time follows real time while all
 * strands wait.
 */
#ifndef STRAND_PROCESS_H
#define STRAND_PROCESS_H

#include "chan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- starting -------------------------------------------------------------------------------------------- */

/** What a standard stream of a process is. */
enum strand_stdio_kind {
    STRAND_STDIO_INHERIT = 0, /* that of the calling process */
    STRAND_STDIO_NULL,        /* /dev/null */
    STRAND_STDIO_FD,          /* the caller's descriptor `fd`, which stays the caller's */
    STRAND_STDIO_PIPE,        /* a new pipe; *ours gets the caller's end */
    /* A new pseudo-terminal, the same one for all streams that ask for it; *ours gets its master. The others leave
     * `ours` NULL, or repeat it. The process leads a session, and the terminal is its controlling terminal if its
     * standard input is. A read of the master returns -EIO when the last process has closed the other side. */
    STRAND_STDIO_TERMINAL,
    STRAND_STDIO_OUTPUT /* for the standard error stream: where the standard output goes */
};

/** A standard stream of a process. {0} is inherited. */
typedef struct strand_stdio {
    enum strand_stdio_kind kind;
    int fd; /* STRAND_STDIO_FD: the caller's descriptor */
    /* STRAND_STDIO_PIPE and STRAND_STDIO_TERMINAL: set to a descriptor that does not block, is closed on exec, and
     * which the caller closes (strand_close), also after the process has ended. It is not set if the start fails. */
    int *ours;
    uint64_t reserved;
} strand_stdio;

/** A further descriptor of a process: number `number` there is descriptor `fd` of the caller. */
typedef struct strand_process_fd {
    int number; /* 3 to 65535; RLIMIT_NOFILE has to allow some numbers above it, one for each descriptor and stream */
    int fd;
} strand_process_fd;

/** A resource limit of a process, as for setrlimit(2). */
typedef struct strand_process_limit {
    int resource; /* RLIMIT_NOFILE, ... */
    uint64_t soft, hard;
} strand_process_limit;

/** The user and the groups of a process. The calling process needs the privilege to set them. In a user namespace that
 * forbids setgroups(2), as in a container without root, the supplementary groups have to be those of the calling
 * process. */
typedef struct strand_process_user {
    uint32_t user, group;
    const uint32_t *groups; /* the supplementary groups */
    size_t group_count;     /* their number; 0: none */
} strand_process_user;

/** The process group of a process. A process that uses the terminal of the calling process (a shell, an editor, ssh)
 * has to share the caller's group: the system suspends a process of another group when it reads the terminal. It sends
 * Ctrl-C to the caller's group alone. */
enum strand_process_group {
    STRAND_PROCESS_GROUP = 0, /* it leads a group of its own */
    STRAND_PROCESS_SESSION,   /* it leads a session of its own, without a terminal unless a stream is one */
    STRAND_PROCESS_SHARED     /* it is in the group of the calling process; only the process itself is stopped */
};

/** The attributes of a process. Zero is the default of each field but `size` and `argv`. The call copies all that they
 * point to. */
typedef struct strand_process_attr {
    size_t size;                    /* sizeof(strand_process_attr); required */
    const char *const *argv;        /* the arguments, ended by NULL; the first one is the program's name; required */
    const char *file;               /* the program's file; NULL: argv[0]. Without a slash: the first such file in the
                                       directories of PATH (of the calling process) that may be run; an empty one is the
                                       working directory */
    const char *const *env;         /* the environment, ended by NULL; NULL: that of the calling process */
    const char *const *env_changes; /* changes of that environment, ended by NULL: "NAME=value" sets a variable, "NAME"
                                       removes it, and the last change of a variable counts; NULL: none.
                                       No other thread may call setenv(3) during the call */
    const char *directory; /* the working directory; NULL: that of the calling process. A relative `file` is relative
                              to it */
    strand_stdio in, out, err;    /* the standard streams */
    const strand_process_fd *fds; /* further descriptors; the process has no others */
    size_t fd_count;              /* their number */
    enum strand_process_group group;
    int stop_signal;                    /* the signal that asks it to end; 0: SIGTERM */
    int64_t grace_ns;                   /* the time from the stop signal to SIGKILL; 0: 5 s; below 0: SIGKILL at once */
    const strand_process_user *user;    /* NULL: those of the calling process */
    const strand_process_limit *limits; /* resource limits to be set */
    size_t limit_count;                 /* their number */
    bool has_mask;                      /* use `mask` */
    unsigned mask;                      /* the file mode creation mask (umask) */
    int nice;                           /* added to the nice value */
} strand_process_attr;

/** Write attributes as an argument, with `size` filled in: strand_process_start(scope, STRAND_PROCESS_ATTR(.argv =
 * argv)). C++ requires the order of the fields. */
#define STRAND_PROCESS_ATTR(...) STRAND_SIZED_(strand_process_attr, __VA_ARGS__)

/**
 * Start a process as a child of a scope. The process has the default signal mask and the default action of each signal,
 * and may use each CPU that the calling process may use. A pipe that does not block, such as one of strand_pipe, blocks
 * in the process, if the system lets the process open it once more (/proc); sockets and terminals are the same open
 * files there, and do not block if they do not block here. Only the owner of the scope may call this function, or any
 * strand of the run if the scope is open. An interrupted call has started none.
 *
 * The call returns when the program runs. Its cost does not depend on the memory of the calling process, because the
 * child shares that memory until the program runs (vfork); with attr->user it gets a copy. Starting blocks a thread of
 * the pool for some hundred microseconds, and longer if the program's file is on a slow disk. A file that another
 * process is writing is tried again for up to 200 ms.
 *
 * Returns the handle of the process. Throws STRAND_SYSTEM with the system's code if the process cannot be started. The
 * text names the step, and its object: the directory, the number of the descriptor here and there, the resource, the
 * stream, the user or the group; otherwise the program:
 *
 *  - "running the program": -ENOENT (there is no such file), -EACCES (it may not be run), ...
 *  - "starting a process": -EAGAIN (as many processes exist as are allowed), -ENOMEM, -EMFILE, -ENOSYS (the kernel is
 *    older than 5.4), ...
 *  - "opening a standard stream", "passing a descriptor", "setting a resource limit", "setting the nice value",
 *    "setting the supplementary groups", "setting the group", "setting the user", "changing the directory",
 *    "setting the controlling terminal", "leading a process group", "leading a session"
 *
 * Throws what strand_spawn throws, too. If an open scope is left while the call starts a process there, the call stops
 * the process, and throws -ECANCELED. After an exception no process and no descriptor is left.
 */
STRAND_BLOCKS strand strand_process_start(strand_scope scope, const strand_process_attr *attr);

/* ---- the end --------------------------------------------------------------------------------------------- */

/** How a process has ended. */
typedef struct strand_process_end {
    size_t size;         /* sizeof(strand_process_end); required */
    int code;            /* the exit code; -1: it did not exit */
    int signal;          /* the signal that ended it; 0: none */
    int error;           /* 0; or -ECHILD: the program has taken the status, and all else is unknown */
    bool dumped_core;    /* and it wrote a core file */
    bool stopped;        /* it was running when it was stopped: by strand_cancel, or by leaving the scope */
    int64_t user_ns;     /* CPU time in user mode, of its own children too that it has waited for */
    int64_t system_ns;   /* CPU time in the kernel, likewise */
    uint64_t peak_bytes; /* the most memory that it had resident */
    int pid;             /* the number that it had; the system may have given it to another process since */
} strand_process_end;

/**
 * Wait for the end of a process and consume it, as strand_join does. *end gets how it ended, unless `end` is NULL; the
 * caller sets end->size, and the function fills in the fields that this size covers. Only the owner of the scope may
 * call it, and only once. A process that was stopped, or ended by a signal, is no exception. An interrupted call has
 * not consumed the process, which continues.
 *
 * strand_join of a process returns a strand_process_end, which the caller frees by free(3).
 */
STRAND_BLOCKS void strand_process_join(strand process, strand_process_end *end);

/** Get the number (pid) of a process, until the process is consumed (joined, or consumed by its scope). Soon after its
 * end, the library takes its status, and the system may give the number to another process. So an ended process keeps
 * its number for logs only: strand_process_signal is safer than kill(2). Returns the number, or -ESRCH if the process
 * has been consumed or the handle is that of another strand. Cost: some nanoseconds. */
int strand_process_pid(strand process);
/** Send a signal to a process, and not to its group. The signal never reaches another process that has got the number
 * since. Returns 0, also for a process that has just ended; -ESRCH if the library has taken the status of the process,
 * or the handle is that of another strand; or a negated errno code (-EINVAL, -EPERM). Cost: O(log processes of the run)
 * and a system call. */
int strand_process_signal(strand process, int signal);

/* ---- running a process for its output ---------------------------------------------------------------------- */

/** The optional attributes of strand_process_capture. Zero is the default of each field but `size`. */
typedef struct strand_capture_attr {
    size_t size;       /* sizeof(strand_capture_attr); required */
    const void *input; /* bytes for its standard input; NULL: attr->in, or /dev/null if that is inherited */
    size_t input_size; /* their number */
    size_t max_size;   /* the maximum number of bytes of each stream; 0: 64 MiB */
    /* How long to read on when the process has ended and another process holds its output open; 0: 1 s; below 0: only
     * what is there. */
    int64_t linger_ns;
} strand_capture_attr;

/** Write the attributes as an argument, with `size` filled in. */
#define STRAND_CAPTURE_ATTR(...) STRAND_SIZED_(strand_capture_attr, __VA_ARGS__)

/** What strand_process_capture has got. */
typedef struct strand_captured {
    size_t size;                     /* sizeof(strand_captured); required */
    char *output, *errors;           /* what the process wrote to its standard output and error, ended by a 0 byte */
    size_t output_size, errors_size; /* without that byte */
    strand_process_end end;          /* how it ended */
} strand_captured;

/**
 * Run a process to its end, and return what it wrote. attr->out and attr->err are captured where they are inherited;
 * STRAND_STDIO_OUTPUT puts both into `output`; a stream of another kind is not captured, and its text is NULL. If it is
 * a pipe, another strand has to read it. `capture` may be NULL. The caller sets out->size, and frees out->output and
 * out->errors by free(3). An exit code other than 0 is no exception.
 *
 * The input may be larger than what the process reads: the rest is dropped. When the process has ended, the call waits
 * for the end of its output, but no longer than capture->linger_ns; then it takes what the pipes hold.
 *
 * An interrupted call stops the process, as leaving its scope does: a deadline limits the time. Throws what
 * strand_process_start throws; STRAND_SYSTEM with -EFBIG if a stream has more bytes than capture->max_size; and
 * STRAND_SYSTEM with the code of a read or write that failed, or -ENOMEM. The process has been stopped then, and
 * nothing is left to be freed.
 */
STRAND_BLOCKS void strand_process_capture(const strand_process_attr *attr, const strand_capture_attr *capture,
                                          strand_captured *out);

/* ---- orphans ------------------------------------------------------------------------------------------------ */

/** The end of a process that the library has not started: an orphan, or a child that the program itself has started.
 * An orphan is a process whose parent has ended. The system makes it a child of the nearest subreaper above it, or of
 * pid 1. */
typedef struct strand_orphan {
    int pid;
    strand_process_end end; /* `stopped` is false and `error` is 0 */
} strand_orphan;

/** A flag of strand_process_reap: make the calling process a subreaper (PR_SET_CHILD_SUBREAPER of prctl(2)) until the
 * strand ends, unless it is one. Pid 1 needs no flag. */
#define STRAND_REAP_SUBREAPER 1u

/**
 * Reap: start a strand of the library in a scope that takes the end of each child process which the library has not
 * started. It sends each end to `ends`, a channel of strand_orphan; {0} discards them. Only the owner of the scope may
 * call this function, or any strand of the run if the scope is open. An interrupted call has started none.
 *
 *     typedef STRAND_CHAN(strand_orphan) orphans;
 *     orphans ends = STRAND_CHAN_OPEN(orphans, scope, 16);
 *     strand reaper = strand_process_reap(scope, ends.untyped, STRAND_REAP_SUBREAPER);
 *
 * The strand takes the statuses of all children but those of strand_process_start. So it is for programs that start
 * other programs by this header alone: fork(2) with waitpid(2), system(3) and popen(3) lose the status to it (-ECHILD).
 *
 * Each end is sent once. The strand takes the status after it has sent the end, so the system does not give the number
 * to another process before. When the channel is full, the strand waits: later ends stay with the system, as zombies.
 * When the channel is closed, the strand discards all further ends. The channel must not end before the strand.
 *
 * The strand runs until it is cancelled; it throws nothing, and its result is NULL. Cancel it before leaving the scope,
 * or leave the scope by strand_scope_cancel: otherwise the scope reports it as a live strand. Ends that it has not sent
 * then stay with the system, for the next call of this function.
 *
 * The strand waits for SIGCHLD as STRAND_SIGNALS does (strand/io.h). A handler of the program that was there before is
 * called as well; one that the program installs later has to call the previous one. The system keeps no status if the
 * program has set SA_NOCLDWAIT. A process of the library that has ended may hide the ends of others until its status is
 * taken, which takes as long as its pool's threads are busy.
 *
 * Returns the handle of the strand. Throws STRAND_SYSTEM with -EBUSY if another strand of this OS process reaps, in
 * whichever run; what STRAND_SIGNALS throws; and what strand_spawn throws. Cost: some system calls for each end of a
 * child.
 */
STRAND_BLOCKS strand strand_process_reap(strand_scope scope, strand_chan ends, unsigned flags);

#ifdef __cplusplus
}
#endif
#endif
