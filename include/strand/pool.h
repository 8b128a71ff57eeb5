/*
 * Where and how strands run: the options of a run, thread pools, shared fibres, and the attributes of a strand.
 *
 * Each options struct begins with its size, so that a program compiled against an older header keeps working.
 *
 * Which callers:
 *
 *   any thread, signal handlers      strand_run_stop
 *   any thread                       strand_threads_allowed, strand_on_shared_stack
 *   plain threads                    strand_pool_drive, strand_pool_fd
 *   the owner of the scope, or any   strand_pool_open, strand_fibre_open
 *   strand if the scope is open
 *   strands outside the pool         strand_pool_close
 *   any strand of the run            all other functions
 *
 * Suspension: strand_wait_quiet and strand_wait_stopping may suspend the caller and are cancellation points.
 * strand_pool_close may suspend it and is none. All other functions never suspend; strand_pool_drive blocks its thread.
 *
 * Cost: a few nanoseconds, unless a function says otherwise.
 */
#ifndef STRAND_POOL_H
#define STRAND_POOL_H

#include "../strand.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the options of strand_run --------------------------------------------------------------------------- */

/** The policies for stacks that cannot have a guard page, because the system has no more of them. */
enum strand_guards {
    STRAND_GUARDS_BEST_EFFORT = 0, /* run with a canary, which is checked at each suspension, and log one warning */
    STRAND_GUARDS_REQUIRED = 1     /* the strand fails instead of running without a guard page */
};

/** The parties that can make the calls on files which may wait for a disk (strand/file.h). */
enum strand_files {
    STRAND_FILES_AUTO = 0, /* the kernel, by io_uring, where it has that and permits it; threads elsewhere */
    STRAND_FILES_URING,    /* likewise, but without io_uring the run is not made: STRAND_SYSTEM */
    STRAND_FILES_THREADS   /* threads of the run */
};

/** The policies for strands that wait longer in the queue of one thread than other strands in that of another. They
 * concern the scheduler "stealing" only; under the others all threads share one queue, or there is one thread. */
enum strand_balance {
    /* Busy threads compare their queues now and then and take strands from a thread whose strands wait longer. */
    STRAND_BALANCE_EVEN = 0,
    /* Strands that cannot be spread evenly also move all the time. So each of three strands that always run on two
     * threads gets two thirds of a thread, instead of one strand getting a whole thread. */
    STRAND_BALANCE_STIR = 1,
    /* Only idle threads take strands. For work of which only the total time counts: a strand may then wait until the
     * strand before it has finished computing. */
    STRAND_BALANCE_NONE = 2
};

/** A misuse, as the hook strand_options.on_misuse gets it. All pointers are valid during the call only. */
typedef struct strand_misuse {
    size_t size;          /* sizeof(strand_misuse), as the library knows it */
    const char *function; /* the public function, macro or type that was misused */
    const char *what;     /* what the caller did and which rule that breaks */
    const char *made;     /* where the object was made ("file:line" or a trace), or "" */
} strand_misuse;

typedef struct strand_watchdog_report strand_watchdog_report; /* strand/debug.h */

/**
 * The policies for a run that is out of work although strands are left. A run is out of work when no strand runs or is
 * runnable, none waits for a time, a descriptor, a signal, a port's message or an offloaded call, and none waits for
 * quiescence (strand_wait_quiet). No strand of the run can ever wake another then. A pool that is driven from outside
 * (strand_pool_drive) and has something to run counts as work, even if no thread drives it. If such a pool is being
 * closed and no thread is left that could drive it, the log says so.
 */
