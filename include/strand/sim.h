/*
 * Runs that can be repeated. With a seed (strand_options.has_seed, or STRAND_SEED=n in the environment) a run is played
 * by one thread of the system: the seed chooses each next step of it, time is virtual, and the same seed gives the same
 * run. Here are the ways of choosing, the faults that can be asked for, what such a run tells of itself, and a search
 * for a seed under which a program fails. The page for all of it is docs/simulation.md.
 *
 * Only sequentially consistent orders are played. Thread-local variables of the program are shared by all the threads
 * that are played, since these are one.
 */
#ifndef STRAND_SIM_H
#define STRAND_SIM_H

#include "pool.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What a run with a seed tells of itself, at its end. */
typedef struct strand_sim_report {
    uint64_t seed;     /* the seed that it had */
    uint64_t schedule; /* a hash of all that was chosen: who took each step, how long it took, what was refused or cut;
                          equal on every compiler, and at every optimisation */
    uint64_t steps;    /* how often it was chosen who goes on */
    int64_t time_ns;   /* the virtual time that it took */
    bool atomic_steps; /* a step ended at every atomic operation of the runtime (a build with STEPS=1) */
} strand_sim_report;

/** strand_sim.depth: by chance alone. */
#define STRAND_SIM_WALK UINT32_MAX

/**
 * How a run with a seed is played: strand_options.sim. Zero is the default of each. STRAND_SIM="depth=3 memory=100" in
 * the environment goes before what is said here; the words are the names of the fields, but
 * for size, quiet and report.
 */
struct strand_sim {
    size_t size; /* sizeof(strand_sim); required */

    /* How it is chosen who goes on. STRAND_SIM_WALK ("depth=walk"): of those that can, each is as likely as another, at
     * every step. 1 to 64: the pool's threads have priorities, dealt at random, and the highest that can go on does; at
     * depth - 1 steps of `length`, chosen at random, the one that runs gets the lowest. Between these steps all other
     * choices, as which strand a thread takes, keep to a habit. So somebody may be kept waiting for very long, which a
     * walk hardly ever does. 0: the seed says so: every fourth, n = 0, 4, 8..., plays to the depth 1 + n / 4 % 5, all
     * others walk.
     *
     * The priorities are after Burckhardt, Kothari, Musuvathi, Nagarakatte: A Randomized Scheduler with Probabilistic
     * Guarantees of Finding Bugs, 2010. Their bound on the probability does not hold here: threads have the priorities,
     * not strands, who wakes up is dealt a new one, and who spins or goes on for very long loses it. */
    uint32_t depth;
    uint32_t length; /* about how many steps such a run has; 0: 1000 */

    bool
        coarse; /* steps end where a strand suspends, sleeps or spins, and not before each operation that may suspend */

    uint64_t steps; /* a run that takes more steps has failed: it may never end; 0: no bound */

    uint32_t memory;  /* one request for memory in so many is refused, as by malloc; 0: none */
    uint32_t resets;  /* one simulated connection in so many breaks in the middle; 0: none */
    uint32_t silence; /* one simulated connection in so many delivers nothing any more, from some point on; 0: none */

    /* Pipes and sockets are the system's, and the run can't be repeated as exactly as without, which the log hook is
     * told at the first of them. Else those that are made
     * by strand_pipe, strand_listen_ and strand_dial_ are simulated: they lie in memory, and know each other only. */
    bool real;

    bool quiet;                /* nothing is printed at the end of a run that goes well; as STRAND_QUIET=1 has it */
    strand_sim_report *report; /* filled in at the end of the run; NULL: not */

    /* Who gives the address of a local away is found: every strand but the root, unless it was told a stack size, lives
     * on one of three opened fibres (strand/pool.h); where it suspends its frames are copied out at once, and what it
     * leaves there is overwritten. STRAND_STACKS=shared in the environment has that of runs without a seed as well. */
    bool shared_stacks;
};
typedef struct strand_sim strand_sim;

/** Ways of playing in the place of an argument; in C++ in the order of the fields. For example:
 * STRAND_OPTIONS(.has_seed = true, .seed = 7, .sim = STRAND_SIM(.depth = 3)). */
#define STRAND_SIM(...) STRAND_SIZED_(strand_sim, __VA_ARGS__)

/** What strand_sim_search has found. */
typedef struct strand_sim_found {
    uint64_t seed;  /* the seed under which fn failed; else the last one that was tried */
    int status;     /* how its process ended, as waitpid(2) tells it */
    uint64_t tried; /* how many seeds were tried, this one included */
} strand_sim_found;

/**
 * Look for a seed under which fn fails: run fn(arg), by strand_run with these options (NULL: the defaults, on two
 * threads), under each of `count` seeds from `first` on, in a child process, until that process ends before its time:
 * by abort or an assertion, by an uncaught exception, by exit, by a deadlock, by a signal; or a run takes more steps
 * than options.sim allows (0: 20 000 000). What it writes to standard error then is the seed, the last steps and the
 * strands. Returns 1 if it has found one, 0 if all went well, and fills in *found (may be NULL); or a negated errno
 * code: if no process could be had, or -EINVAL if no run can be had with these options or with what the environment
 * says, which on_log is told of, or else standard error. With STRAND_SEED in the environment fn runs once, under that
 * seed and in this very process, so that a debugger can look on: that is how a seed is replayed. In the child each
 * run numbers its strands (strand_id) as the only run of a process would. Blocks its thread: not
 * from a strand. Other threads of the program are not in the child; a strand that neither ends nor suspends keeps the
 * search from ending.
 */
int strand_sim_search(const strand_options *options, uint64_t first, uint64_t count, strand_fn *fn, void *arg,
                      strand_sim_found *found);

/**
 * Run fn(arg) on a plain thread, outside of strands: to test what plain threads of a program do, as posting to a
 * channel. In a run with a seed it is a simulated thread, so the seed chooses when it posts; else it is one of the
 * system's. The end of the run waits for it. What fn returns is dropped. Returns 0 or a negated errno code. From a
 * strand; does not block.
 */
int strand_sim_thread(strand_fn *fn, void *arg);

/**
 * Sleep for so many nanoseconds on a plain thread: one of strand_sim_thread, or in an offloaded function, which stands
 * for a call that takes its time. In a run with a seed it is virtual time, and others go on meanwhile; else the thread
 * blocks, until a signal at the latest. Not from a strand, for which there is strand_sleep: that is misuse. Any plain
 * thread.
 */
void strand_sim_sleep(int64_t ns);

/**
 * Run handler(arg) as the handler of a signal: to test what handlers of a program do, as sending to a port. In a run
 * with a seed it interrupts, some time later, one of the threads of the run, or of strand_sim_thread, in the middle of
 * what that does, which goes on when it has returned; the seed chooses whom and where (in a build with STEPS=1 before
 * any atomic operation of the runtime, so where that holds a lock, too). At the end of the run handlers that have not
 * come yet are forgotten. In a run without a seed it is called at once. It may call what handlers may. Returns 0 or a
 * negated errno code. From a strand; does not block.
 */
int strand_sim_interrupt(void (*handler)(void *arg), void *arg);

#ifdef __cplusplus
}
#endif
#endif
