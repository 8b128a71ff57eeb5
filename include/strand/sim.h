/*
 * Deterministic simulation: runs that can be repeated. A run with a seed (strand_options.has_seed, or STRAND_SEED=n in
 * the environment) is played by one thread of the system. The seed chooses each next step, time is virtual, and the
 * same seed gives the same run. This header has the ways of choosing, the injected faults, the report of a seeded run,
 * and a search for a seed under which a program fails. docs/simulation.md explains all of it.
 *
 * A seeded run plays sequentially consistent executions only. All simulated threads share the thread-local variables of
 * the program, because one thread of the system plays them.
 *
 * Which callers:
 *
 *   any strand          strand_sim_thread, strand_sim_signal, strand_sim_date, strand_sim_route, strand_sim_program
 *   a program's strands strand_sim_handle
 *   plain threads       strand_sim_sleep, strand_sim_search
 *   a signal handler    no function
 *
 * Suspension: no function suspends or is a cancellation point. strand_sim_sleep and strand_sim_search block their
 * thread.
 *
 * Cost: some microseconds and an allocation, unless a function says otherwise. These functions are for tests.
 */
#ifndef STRAND_SIM_H
#define STRAND_SIM_H

#include "date.h"
#include "pool.h"
#include "process.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The report of a seeded run, filled in at its end. */
typedef struct strand_sim_report {
    size_t size;       /* sizeof(strand_sim_report); required */
    uint64_t seed;     /* the seed of the run */
    uint64_t schedule; /* a hash of all choices: which thread took each step, the time of the step, the injected faults;
                          the same for every compiler and optimisation level */
    uint64_t steps;    /* the number of scheduling choices */
    int64_t time_ns;   /* the virtual time that passed */
    bool atomic_steps; /* each atomic operation of the runtime was a step (a build with STEPS=1) */
} strand_sim_report;

/** A value of strand_sim.depth: choose every step at random (a random walk). */
#define STRAND_SIM_WALK UINT32_MAX

/**
 * The way a seeded run is played: strand_options.sim. Zero is the default of each field but `size`. The environment
 * variable STRAND_SIM takes precedence, as in STRAND_SIM="depth=3 memory=100"; its words are the names of the fields
 * except size, silent and report.
 */
struct strand_sim {
    size_t size; /* sizeof(strand_sim); required */

    /* How the next thread is chosen. STRAND_SIM_WALK ("depth=walk"): at every step, each thread that can continue is
     * equally likely. 1 to 64: the threads of the pools have random priorities, and the thread of highest priority that
     * can continue runs; at depth - 1 random steps of the first `length`, the running thread gets the lowest priority.
     * All other choices, such as which strand a thread takes, follow a habit between those steps. So a thread may wait
     * for very long, which hardly ever happens in a walk. 0: the seed decides: every fourth seed n = 0, 4, 8... uses
     * the depth 1 + n / 4 % 5, and all others walk.
     *
     * The priorities follow Burckhardt, Kothari, Musuvathi, Nagarakatte: A Randomized Scheduler with Probabilistic
     * Guarantees of Finding Bugs, 2010. Their bound on the probability does not hold here: threads and not strands have
     * the priorities, a thread that wakes up gets a new one, and a thread that spins or runs for very long loses its
     * priority. */
    uint32_t depth;
    uint32_t length; /* the estimated number of steps of a run with priorities; 0: 1000 */

    bool coarse; /* end steps only where a strand suspends, sleeps or spins; else also before each operation that may
                    suspend */

    uint64_t max_steps; /* fail a run that takes more steps, because it may never end; 0: no limit */

    uint32_t memory;  /* refuse one of this many memory requests, as malloc would; 0: none */
    uint32_t resets;  /* break one of this many simulated connections in the middle; 0: none */
    uint32_t silence; /* let one of this many simulated connections deliver nothing from some point on; 0: none */

    /* Use pipes and sockets of the system; the run can then not be repeated exactly, which the log says at the first of
     * them. Else the library simulates in memory those that strand_pipe, strand_listen_ and strand_dial_ functions
     * make; they connect to each other only. */
    bool real;

    bool silent;               /* print nothing at the end of a run that succeeds; STRAND_SIM_SILENT=1 does the same */
    strand_sim_report *report; /* filled in at the end of the run; may be NULL */