enum strand_out_of_work {
    /* Like STRAND_OUT_OF_WORK_THROW, unless something outside the run may wake a strand: another thread of the
     * process, an offloaded call that its caller has left (strand_offload_with), or a plain thread that has posted into
     * a channel of the run before. Then the run waits, and does not notice when the last such thread ends more than
     * five seconds later. If no plain thread has posted, it logs a warning: after one to two seconds the strands that
     * wait for each other by locks or joins, which no outside thread can wake; if there are none, after five to six,
     * that only an outside thread can wake the run (without /proc after one to two). In a seeded run this is a failure
     * of the seed (docs/simulation.md). */
    STRAND_OUT_OF_WORK_AUTO = 0,
    /* A deadlock: the log (on_log, or standard error) shows which strand waits for which, and the root strand throws
     * STRAND_DEADLOCK where it waits, so that the tree unwinds in order. If the root strand cannot be interrupted,
     * because it is shielded or in a clean-up, the program exits as with STRAND_OUT_OF_WORK_EXIT. */
    STRAND_OUT_OF_WORK_THROW,
    /* A deadlock: the same report, and then exit(EXIT_FAILURE) on a thread of the run. Functions registered with atexit
     * must not wait for strands, which stay suspended. */
    STRAND_OUT_OF_WORK_EXIT,
    /* The end of the run: the root strand is cancelled. If it ends by that, strand_run returns NULL without an
     * exception. For runs that last as long as there is work. The log reports strands that wait for each other. */
    STRAND_OUT_OF_WORK_END,
    /* Nothing happens: a party outside the run will wake a strand. With this policy a run that is being shut
     * down waits until its time to drain is over, too. */
    STRAND_OUT_OF_WORK_WAIT
};

/** The options of strand_run. `size` is required; zero is the default of each other field. */
struct strand_options {
    size_t size; /* sizeof(strand_options) */

    int threads;      /* 0: one, or cpus_count if `cpus` is set; STRAND_THREADS_ALLOWED: one per allowed CPU (3 if that
                         number is unknown), or one if the scheduler has one thread only */
    bool own_threads; /* use threads of the run only, and let the caller sleep; required if the caller is a strand */
    /* The name of a scheduler. "stealing" (and NULL): a queue per thread; an idle thread steals. "global": one FIFO
     * queue for all threads. "dedicated": one thread of the run; the caller sleeps. "current": one thread, which is the
     * caller's. docs/schedulers.md compares them. */
    const char *scheduler;
    int64_t spin_us; /* a thread without work spins for this many microseconds before it parks, if there are several
                        threads; 0: 20 */

    size_t stack_size; /* address space of a strand's stack in bytes; 0: 64 KiB; rounded up to a power of two, at least
                          16 KiB, more where signals need more: beside a guard page and the frame of a signal
                          (getauxval(AT_MINSIGSTKSZ): 3 KiB, with AMX 12 KiB) 8 KiB remain */
    enum strand_guards guards;
    size_t max_strands; /* the maximum number of strands that exist at a time; 0: no limit but memory */

    int max_offload_threads; /* the maximum number of threads that strand_offload uses; 0: 8 */

    /* Play a repeatable run (strand/sim.h, docs/simulation.md). STRAND_SEED=n in the environment sets both. */
    bool has_seed;
    uint64_t seed;

    /* Where to store an exception that leaves the root strand, which the caller then owns, or NULL if none does. If
     * this field is NULL, such an exception ends the program. */
    strand_exception **uncaught;

    /* Called before a misuse ends the program, on any thread. It must not leave by longjmp. */
    void (*on_misuse)(const strand_misuse *misuse, void *arg);
    /* Called with each message that no exception can carry: lost exceptions of cancelled children, warnings, and the
     * watchdog's reports, which have several lines. Any thread calls it, also in the middle of a switch between
     * strands, so blocking and throwing in it are misuse. NULL writes to standard error. */
    void (*on_log)(const char *message, void *arg);
    void *hook_arg; /* passed to all hooks */

    const struct strand_sim *sim; /* how to play a seeded run, and where to report it (strand/sim.h) */

    /* Let SIGQUIT print a dump of all strands of this run to standard error (strand/debug.h) instead of ending the
     * program. A handler that the program had installed before is called as well. STRAND_DUMP_ON_QUIT=1 in the
     * environment sets this for all runs. The run then has one more thread, and a run of one thread uses the atomic
     * operations of several. A seeded run ignores this field. */
    bool dump_on_quit;

    /* Print to standard error, at the end of the run, the greatest stack depth of the strands of each spawn site. Use
     * it to choose stack sizes and to decide what to put on shared stacks (docs/stacks.md). STRAND_CENSUS=1 in the
     * environment sets this for all runs. It costs a microsecond or two per strand, and the same per suspension on a
     * shared fibre. */
    bool census;

    const struct strand_scheduler *custom; /* a user-made scheduler (strand/scheduler.h), instead of `scheduler` */
    /* The maximum memory of the stacks of the run's strands in bytes, at least stack_size; 0: no limit but the
     * system's. A stack counts with its whole size; saved stacks of shared fibres count in steps of 64 KiB. A strand
     * that cannot start within the limit ends by STRAND_SYSTEM with -EAGAIN and has not run; opening a fibre throws the
     * same. Both messages name the limit and the size requested. Strands that have started continue: if their frames on
     * shared fibres grow, the limit may be exceeded, and no strand starts there until the use is below it again. A
     * limit adds about 20 ns to the start and the end of a strand. */
    size_t max_stack_bytes;

