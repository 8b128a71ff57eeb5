/*
 * How and where strands run: the options of a run, the attributes of a strand.
 * Both structs carry their size, so that a program built against an older header goes on working.
 */
#ifndef STRAND_POOL_H
#define STRAND_POOL_H

#include "../strand.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the options of strand_run --------------------------------------------------------------------------- */

/** What a strand does where its stack can have no guard page. */
enum strand_guards {
    STRAND_GUARDS_BEST_EFFORT = 0, /* guard pages while the system has them, then checked canaries and one warning */
    STRAND_GUARDS_REQUIRED = 1     /* a strand fails rather than run on a stack without a guard page */
};

/** What is done when strands of a pool wait longer for their turns than others, because of the thread in whose queue
 * they are. Of the scheduler "stealing" only: under the others all threads take from one queue, or there is one thread.
 */
enum strand_balance {
    /* Threads that have enough to do compare themselves now and then, and take strands over from one where they wait
     * for longer. */
    STRAND_BALANCE_EVEN = 0,
    /* And those that can't be spread evenly are moved all the time: of three that always run, on two threads, each gets
     * two thirds of a thread in the end, and not one of them as much as the two others together. */
    STRAND_BALANCE_STIR = 1,
    /* Only a thread that has nothing to do takes strands over. For work of which nothing but the end counts: what waits
     * behind a strand that computes may wait until that is done. */
    STRAND_BALANCE_NONE = 2
};

/** What a misuse hook is told. All pointers are valid during the call only. */
struct strand_misuse {
    const char *function; /* the public function that was misused */
    const char *what;     /* what was done, in words, with the rule it breaks */
    const char *made;     /* where the object was made ("file:line" or a trace), or "" */
};

struct strand_late; /* strand/debug.h */

/**
 * What happens when a run is out of work although strands are left: none runs or is runnable, none waits for a time, a
 * descriptor, a signal, a message of a port or an offloaded call, and no strand waits for just that
 * (strand_wait_quiet). Nobody of the run can ever wake one of them: they wait for each other, or for nobody. What a
 * pool still has to do that is driven from outside (strand_pool_drive) counts as work, whether somebody drives it or
 * not; if it is closed, and there is no thread that could, the log says so.
 */
enum strand_out_of_work {
    /* As STRAND_OUT_OF_WORK_THROW, unless somebody outside of the run could go on with it: the process has threads that
     * are none of the run's, or make a call that its caller has left (strand_offload_with), or a plain thread has
     * posted a value into one of the run's channels before. Then the run waits, and does not notice threads that end
     * more than a second later. But if nothing has been posted, it looks once, after a second or two, for strands that
     * wait for each other, by locks or joins, whom nobody could wake, and says in the log that there are some. For a
     * run with a seed to be out of work is a failure of that seed (docs/simulation.md). */
    STRAND_OUT_OF_WORK_AUTO = 0,
    /* It is a deadlock: who waits for whom is told in the log (on_log, or standard error), and STRAND_DEADLOCK is
     * thrown in the root strand, where it waits, so that the tree comes down in order. If the root can't be
     * interrupted, because it is in a shield or in a clean-up, the program ends, as below. */
    STRAND_OUT_OF_WORK_THROW,
    /* The same report, and the program ends: exit(EXIT_FAILURE), on a thread of the run. What the program has for
     * atexit must not wait for strands: they stay as they are. */
    STRAND_OUT_OF_WORK_EXIT,
    /* It is the end of the run: the root strand is cancelled. If that is how it ends, strand_run returns NULL, and
     * there is no exception. For runs of strands that go on for as long as there is something to be done. Strands that
     * wait for each other are told of in the log. */
    STRAND_OUT_OF_WORK_END,
    /* Nothing: somebody outside of the run will go on with it. So it is, too, while it is being shut down, for as long
     * as there is time to drain. */
    STRAND_OUT_OF_WORK_WAIT
};

/** The options of strand_run. Zero is the default of each. */
struct strand_options {
    size_t size; /* sizeof(strand_options); required */