    /* Find strands that hand out addresses of locals: every strand but the root and those with a stack size of their
     * own lives on one of three shared fibres (strand/pool.h); its frames are copied out as soon as it suspends, and
     * the stack is overwritten. STRAND_STACKS=shared in the environment does this in runs without a seed too. */
    bool shared_stacks;

    uint32_t losses;  /* lose one of this many simulated datagrams of UDP; 0: none */
    uint32_t repeats; /* deliver one of this many twice; 0: none */
    uint32_t delays;  /* let one of this many arrive late, after those that were sent later; 0: all in order */
};
typedef struct strand_sim strand_sim;

/** Write the fields as an argument, with `size` filled in: STRAND_OPTIONS(.has_seed = true, .seed = 7, .sim =
 * STRAND_SIM(.depth = 3)). C++ requires the order of the fields. */
#define STRAND_SIM(...) STRAND_SIZED_(strand_sim, __VA_ARGS__)

/** The result of strand_sim_search. */
typedef struct strand_sim_found {
    size_t size;    /* sizeof(strand_sim_found); required */
    uint64_t seed;  /* the seed under which fn failed, or the last one tried */
    int status;     /* how the child process ended, in the form of waitpid(2) */
    uint64_t tried; /* the number of seeds tried, this one included */
} strand_sim_found;

/**
 * Search for a seed under which fn(arg) fails. The search runs fn by strand_run with `options` (NULL: the defaults, on
 * two threads) under each of `count` seeds from `first` on, each in a child process. A seed fails if its process ends
 * early: by abort or an assertion, an uncaught exception, exit, a deadlock or a signal, or because a run takes more
 * steps than options->sim allows (0: 20 000 000). The child then writes the seed, the last steps and the strands to
 * standard error. In the child each run numbers its strands (strand_id) like the only run of a process.
 *
 * With STRAND_SEED in the environment, fn runs once under that seed and in the calling process, so that a debugger can
 * follow: this replays a seed. Other threads of the program do not exist in the child. A strand that neither ends nor
 * suspends keeps the search from ending. The call blocks its thread; a strand must not call it. Cost: that of a child
 * process and a run for each seed.
 *
 * Returns 1 if a seed failed and 0 if none did, with *found filled in unless `found` is NULL; the caller sets
 * found->size, and the function fills in the fields that this size covers. Returns a negated errno code if no process
 * could be started, or -EINVAL if the options or the environment allow no run; on_log or standard error then has the
 * reason.
 */
int strand_sim_search(const strand_options *options, uint64_t first, uint64_t count, strand_fn *fn, void *arg,
                      strand_sim_found *found);

/**
 * Run fn(arg) on a plain thread, to test what plain threads of a program do, such as posting to a channel. In a seeded
 * run it is a simulated thread, so that the seed chooses when it runs; else it is a thread of the system. The run ends
 * only when the thread has ended. The result of fn is ignored. The caller is a strand; the call does not suspend.
 * Returns 0 or a negated errno code. Cost: without a seed that of a system thread, tens of microseconds.
 */
int strand_sim_thread(strand_fn *fn, void *arg);

/**
 * Sleep for `ns` nanoseconds on a plain thread: one of strand_sim_thread, or in an offloaded function, where it stands
 * for a call that takes its time. In a seeded run virtual time passes and other threads run meanwhile; else the thread
 * blocks, at most until a signal arrives. Any plain thread may call it. A call by a strand is misuse; strands use
 * strand_sleep. Cost: `ns` nanoseconds, virtual ones in a seeded run.
 */
void strand_sim_sleep(int64_t ns);

/**
 * Run handler(arg) as a signal handler, to test what the handlers of a program do, such as sending to a port. In a
 * seeded run it later interrupts one of the threads of the run, or of strand_sim_thread, and the seed chooses which and
 * where. In a build with STEPS=1 that may be before any atomic operation of the runtime, also while the thread holds a
 * lock. Handlers that have not run when the run ends are dropped. In a run without a seed the handler is called at
 * once. The handler may call what signal handlers may. The caller is a strand; the call does not suspend. Returns 0 or
 * a negated errno code.
 */
int strand_sim_signal(void (*handler)(void *arg), void *arg);

/**
 * Set the virtual clock of a seeded run to a date. Strands that wait for a date continue (strand/date.h). The caller is
 * a strand; the call does not suspend. Returns 0, or -ENOTSUP in a run without a seed and in one with strand_sim.real,
 * whose clock is the system's.
 */
STRAND_CHECKED int strand_sim_date(strand_date date);