    /* The watchdog's limits in nanoseconds. `watchdog_ns`: report a strand that occupies its thread for longer than
     * this, at least 1 000 000; 0: no watchdog. A strand occupies its thread until it suspends or yields: while it
     * computes and while a system call blocks. The watchdog does not report a strand that calls functions of the
     * library while no other strand waits for its thread. `watchdog_cleanups_ns`: report a strand whose unwinding takes
     * longer than this, because a clean-up blocks; 0: the value of `watchdog_ns`. `watchdog_ns` limits the stop of a
     * process too (strand/process.h): a process that takes longer to end is reported, because its scope waits for it.
     *
     * Each case is reported again whenever its duration has doubled, and when it is over. At most ten reports come at
     * once, and then one per second. A report is a strand_watchdog_report (strand/debug.h). STRAND_WATCHDOG_MS=n in the
     * environment replaces `watchdog_ns` for all runs; 0 turns it off. docs/inside.md has more.
     *
     * The run has one more thread, which looks four times within the shorter limit and sleeps while all other threads
     * sleep. Only throwing costs more, by some tens of nanoseconds. A seeded run ignores these fields, because no time
     * passes in it while a strand computes. */
    int64_t watchdog_ns, watchdog_cleanups_ns;
    /* Called with each report of the watchdog, on its thread: a plain one for the library, with signals blocked.
     * Meanwhile nothing is watched and the run does not end. NULL sends the reports to on_log, or standard error. */
    void (*on_watchdog)(const strand_watchdog_report *report, void *arg);

    enum strand_out_of_work out_of_work; /* the policy when no strand can continue */
    enum strand_balance balance;         /* the policy of the first pool */
    /* Restrict thread i of the first pool to the CPU cpus[i % cpus_count]. The caller keeps the array. All threads are
     * then threads of the run, as with own_threads. strand_run reports STRAND_SYSTEM with -EINVAL if the process may
     * not use one of the CPUs or cpus_count is 0. NULL allows all CPUs. */
    const int *cpus;
    int cpus_count;
    /* STRAND_FILES=uring or threads in the environment replaces this for all runs. A seeded run uses threads. */
    enum strand_files files;
};
#define STRAND_THREADS_ALLOWED (-1)

/** Write options as an argument, with `size` filled in: strand_run(STRAND_OPTIONS(.threads = 4), root, NULL). C++
 * requires the order of the fields. */
#define STRAND_OPTIONS(...) STRAND_SIZED_(strand_options, __VA_ARGS__)

/** Get the number of CPUs that the calling thread may use. That is its affinity, limited by STRAND_THREADS in the
 * environment. Any thread may call it. Returns 3 if the number is unknown. Cost: one system call. */
int strand_threads_allowed(void);

/* ---- pools ------------------------------------------------------------------------------------------------ */

/**
 * A handle of a pool: a set of threads that run strands. {0} names no pool. A handle goes stale when the pool's scope
 * has been left.
 *
 * A run has a first pool, which its options describe. Strands can open more pools in scopes. A strand stays in one pool
 * for life: its spawner's, or the one that strand_attr.pool names. Strands of several pools join, cancel, wait for and
 * communicate with each other like strands of one pool; a wake-up across pools may have to unpark a thread.
 */
typedef struct strand_pool {
    uint64_t bits[2];
} strand_pool;

/** The optional attributes of a pool. Zero is the default of each field but `size`. */
typedef struct strand_pool_attr {
    size_t size; /* sizeof(strand_pool_attr); required */
    /* The number of threads, at most 1024. 0: cpus_count if `cpus` is set, one if the scheduler has one thread only,
     * else one per allowed CPU (STRAND_THREADS_ALLOWED). */
    int threads;
    const char *scheduler; /* as strand_options.scheduler; "current": strand_pool_drive runs it; NULL: "stealing" */
    int64_t spin_us;       /* as strand_options.spin_us */
    /* Restrict thread i to the CPU cpus[i % cpus_count]; copied. The environment variable STRAND_THREADS does not limit
     * the number of threads then. NULL allows all CPUs. */
    const int *cpus;
    int cpus_count;
    const char *name;                      /* diagnostics only; copied, up to 31 bytes; NULL means "pool" */
    const struct strand_scheduler *custom; /* as strand_options.custom; must live as long as the pool */
    enum strand_balance balance;           /* as strand_options.balance */
} strand_pool_attr;