    int threads; /* 0: one, or as many as `cpus` are; STRAND_THREADS_ALLOWED: one per allowed CPU (3 if that can't be
                    known), but only one with a scheduler that has no more */
    bool own_threads; /* all threads are the run's own; the caller sleeps meanwhile (required inside a strand) */
    /* "stealing" (NULL: the same): a queue per thread; one without work steals. "global": one queue for all threads,
     * first come, first served. "dedicated": one thread of the run's own, with a queue of its own; the caller sleeps.
     * "current": the same on the thread of the caller of strand_run. docs/schedulers.md compares them. */
    const char *scheduler;
    int64_t spin_us; /* of several threads, one without work looks for some so long before it sleeps; 0: 20 */

    size_t stack_size; /* address space of a strand's stack in bytes; 0: 64 KiB; rounded up to a power of two, 16 KiB at
                          least */
    enum strand_guards guards;
    size_t max_strands; /* a limit on the strands that exist at a time; 0: none but memory's */

    int offload_threads; /* the most threads that strand_offload uses; 0: 8 */

    /* STRAND_SEED=n in the environment, or has_seed here: a run that can be repeated (strand/sim.h, docs/simulation.md)
     */
    bool has_seed;
    uint64_t seed;

    /* NULL: an exception that leaves the root strand ends the program. Else it is stored here (the caller owns it),
     * or NULL if none did. */
    strand_exception **uncaught;

    /* A misuse is about to end the program. Any thread may call it. It may not return by longjmp. */
    void (*on_misuse)(const struct strand_misuse *misuse, void *arg);
    /* Something that no exception could carry: lost exceptions of cancelled children, warnings; reports of the
     * watchdog, which have several lines. Any thread may call it, also in the middle of a switch from one strand to
     * another. So it may neither block nor throw: that is misuse. NULL: standard error. */
    void (*on_log)(const char *message, void *arg);
    void *hook_arg;

    const struct strand_sim *sim; /* how a run with a seed is played, and what it tells of itself (strand/sim.h) */

    /* SIGQUIT prints a dump of this run's strands to standard error (strand/debug.h), whatever they do, instead of
     * ending the program. A handler that the program had before the run is called as well. Each run of the process that
     * has asked prints; STRAND_DUMP_ON_QUIT=1 in the environment asks for all. The run has one more thread then, and a
     * run of one thread the atomic operations of several. Ignored in a run with a seed. */
    bool dump_on_quit;

    /* At its end the run prints to standard error how much of their stacks strands have used at most, for each place
     * where strands are spawned: to choose stack sizes, and what to put on shared stacks (docs/stacks.md).
     * STRAND_CENSUS=1 in the environment asks for all runs. Costs a microsecond or two at each end of a strand, and at
     * each suspension on an opened fibre. */
    bool census;

    const struct strand_scheduler *custom; /* a scheduler of one's own (strand/scheduler.h), instead of a name */
    /* A limit, in bytes, on the memory of the stacks of the run's strands; 0: none but the system's; else one
     * stack_size at least. Counted are stacks, each with all of its size, whatever it uses, and the saved stacks of
     * strands on opened fibres, in steps of 64 KiB. A strand that would need more to begin ends by STRAND_SYSTEM with
     * -EAGAIN, without having run, and an opening of a fibre throws that; both name the limit and what was asked for.
     * What has begun goes on: if frames of strands on opened fibres grow when the limit is reached, it is passed, and
     * none begins there until it is kept again. With a limit the beginning and the end of a strand take some 20 ns
     * more. */
    size_t max_stack_bytes;

    /* A watchdog reports a strand that holds its thread for longer than so many nanoseconds, a million at least; 0:
     * none. A strand holds its thread until it suspends or gives way to another: while it computes, and while it waits
     * in a call of the system. (One that nobody waits for, and that comes by operations of the library, does not.) Also
     * a strand whose unwinding takes longer than watchdog_cleanups, because a clean-up blocks; 0: as long as the other.
     * Each is reported once more when it has lasted for twice as long, and so on, and when it is over; no more than ten
     * reports at once, and one each second. What is reported: struct strand_late in strand/debug.h. STRAND_WATCHDOG=ms
     * in the environment counts for all runs instead of `watchdog`, 0 there turns it off. docs/inside.md has more.
     *
     * The run has one more thread then, which looks four times within the shorter of the two, and sleeps while all
     * others do. No operation costs more for it, but throwing does, by some dozens of ns. Ignored in a run with a seed:
     * no time passes in it while a strand computes. */
    int64_t watchdog, watchdog_cleanups;
    /* Gets the reports of the watchdog, on its thread, which is none of the run's: it may call what a plain thread may.
     * Meanwhile nothing is watched, and the run does not end. NULL: they go to on_log, or standard error. */
    void (*on_late)(const struct strand_late *late, void *arg);