/** What becomes of TCP connections to an address in a seeded run. */
enum strand_sim_route {
    STRAND_SIM_OPEN = 0,   /* a listener of the run answers; without one they are refused */
    STRAND_SIM_SILENT,     /* nothing answers: after 127 s they fail with -ETIMEDOUT, as those of the system do */
    STRAND_SIM_REFUSED,    /* they are refused, even if a listener has the port */
    STRAND_SIM_UNREACHABLE /* they fail at once with -ENETUNREACH */
};

/**
 * Choose what becomes of TCP connections to an address in a seeded run. All addresses of a simulated network lead to
 * the listeners of the run, whose port alone counts: without this call they are open. `address` is a number, as
 * "2001:db8::7". `delay_ns` is how much longer a connection, or its refusal, takes. The latest call for an address
 * counts; connections that have begun stay as they are. The caller is a strand; the call does not suspend. Returns 0;
 * -EINVAL for a text that is no number; -ENOMEM; or -ENOTSUP as strand_sim_date.
 */
STRAND_CHECKED int strand_sim_route(const char *address, enum strand_sim_route route, int64_t delay_ns);

/* ---- processes ------------------------------------------------------------------------------------------- */

/** A process that a function stands for, as the function sees it. The library fills in the struct. */
typedef struct strand_sim_process {
    size_t size; /* sizeof(strand_sim_process) of the library */
    int pid;     /* its number; the first one of a run is 1000 */
    /* The arguments, the environment and the working directory of strand_process_start; NULL: those of the calling
     * process. */
    const char *const *argv, *const *env;
    const char *directory;
    /* The standard streams: descriptors for strand_read and strand_write. Those of pipes and null streams are closed
     * when the process ends, and must not be closed before. Those of others are the caller's own (STRAND_STDIO_FD,
     * whose descriptor the caller keeps open until the process has ended), or 0, 1 and 2 (STRAND_STDIO_INHERIT). */
    int in, out, err;
    const strand_process_fd *fds; /* the further descriptors: `fd` is the caller's, as with STRAND_STDIO_FD */
    size_t fd_count;
    STRAND_CHAN(int) signals; /* the signals that the process catches, in the order of their arrival */
    /* For the end of the process; the function may set them. */
    int64_t user_ns, system_ns;
    uint64_t peak_bytes;
    bool dumps_core; /* if a signal ends it */
} strand_sim_process;

/** A function that stands for a program. Its result is the exit code, of which the lowest 8 bits count. */
typedef int strand_sim_program_fn(strand_sim_process *process, void *arg);

/**
 * Let a function stand for a program in this run: strand_process_start and strand_process_capture then call fn(process,
 * arg) on a strand instead of starting the program. `name` is what a start names, its `file` or argv[0], as it stands
 * there; the call copies it. The latest function of a name counts. The caller is a strand; the call does not suspend.
 *
 * In a seeded run the process is simulated: its pipes lie in memory and its time is virtual, so the seed repeats the
 * run. A run without a seed may use such functions, too. A run that has any starts no program of the system: a start of
 * another name fails with -ENOENT.
 *
 * The function may do whatever strands do, such as sleep, and read and write its streams. A signal does what
 * strand_sim_handle has said; by default it ends the process, except SIGCHLD, SIGCONT, SIGURG, SIGWINCH and the signals
 * that suspend processes, which have no effect. A signal that ends the process cancels the strand, and the process has
 * ended when the function has ended: its result does not count any more. A shield in the function (STRAND_SHIELD) is
 * like an uninterruptible system call: it delays the end. An exception that leaves the function is SIGABRT. The process
 * leads a group of its own, without others. Its user, limits, nice value and mask have no effect, and it has no
 * terminal (-ENOTSUP).
 *
 * Returns 0, or -ENOMEM.
 */
STRAND_CHECKED int strand_sim_program(const char *name, strand_sim_program_fn *fn, void *arg);

/** What a signal does to a process that a function stands for. */
enum strand_sim_action {
    STRAND_SIM_DEFAULT = 0,
    STRAND_SIM_IGNORE,
    STRAND_SIM_CATCH /* process->signals gets its number */
};

/**
 * Set what a signal does to a process. The function that stands for it may call this, or a strand of it. Signals that
 * have come before had their effect. SIGKILL and SIGSTOP can't be handled: misuse. The call does not suspend. Cost:
 * some ns.
 */
void strand_sim_handle(strand_sim_process *process, int signal, enum strand_sim_action action);

#ifdef __cplusplus
}
#endif
#endif