/** Write attributes as an argument, with `size` filled in: strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 2)). */
#define STRAND_POOL_ATTR(...) STRAND_SIZED_(strand_pool_attr, __VA_ARGS__)

/**
 * Open a pool in a scope. The pool is closed when the scope is left and the strands of the scope have ended, or earlier
 * by strand_pool_close. `attr` may be NULL. Only the owner of the scope may call this function, or any strand of the
 * run if the scope is open (STRAND_SCOPE_OPEN). The call does not suspend. Cost: it starts threads, about 50 us each.
 *
 * Returns the handle of the pool. Throws STRAND_SYSTEM if the system refuses memory, threads or descriptors, with
 * -EINVAL if the process may not use a CPU of the list, or with -ECANCELED if the scope is open and has been left;
 * there is no pool then. Contradictory attributes are misuse.
 */
strand_pool strand_pool_open(strand_scope scope, const strand_pool_attr *attr);
/** Get the pool that the calling strand runs on. The handle stays the same for the strand's life. Cost: a few ns. */
strand_pool strand_pool_self(void);
/**
 * Close a pool: cancel its strands, wait for them, and end its threads. The call cancels each strand of the pool whose
 * scope belongs to a strand of another pool; those strands cancel their own children as they unwind. `why` appears in
 * their traces; the call copies up to 128 bytes of it; it may be NULL. From now on a spawn onto the pool from another
 * pool throws STRAND_SYSTEM with -ESHUTDOWN. Several strands may close one pool; each of them waits.
 *
 * The run reuses the records of closed pools and frees them when it ends; those of a pool of one thread take about 19
 * KB. One-thread and larger pools have separate records, so the run keeps as many of each as were open at once. Until
 * the scope is left, the handle of a closed pool keeps 256 bytes: functions that get it report that the pool is closed.
 *
 * The call waits uninterruptibly, because it releases a resource. It is misuse in a strand of the pool or below one, in
 * a no-suspend section, and for the run's first pool, which ends with the run. Two strands that close each other's
 * pools wait forever. Cost: O(strands of the pool), and ending each of its threads, some tens of microseconds.
 */
STRAND_SECTION_EXCLUDES_ void strand_pool_close(strand_pool pool, const char *why);
/**
 * Change the number of threads of a pool to `threads`: 1 to 1024, or STRAND_THREADS_ALLOWED. New threads start at once.
 * A thread that has to go ends at its next switch, after its queue has moved to other threads; the call does not wait
 * for that. The thread of index 0 always stays. Any strand of the run may call it. The call does not suspend. Other
 * numbers are misuse, and so is more than one thread for a pool whose scheduler has one thread.
 *
 * Cost: O(threads), and the creation of a system thread for each new one. Another strand that resizes the pool
 * meanwhile, or pins a strand to one of its threads, spins until the call is over. The first call for more than one
 * thread makes the whole run use atomic operations from then on.
 *
 * Returns 0 or a negated errno code: -EBUSY if strands are pinned to a thread that would have to go (nothing has
 * changed then); -EAGAIN or -ENOMEM if the system refused threads (the pool has as many as it could start); -ESHUTDOWN
 * if the pool is closed or being closed.
 */
int strand_pool_resize(strand_pool pool, int threads);

/** Flags of strand_pool_drive. */
enum strand_drive_flag {
    STRAND_DRIVE_WAIT = 1 /* wait for strands to become runnable */
};
/** A set of flags of strand_pool_drive: 0, or some of enum strand_drive_flag. */
typedef STRAND_FLAGS_(strand_drive_flag) strand_drive_flags;