    enum strand_out_of_work out_of_work; /* what happens when nothing can go on; see there */
    enum strand_balance balance;         /* of the first pool */
    /* Thread i of the first pool runs on cpus[i % cpus_count] only; they stay the caller's. All threads are the run's
     * own then, as with own_threads. A CPU that the process may not use is an exception (-EINVAL), as is a count of
     * none. NULL: on any. */
    const int *cpus;
    int cpus_count;
};
#define STRAND_THREADS_ALLOWED (-1)

/** Options in the place of an argument; in C++ in the order of the fields. For example:
 * strand_run(STRAND_OPTIONS(.threads = 4), root, NULL). */
#define STRAND_OPTIONS(...) STRAND_SIZED_(strand_options, __VA_ARGS__)

/** How many CPUs the calling thread may use (its affinity, limited by STRAND_THREADS in the environment); 3 if that
 * can't be known. Any thread. */
int strand_threads_allowed(void);

/* ---- pools ------------------------------------------------------------------------------------------------ */

/**
 * A pool: the threads that strands run on. A run has a first one, which its options describe; more can be opened, in
 * scopes. A strand lives on its spawner's pool, or on the one that strand_attr.pool names, for life; strands of several
 * pools join, cancel, wait for, and talk to each other as those of one do, only that each wake-up across pools may have
 * to wake a thread.
 */
typedef struct strand_pool {
    uint64_t bits[2];
} strand_pool; /* {0}: none; goes stale when its scope has been left */

/** What a pool may be told at its opening. Zero is the default of each. */
typedef struct strand_pool_attr {
    size_t size; /* sizeof(strand_pool_attr); required */
    /* 0: as many as `cpus` are, or else STRAND_THREADS_ALLOWED: one per allowed CPU; with a scheduler that has no more,
     * one. 1024 at most. */
    int threads;
    const char *scheduler; /* as strand_options.scheduler; "current": strand_pool_drive; NULL: "stealing" */
    int64_t spin_us;       /* as strand_options.spin_us */
    /* Thread i runs on cpus[i % cpus_count] only; copied. How many threads there are STRAND_THREADS does not limit
     * then. NULL: on any. */
    const int *cpus;
    int cpus_count;
    const char *name;                      /* for people; copied, up to 31 bytes; NULL: "pool" */
    const struct strand_scheduler *custom; /* as strand_options.custom; it lives as long as the pool */
    enum strand_balance balance;           /* as strand_options.balance */
} strand_pool_attr;

/** Attributes in the place of an argument: strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 2)). */
#define STRAND_POOL_ATTR(...) STRAND_SIZED_(strand_pool_attr, __VA_ARGS__)

/**
 * Open a pool in a scope: it is closed when the scope is left, after the strands of the scope have ended, or earlier by
 * strand_pool_close. attr may be NULL. Owner of the scope only, unless it is open. Throws STRAND_SYSTEM if the system
 * refuses memory, threads or descriptors (code), or a CPU is none that the process may use (-EINVAL); then there is no
 * pool. Starts threads: some 50 microseconds each. Does not suspend. What attr says wrongly is misuse.
 */
strand_pool strand_pool_open(strand_scope scope, const strand_pool_attr *attr);
/** The pool that the calling strand runs on. */
strand_pool strand_pool_self(void);
/**
 * Close a pool: its strands are cancelled, with `why` (copied, up to 128 bytes; NULL: none in particular) in their
 * traces, and waited for; then its threads end. Cancelled are those that were spawned from other pools, or handed off
 * to them; what lives below them ends as below any cancelled strand. From now on a spawn onto the pool from another one
 * throws STRAND_SYSTEM (-ESHUTDOWN). Waits, uninterruptibly: it is a way of giving back, which no interruption refuses.
 * Several strands may close one pool: all wait. Misuse: by a strand of the pool, or below one; of the run's first pool,
 * which ends with the run; in a no-suspend section. Two strands that close each other's pools wait for ever.
 */
