/*
 * Processes. A keeper, a strand of the library, starts each process, waits for its end, and takes its status; the
 * keeper's handle stands for the process.
 *
 * PARTIES   the starter (strand_process_start); the keeper; strands that ask for the number or send a signal.
 * STATE     of a record: STARTING, RUNNING (in the run's tree of processes), REAPED. The starter makes the record and
 *           spawns the keeper in a scope of its own. The keeper starts the process and sets `started`. If the process
 *           runs, the starter hands the keeper to the caller's scope; otherwise it joins the keeper and throws.
 * OWNERSHIP the record is the starter's until the keeper is spawned, and then the keeper's, whose result it is: the
 *           party that consumes the result frees it, or the drop function does. The starter reads `failed` after
 *           `started` is set, while it has not consumed the keeper. `child`, the tree and its nodes: the holder of the
 *           run's lock of processes.
 * INVARIANTS [PC1] a process is in the tree if and only if its status has not been taken: the keeper takes the status
 *           and removes the record under the lock. Others send signals under it, and the keeper sends its own before it
 *           takes the status. So no signal reaches a number that the system has given to another process, nor a group
 *           whose leader has been reaped. [PC2] the keeper ends only when
 *           the status has been taken: no process is left behind. [PC3] a keeper that has started a process waits
 *           however it is interrupted, and whatever memory or descriptors it is refused. [PC4] nothing that the keeper
 *           reads is on a stack: the caller's frames may be copied out meanwhile.
 *           [PC5] a process that a function stands for ends once: by the return of the function, or by the first signal
 *           that ends it, which cancels the function's strand; the lock decides. [PC6] its record is not freed while a
 *           strand sends it a signal: the keeper waits for those that have found it in the tree. [PC7] the number of a
 *           process is in the keeper's copied argument, which lasts until the keeper is consumed: the record may be
 *           freed before by the party that has it. It is stored once, before `started` is set. [PC8] a keeper that
 *           stops a process is in an episode (src/strand/episode.h), if the run has a watchdog, from before the first
 *           signal until the status has been taken. So the watchdog reads the record of that process under the lock of
 *           the episodes: `end.pid`, `killed_at`, which do not change meanwhile, and the last signal, which may.
 * PROGRESS  the starter's thread is blocked until the program runs (arch_exec). The keeper waits as long as the process
 *           takes; after SIGKILL that is short, unless the process is in an uninterruptible system call.
 * NOT DONE  the start by the caller itself, followed by a spawn: without memory for a strand or its stack, the process
 *           would have nobody to keep it. A process as a belonging of the scope, without a strand: joining, waiting,
 *           selecting, handing off, and the rule of live strands would be written a second time. A handler of SIGCHLD:
 *           the program may have its own.
 * TESTED BY tests/spec/process.c; tests/spec/program.c; tests/spec/watchdog_processes.c.
 */
#ifndef IO_PROCESS_H
#define IO_PROCESS_H

#include "io_layer.h"

#include "../../include/strand/process.h"
#include "../../include/strand/sim.h"
#include "../../include/strand/sync.h"
#include "../base/index.h"

enum { PROCESS_STREAMS = 3 };

/* A function that stands for the process, on a strand. */
struct play {
    strand_sim_process seen; /* by the function */
    strand_sim_program_fn *fn;
    void *arg;
    strand strand;
    int own[PROCESS_STREAMS];   /* its ends of pipes; -1: none */
    int sinks[PROCESS_STREAMS]; /* where a null stream is read; -1: none */
    int code;
    /* Under the run's lock of processes. */
    uint64_t caught, ignored;
    int killed;    /* by which signal; 0: it was not */
    bool returned; /* so has the function */
    int users;     /* strands that send it a signal */
    strand_process_fd fds[];
};

struct process {
    strand_process_end end; /* the result of the keeper; first */
    struct arch_exec exec;
    const char *file; /* as the caller has named it */
    strand_event started;
    struct arch_exec_failed failed; /* of the start */
    struct index_node node;
    struct arch_child child;
    struct play *play; /* NULL: a process of the system */
    int stop_signal;
    int64_t grace_ns;
    strand_time killed_at; /* if it has not ended by then; set when it is stopped */
    struct episode stopping;
    int last_signal, signal_error; /* for the watchdog [PC8] */
    char name[32];                 /* of the keeper */
};

/* The descriptors that a start has made. */
struct process_streams {
    int ours[PROCESS_STREAMS]; /* for the caller; -1: none */
    int theirs[PROCESS_STREAMS];
    int *out[PROCESS_STREAMS]; /* where the caller gets its own */
    int which;                 /* the one that is being made */
};

/* Suspends for a while, or, without memory for a timer, for a moment. */
void process_pause(void);

/* process_play.c. Makes process->play if a program of the run stands for the process. Returns 0, -ENOENT: the run has
 * programs, but not this one, or -ENOMEM. */
int play_make(struct thread *thread, struct process *process);
/* Starts the function in a scope of the keeper's. */
void play_begin(struct process *process, strand_scope scope);
int play_signal(struct play *play, int signal);
/* When its strand has ended. */
void play_end(const struct play *play, struct arch_exec_end *end);
/* Closes the process's ends of its pipes. */
void play_close(struct play *play);
void play_free(struct play *play);
/* Opens a standard stream. *ours: the caller's end of a pipe. */
int play_open_stream(struct play *play, const strand_stdio *stream, int which, int *ours);

/* process_attr.c. Checks the attributes: misuse. */
void process_attr_take(const strand_process_attr *given, strand_process_attr *attr);
/* Makes the record: all that the attributes point to is copied into it. Returns NULL if there is no memory. */
struct process *process_make(struct thread *thread, const strand_process_attr *attr);
/* process_failure.c. Throws for a step of a start, and names its object. */
__attribute__((noreturn)) void process_throw(struct cb *me, const char *step, const char *object, int error);
__attribute__((noreturn)) void process_throw_stream(struct cb *me, int which, int error);
__attribute__((noreturn)) void process_throw_failed(struct cb *me, const struct process *process);
/* Makes the standard streams, for exec.fds. Returns 0, or a negated errno code: streams->which could not be made. */
int process_streams_open(const strand_process_attr *attr, struct process *process, struct process_streams *streams);
/* Closes what has not been given away. */
void process_streams_close(struct process_streams *streams);

#endif