/**
 * Run the strands of a pool on the calling thread. The pool was opened with the scheduler "current": it has no thread
 * of its own, and its strands run only inside this call. Use it in threads with an event loop of their own, such as
 * that of a toolkit or a game, and for libraries that insist on one thread.
 *
 * The call runs runnable strands until none is left or the instant `until` has passed (strand_in; {0} never passes); it
 * runs at least one strand if one is runnable. With STRAND_DRIVE_WAIT it also waits for strands to become runnable,
 * until `until`. It looks at the time whenever strands switch, so a strand that computes delays the return. Only plain
 * threads may call it, and always the same one; a call by a strand is misuse. A pool that is closed, or whose scope is
 * left, ends inside such a call, and the closing strand waits for that. In a seeded run a simulated thread runs the
 * pool, and this call only reports whether the pool has ended.
 *
 * Returns 1 while the pool exists, and 0 when it has ended. Returns -EBUSY if another thread drives the pool now, and
 * -EPERM if another thread has driven it before. Cost: some system calls beside what the strands do.
 */
int strand_pool_drive(strand_pool pool, strand_time until, strand_drive_flags flags);
/** Get a descriptor that is readable while strand_pool_drive has something to do, timers and the pool's end included.
 * Watch it with the caller's own loop (poll, epoll, g_unix_fd_add, uv_poll_init), level-triggered. The pool owns the
 * descriptor and closes it. Any plain thread may call it. Returns the descriptor, -ESHUTDOWN if the pool has ended, or
 * -ENOTSUP in a seeded run. The call does not block. */
int strand_pool_fd(strand_pool pool);

/** Flags of strand_wait_quiet. */
enum strand_quiet_flag {
    STRAND_QUIET_RUN = 1,    /* wait for all pools of the run at once; pool is {0} */
    STRAND_QUIET_STALLED = 2 /* ignore strands that sleep or wait for external events. For tests: every strand has come
                                as far as it can without time passing */
};
/** A set of flags of strand_wait_quiet: 0, or some of enum strand_quiet_flag. */
typedef STRAND_FLAGS_(strand_quiet_flag) strand_quiet_flags;

/**
 * Wait until a pool is quiescent or has ended. A pool is quiescent when none of its strands runs or is runnable, and
 * none can become runnable without a wake-up from another pool: none sleeps or has a deadline, and none waits for a
 * descriptor, a signal, a port's message or an offloaded call. Strands that wait for each other, for channels and for
 * locks remain. The caller, its deadlines, and other callers of this function do not count. {0} is the caller's pool.
 *
 * So a strand can hand out work in portions, each after the previous one and its consequences are done. An interrupted
 * call has no effect. When the caller continues, other strands may have become runnable again. What the strands of the
 * pool did happens before the return. Cost: a few microseconds after the last strand has suspended.
 */
STRAND_BLOCKS void strand_wait_quiet(strand_pool pool, strand_quiet_flags flags);

/** A handle of a run, by which any thread can stop it. {0} names no run. A handle goes stale when the run has ended. */
typedef struct strand_run_handle {
    uint64_t bits[2];
} strand_run_handle;

/** Get the run of the calling strand. Cost: a few ns. */
strand_run_handle strand_run_self(void);
/**
 * Shut down a run. At first strands are only notified (strand_stopping, strand_wait_stopping), so that they accept no
 * more work and end by themselves. After `drain_ns` nanoseconds the root strand is cancelled and the tree unwinds in
 * order. drain_ns <= 0 cancels at once; INT64_MAX never does. The run is cancelled earlier if it is out of work
 * meanwhile, unless a party outside may still wake a strand (enum strand_out_of_work). If several calls were made, the
 * earliest cancellation wins. `why` appears in the traces; up to 128 bytes of the first non-NULL one are copied.
 *
 * Clean-ups take as long as they take. If the root strand ends by this cancellation, strand_run returns NULL without an
 * exception; any other exception is reported. A root strand that has to tell this case from a normal end stores the
 * value of strand_stopping in a clean-up.
 *
 * Any thread may call it, threads of other runs and signal handlers included: it never waits, allocates nothing and
 * preserves errno. Get the handle in a strand of the run, and install a handler after that. Cost: about 100 ns.
 *
 * Returns 0; -ESHUTDOWN if the run has ended or the handle is {0}; or -EAGAIN if 63 threads use the run's record at
 * this moment.
 */
int strand_run_stop(strand_run_handle run, int64_t drain_ns, const char *why);
/** Check whether strand_run_stop was called for the caller's run. Returns true if strand_run_stop was called. A strand
 * that computes may call it often. Cost: a few ns. */
bool strand_stopping(void);
/** Wait until strand_run_stop is called for the caller's run, for example to close what accepts new work. The call
 * returns at once if it was. strand_on_stopping (strand/select.h) is the case of a select. An interrupted call has no
 * effect. Cost: some tens of ns beside the wait. */