STRAND_SECTION_EXCLUDES_ void strand_pool_close(strand_pool pool, const char *why);
/**
 * Have a pool of so many threads, 1 to 1024, or STRAND_THREADS_ALLOWED. New ones begin at once. One that is to go, goes
 * at its next switch, with what waits in its queue given to others; that is not waited for. The thread of index 0
 * stays. Returns 0 or a negated errno code: -EBUSY: strands are pinned to a thread that would have to go, and nothing
 * is changed; -EAGAIN, -ENOMEM: there are as many as could be had; -ESHUTDOWN: it is closed, or being closed. Any
 * strand of the run. Does not suspend.
 */
int strand_pool_resize(strand_pool pool, int threads);

/**
 * Drive a pool that was opened with the scheduler "current": it has no thread of its own; its strands run on whoever
 * calls this, between the calls nobody does. For threads with a loop of their own, such as that of a toolkit or a game,
 * and for libraries that insist on one thread. Runs what is ready until nothing is, at most until the instant `until`
 * (strand_in; {0}: for as long as it takes), but one strand at least if one is ready; with STRAND_DRIVE_WAIT it waits
 * for more until then. Time is looked at when strands switch, so one that computes holds the caller up. Returns 1; 0:
 * the pool has ended, and the handle is not to be used any more; -EBUSY: another thread drives it now; -EPERM: another
 * thread has driven it before: it is always the same one. Plain threads only; a strand's call is misuse. A pool ends in
 * such a call: whoever closes it, or leaves its scope, waits for that. Under a seed a thread of the seed's runs the
 * pool, and the call only says whether it has ended.
 */
int strand_pool_drive(strand_pool pool, strand_time until, unsigned flags);
#define STRAND_DRIVE_WAIT 1u /* wait for what becomes ready */
/** A descriptor that becomes readable when there is something for strand_pool_drive to do, timers and the pool's end
 * included: to be watched by the caller's own loop (poll, epoll, g_unix_fd_add, uv_poll_init), level-triggered. It is
 * the pool's, and is closed with it. Any plain thread. -ESHUTDOWN: the pool has ended; -ENOTSUP: under a seed. */
int strand_pool_fd(strand_pool pool);

/**
 * Wait until a pool is quiet, or has ended: until there was a moment when none of its strands ran or was runnable, and
 * none that will be without being woken from another pool: none sleeps, or has a deadline, none waits for a descriptor,
 * a signal, a message of a port, or an offloaded call. Those that wait for each other, for channels, locks and so on
 * stay. The caller itself, its deadlines, and others that wait for quiet do not count. {0}: the caller's own pool.
 *
 *     STRAND_QUIET_RUN      all pools of the run at once; pool is {0}
 *     STRAND_QUIET_BLOCKED  it is enough that nobody runs or is runnable: who sleeps, or waits for something outside,
 * is let wait. For tests, mostly: everybody has got as far as they can at once.
 *
 * So a strand can hand out work in portions, each when the last one is done with all that came of it. By the time that
 * the caller goes on others may have woken again. Cost: a few microseconds after the last one has fallen idle.
 */
STRAND_BLOCKS void strand_wait_quiet(strand_pool pool, unsigned flags);
#define STRAND_QUIET_RUN 1u
#define STRAND_QUIET_BLOCKED 2u

/**
 * Shut the run down that the pool is of: first its strands are told, so that they take on no more and end by
 * themselves; then, `drain` nanoseconds later, its root strand is cancelled, with `why` (copied, up to 128 bytes of the
 * first one that is said; NULL: none in particular) in the traces, and the tree comes down in order. drain <= 0: at
 * once. INT64_MAX: there is no such instant. It is cancelled earlier if the run is out of work meanwhile, unless it
 * then waits for what somebody outside may do (enum strand_out_of_work). Of several calls the earliest instant counts.
 * Clean-ups run, as always, for as long as they take. If the root ends by that cancellation, strand_run returns NULL,
 * and that is no exception; what else leaves it is. A root that wants to be told apart from one that has ended by
 * itself stores what strand_stopping says in a clean-up.
 *
 * Any thread, those of other runs and handlers of signals too: it never waits, takes no memory, and leaves errno alone.
 * A handle is had from strand_pool_self; a handler is best installed by the root strand, when that has stored one.
 * Returns 0, or -ESHUTDOWN: the run has ended, or the scope of that pool has been left, or it is no pool ({0}); or
 * -EAGAIN: 63 others are looking at the pool at this moment. Some 100 ns.
 */