STRAND_BLOCKS void strand_wait_stopping(void);

/** Figures of a pool. */
typedef struct strand_pool_info {
    size_t size; /* sizeof(strand_pool_info); required */
    char name[32];
    const char *scheduler;
    int threads;      /* existing threads, including those that are about to end */
    int wanted;       /* the number of threads of the opening, or of the last resize */
    uint64_t strands; /* strands of the pool, including those that have not started */
    /* The ratio between the longest and the shortest time that a strand waits for its turn in the queues of the pool's
     * threads. 1: all wait alike, there is one queue, or nothing waits. It is computed from the lengths of the queues
     * now and the pace of their threads in the last tenth of a second. Idle threads and pinned strands are left out. A
     * racy estimate; it costs some tens of nanoseconds per thread. */
    double unequal;
    int64_t wait_ns; /* the average time that a strand waits in a queue, in nanoseconds */
} strand_pool_info;
/** Read the figures of a pool into *info. The caller sets info->size; the function fills in the fields that this size
 * covers. info->scheduler is valid as long as the pool. Cost: O(threads). */
void strand_pool_info_get(strand_pool pool, strand_pool_info *info);
/** Get the index of the calling thread in its pool. Returns 0 to threads - 1. The index may change at any suspension,
 * unless the strand is pinned. */
int strand_thread_index(void);

/* ---- shared fibres ----------------------------------------------------------------------------------------- */

/**
 * A handle of a shared fibre, or of a group of them. {0} names none. A handle goes stale when the fibre's scope has
 * been left.
 *
 * A fibre is an execution stack. A strand usually has a private one. A shared fibre has many strands, one of which is
 * active: its frames are in the stack, while the frames of the others are saved elsewhere and are copied back, to the
 * same addresses, before such a strand continues. So an inactive strand costs the bytes that its frames use, and a
 * switch between two strands of the fibre costs a copy of both. Use shared fibres for very many strands that wait with
 * shallow stacks and go deep now and then (docs/stacks.md).
 *
 * While a strand is inactive, other strands use the memory of its locals. Whatever a strand hands to others must lie
 * elsewhere. The library reports an address in the caller's shared stack as misuse where it is handed over, from the
 * fibre's first strand on. Arguments and channel values that are copied may lie there, but should not contain such
 * addresses; debug builds of the library check each word of them.
 */
typedef struct strand_fibre {
    uint64_t bits[2];
} strand_fibre;

/** The optional attributes of a shared fibre. Zero is the default of each field but `size`. */
typedef struct strand_fibre_attr {
    size_t size;       /* sizeof(strand_fibre_attr); required */
    size_t stack_size; /* address space in bytes; 0: strand_options.stack_size; rounded up in the same way */
    int count;         /* the number of fibres, over which strands are spread by load; 0: one; at most 65536 */
    const char *name;  /* diagnostics only; copied, up to 31 bytes; NULL means "fibre" */
} strand_fibre_attr;

/** Write attributes as an argument, with `size` filled in: strand_fibre_open(scope, STRAND_FIBRE_ATTR(.count = 8)). */
#define STRAND_FIBRE_ATTR(...) STRAND_SIZED_(strand_fibre_attr, __VA_ARGS__)

/**
 * Open a shared fibre, or a group of them, in a scope. Until the scope has been left, strands are spawned into it by
 * strand_attr.fibre. A stack is released when its last strand has ended. `attr` may be NULL. Only the owner of the
 * scope may call this function, or any strand of the run if the scope is open (STRAND_SCOPE_OPEN). The call does not
 * suspend.
 *
 * Returns the handle of the fibre. Throws STRAND_SYSTEM if there is no memory, or (with -ECANCELED) if the scope is
 * open and has been left. Cost: O(count).
 */
strand_fibre strand_fibre_open(strand_scope scope, const strand_fibre_attr *attr);
/** Get the number of fibres of a handle. Returns 1, or the `count` of the group. */
int strand_fibre_count(strand_fibre fibre);

/** Figures of a shared fibre. */
typedef struct strand_fibre_info {
    size_t size;       /* sizeof(strand_fibre_info); required */
    uint64_t strands;  /* strands of the fibre, including those that have not started */
    bool overloaded;   /* the fibre has more than one strand */
    uint64_t active;   /* the id of the strand whose frames are in the stack; 0: none */
    size_t stack_size; /* address space in bytes */
    /* The most bytes of the stack that a strand used when it suspended, since the last strand_fibre_trim. */
    size_t stack_deepest;
    size_t stack_resident; /* bytes of the stack that occupy memory: used at some time and not trimmed since */
    size_t saved_bytes;    /* bytes of the saved stacks of the inactive strands, rounded up */
    uint64_t copies;       /* the number of times that a stack was saved */
    /* Bytes of the stack in use: the frames of the active strand, as of its last suspension unless it is the caller,
     * and the fibre's own frames. */
    size_t stack_used;
    /* The most bytes of the stack in use since the opening: touched memory in whole pages, whether trimmed or not, or
     * the depth at a suspension where that is more. */
    size_t stack_peak;
} strand_fibre_info;
/** Read the figures of the fibre of number `index` of a handle into *info. The caller sets info->size; the function
 * fills in the fields that this size covers. Figures of a fibre that runs on another thread may lag. The call does not
 * suspend. Cost: two system calls for each 256 KiB of the stack. */
void strand_fibre_info_get(strand_fibre fibre, int index, strand_fibre_info *info);
/** Trim a shared fibre: return to the system the memory that its stack and its saved stacks have used and need no more.
 * A fibre in use is trimmed when its strand suspends. The call resets stack_deepest and does not suspend. Cost: a few
 * system calls. A fibre that has not run for half a second is trimmed without this call. Returns the number of bytes of
 * saved stacks that were returned. */
size_t strand_fibre_trim(strand_fibre fibre);
/** Check whether an address lies in the stack of the shared fibre that the calling strand runs on, for assertions. Any
 * thread may call it. Returns true if the address does. */
bool strand_on_shared_stack(const void *address);

/* ---- the attributes of a strand -------------------------------------------------------------------------- */

/** The attributes of a strand, for strand_spawn_with. Zero is the default of each field but `size`. */
struct strand_attr {
    size_t size;       /* sizeof(strand_attr); required */
    const char *name;  /* copied, up to 31 bytes; NULL means "strand" */
    size_t stack_size; /* address space in bytes; 0: strand_options.stack_size; rounded up in the same way */
    /* Called with a result that no strand takes: that of a child which was joined by its scope, or never. It runs on
     * the owner of the scope. Blocking and throwing in it are misuse. */
    void (*drop)(void *result);
    strand_pool pool; /* the pool; {0}: the spawner's. A pool of another run is misuse. */
    /* The shared fibre on which the strand lives; {0}: a private fibre. From a group the strand gets one of the fibres
     * with the fewest strands. The fibre decides the stack size and the pool, so setting those as well is misuse; so is
     * a stale fibre or a fibre of another run. The strand's scope may differ from the fibre's and may be left later. If
     * there is no memory to save another strand for its start, the strand ends by STRAND_SYSTEM and has not run. */
    strand_fibre fibre;
    /* For strands with secrets, on shared fibres only: overwrite what the strand leaves in memory. That is the fibre's
     * stack, down to its low end, when another strand of the fibre continues and soon after the end; the saved stack
     * when the strand continues; registers; values that the library kept while the strand waited; and copied arguments
     * after the join. Live variables, saved ones too, are visible in a core file. The caller has to wipe results,
     * values that others have received and its own allocations. It costs a system call whenever another strand of the
     * fibre continues. On a private fibre it is misuse: no other strand gets that stack while this one lives, so the
     * strand can overwrite its secrets itself. */
    bool wipe;
    /* STRAND_PIN(index): run the strand on that thread of its pool only. STRAND_PIN_HERE: on the caller's thread. The
     * thread stays as long as the strand lives. For libraries that insist on one thread. Children are not pinned. The
     * strand takes turns with the other strands of the thread. The spawn throws STRAND_SYSTEM with -ENXIO if the pool
     * has no such thread. Pinning a strand of a shared fibre is misuse. */
    int pin;
    /* A number for a user-made scheduler, which reads it by strand_task_rank. Not for strands on shared fibres. */
    int32_t rank;
};
#define STRAND_PIN(index) ((index) + 1)
#define STRAND_PIN_HERE (-1)

/** Write attributes as an argument, with `size` filled in: STRAND_ATTR(.name = "reader"). C++ requires the order of the
 * fields. */
#define STRAND_ATTR(...) STRAND_SIZED_(strand_attr, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