int strand_stop(strand_pool pool, int64_t drain, const char *why);
/** Whether somebody has called strand_stop for the caller's run. Does not suspend: for strands that compute, too. */
bool strand_stopping(void);
/** Wait until somebody does: to close what brings in new work. As a case of a select: strand_on_stopping. */
STRAND_BLOCKS void strand_wait_stopping(void);

/** Figures of a pool. */
struct strand_pool_info {
    size_t size; /* sizeof(struct strand_pool_info); required */
    char name[32];
    const char *scheduler;
    int threads;      /* there are, with those that are about to go */
    int wanted;       /* as it was opened, or resized last */
    uint64_t strands; /* that live on it, those included that have not started */
    /* How unequally its strands are served: where they wait longest in a thread's queue, how many times as long it
     * takes until each of them has had a turn as where that takes shortest. 1: alike, or in one queue, or nobody waits.
     * It is the number waiting, now, by the pace at which the thread has served them in the last tenth of a second or
     * so. Idle threads, and pinned strands, are left out. Racy, a measure only; costs some dozens of ns per thread. */
    double unequal;
    int64_t wait_ns; /* how long they wait there, on average, in nanoseconds */
};
/** Fill in those figures that the struct has room for. Does not suspend. */
void strand_pool_info_get(strand_pool pool, struct strand_pool_info *info);
/** The index of the calling thread in its pool, 0 to threads - 1: it may be another after any suspension, unless the
 * strand is pinned. */
int strand_thread_index(void);

/* ---- opened fibres ----------------------------------------------------------------------------------------- */

/**
 * A fibre is a stack for strands. As a rule a strand has one of its own. An opened fibre is shared by many strands, one
 * of which is active at a time: its frames lie in the stack, those of the others are kept elsewhere and are copied
 * back, to the same addresses, before it goes on. So an inactive strand costs as many bytes as it uses of the stack,
 * and a switch between two strands of a fibre costs a copy of both. For very many strands that wait with shallow
 * stacks, any of which may go deep now and then (docs/stacks.md).
 *
 * While a strand is inactive its locals are somebody else's memory. What is handed to others must lie elsewhere: an
 * address in the stack of the opened fibre that the caller runs on is refused where it is handed over, from the first
 * strand on. What is copied, arguments and values of channels, may lie there, but should not hold such addresses
 * itself: debug builds of the library look at each word of it.
 */
typedef struct strand_fibre {
    uint64_t bits[2];
} strand_fibre; /* {0}: none; goes stale when its scope has been left */

/** What a fibre may be told at its opening. Zero is the default of each. */
typedef struct strand_fibre_attr {
    size_t size;       /* sizeof(strand_fibre_attr); required */
    size_t stack_size; /* address space in bytes; 0: as the options say; rounded up as there */
    int count;         /* so many fibres, over which strands are spread by load; 0: one; 65536 at most */
    const char *name;  /* for people; copied, up to 31 bytes; NULL: "fibre" */
} strand_fibre_attr;

/** Attributes in the place of an argument: strand_fibre_open(scope, STRAND_FIBRE_ATTR(.count = 8)). */
#define STRAND_FIBRE_ATTR(...) STRAND_SIZED_(strand_fibre_attr, __VA_ARGS__)

/**
 * Open a fibre, or a group of them, in a scope: strands are spawned into it by strand_attr.fibre until the scope has
 * been left; the stacks are given back when their last strands have ended. attr may be NULL. Owner of the scope only,
 * unless it is open. Throws STRAND_SYSTEM if memory is refused. Does not suspend.
 */
strand_fibre strand_fibre_open(strand_scope scope, const strand_fibre_attr *attr);
/** How many fibres a handle stands for. */
int strand_fibre_count(strand_fibre fibre);

/** Figures of an opened fibre. */
struct strand_fibre_info {
    size_t size;       /* sizeof(struct strand_fibre_info); required */
    uint64_t strands;  /* that live on it, those included that have not started */
    bool overloaded;   /* it has more than one */
    uint64_t active;   /* the id of the strand whose frames lie in the stack: it runs, or ran last; 0: none */
    size_t stack_size; /* address space */
    /* Bytes that a strand used of it when it suspended, at most, since it was trimmed on request. */
    size_t stack_deepest;
    /* Bytes of memory that it takes: what was ever used of it and not trimmed since, on request or because it rested.
     */
    size_t stack_resident;
    size_t image_bytes; /* of the saved stacks of its inactive strands, as rounded up */
    uint64_t copies;    /* how often a stack was saved */
    /* Bytes of the stack in use now: the frames of the active strand, as they were when it suspended last unless it is
     * the caller, and those that the fibre has of its own. */
    size_t stack_used;
    /* Bytes of the stack in use at most since it was opened, in whole pages of what was touched, whether trimmed or not
     * since; or, where that is more, as strands suspended. */
    size_t stack_most;
};
/** Fill in those figures of fibre number `index` that the struct has room for. Those of a fibre that runs on another
 * thread may lag. Does not suspend. */
void strand_fibre_info_get(strand_fibre fibre, int index, struct strand_fibre_info *info);
/** Give memory back to the system that the fibre's stack, and saved stacks, have used and need no more: at once, or of
 * a fibre that is in use as soon as its strand suspends; stack_deepest is counted anew. Returns how many bytes of saved
 * stacks that were. Does not suspend; a few system calls. A fibre that nobody has run on for half of a second has been
 * trimmed without that. */
size_t strand_fibre_trim(strand_fibre fibre);
/** Whether an address lies in the stack of the opened fibre that the calling strand runs on: for assertions. Any
 * thread. */
bool strand_on_shared_stack(const void *address);

/* ---- the attributes of a strand -------------------------------------------------------------------------- */

/**
 * The attributes of a strand, for strand_spawn_with. Zero is the default of each.
 *
 * A strand with a fibre lives on that for life, with others: one of them runs at a time, the others are saved, and what
 * it hands to others may not lie on its stack (strand_fibre). Of a group it gets one of those with the fewest strands.
 * The stack and the pool are the fibre's, so to choose those too is misuse; a fibre whose scope has been left, or one
 * of another run, is misuse as well. The strand's scope may be another than the fibre's, and be left later. Where
 * memory to save somebody else for its start is refused it ends by STRAND_SYSTEM without having run.
 *
 * A strand that wipes leaves nothing of its frames in memory that others get: the stack is overwritten, down to its low
 * end, when another strand of the fibre goes on, and soon after its own end; the place where it was saved when it comes
 * back. Its own variables are there as long as it lives, and while it is inactive they are where it was saved: a core
 * file has them. What it has put elsewhere, such as results, values that others have taken, or memory of malloc, is its
 * own business. On a fibre of its own it is misuse: nobody else gets the stack while it lives, and it can overwrite
 * what it knows.
 */
struct strand_attr {
    size_t size;       /* sizeof(strand_attr); required */
    const char *name;  /* copied, up to 31 bytes; NULL: "strand" */
    size_t stack_size; /* address space in bytes; 0: as the options say; rounded up as there */
    /* Gets a result that nobody takes: of a child that was joined by its scope, or never.
     * Runs on the owner of the scope; it neither blocks nor throws. */
    void (*drop)(void *result);
    strand_pool pool;   /* where it runs; {0}: where its spawner does. One of another run is misuse. */
    strand_fibre fibre; /* an opened one, on which it lives with others; {0}: one of its own */
    /* Secrets: what its frames leave behind, in the fibre's stack and where they were saved, in registers, and in
     * values that the library kept for it while it waited, is overwritten, soon after its end at the latest; its copied
     * arguments when it has been joined. Of strands with a fibre only. A system call for each time that another strand
     * of the fibre goes on. */
    bool wipe;
    /* STRAND_PIN(index): it runs on that thread of its pool only, which stays as long as it lives; STRAND_PIN_HERE: on
     * the one that the caller runs on now. For libraries that insist on one thread. What it spawns is not pinned. Its
     * turn alternates with that of the thread's other strands. Throws STRAND_SYSTEM (-ENXIO) if the pool has no such
     * thread. Not of strands on opened fibres. */
    int pin;
    /* For a scheduler of the user's, which knows what it means: strand_task_rank. Not of strands on opened fibres. */
    int32_t rank;
};
#define STRAND_PIN(index) ((index) + 1)
#define STRAND_PIN_HERE (-1)

/** Attributes in the place of an argument; in C++ in the order of the fields. For example: STRAND_ATTR(.name =
 * "reader"). */
#define STRAND_ATTR(...) STRAND_SIZED_(strand_attr, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
