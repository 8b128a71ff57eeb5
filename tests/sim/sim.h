/*
 * What a workload is written with: a program of strands that is run under seeds, and a law that has to hold after each
 * run. A workload is one file, and says
 *
 *     SIM_WORKLOAD(name, root, oracle, world);
 *
 *   root     the body of the root strand. What it throws fails the run
 *   oracle   called after the run, outside of strands: checks what has to be conserved; or NULL
 *   world    a static object, zeros at the start of each run, for what the oracle counts
 *
 * The structure of a run is drawn from the seed by generators of the workload's own, one for each strand: so what a
 * strand does depends on the seed alone, and the schedule only on the runtime's own choices. The runner (sim.c) chooses
 * threads and scheduler by the seed, and proves after each run, for all workloads:
 *
 *   - each strand of sim_spawn began once and ended once, and its clean-ups (SIM_CLEANUP) ran once, innermost first;
 *   - each result was taken once: by a join that noted it (sim_join, sim_take), or by the drop function;
 *   - each exception of sim_fail has been given back, and was not seen twice;
 *   - no block of memory is left; and every so many runs: no descriptor, and no address space.
 *
 * A workload that says so (SIM_WORKLOAD_THAT) is also refused memory, or loses connections, under some seeds. What is
 * conserved is conserved then as well; what comes of a strand need not be.
 */
#ifndef SIM_H
#define SIM_H

#include "strand.h"
#include "strand/pool.h"

#include <stdatomic.h>

/* ---- chance ---------------------------------------------------------------------------------- */

/** A generator of one strand's. */
struct sim_chance {
    uint64_t state;
};
/** A number in [0, n). */
uint32_t sim_draw(struct sim_chance *chance, uint32_t n);
/** Whether it happens, with a chance of 1 in n. */
bool sim_one_in(struct sim_chance *chance, uint32_t n);

/* ---- strands --------------------------------------------------------------------------------- */

enum { SIM_LIVES = 512 }; /* the most strands of a run */

/** One strand's life, from its spawn to the end of the run. */
struct sim_life {
    struct sim_chance chance; /* its own */
    int number;               /* from 1; the root's is 0 */
    int tag;                  /* the spawner's, for the workload */
    void (*body)(struct sim_life *me, void *arg);
    void *arg;
    strand handle; /* of the strand; others read it when it is known */
    _Atomic int known, refused, begun, ended, depth, returned, taken, failed, seen, given_back, cancelled;
};
/** What a strand runs. */
typedef void sim_body(struct sim_life *me, void *arg);

/** Spawn a strand that runs body(its life, arg). Throws as strand_spawn_with does. */
struct sim_life *sim_spawn(struct sim_life *me, strand_scope scope, sim_body *body, void *arg);
/** The same with a tag in its life, which it finds there. */
struct sim_life *sim_spawn_tagged(struct sim_life *me, strand_scope scope, sim_body *body, void *arg, int tag);
/** The same on a shared fibre; {0}: on one of its own. */
struct sim_life *sim_spawn_on(struct sim_life *me, strand_scope scope, strand_fibre fibre, sim_body *body, void *arg,
                              int tag);
/** The same anywhere: of `where` the pool, the pin and the fibre count. */
struct sim_life *sim_spawn_at(struct sim_life *me, strand_scope scope, const struct strand_attr *where, sim_body *body,
                              void *arg, int tag);
/** Some strand of the run that has been spawned, ended or not; NULL if there is none yet. */
struct sim_life *sim_somebody(struct sim_life *me);
/** The life with this number; NULL if there is none. */
struct sim_life *sim_life(int number);

/** strand_cancel, which is noted in the life when it has happened. */
void sim_cancel(struct sim_life *life, const char *why);
/** Note that a result was taken: that of strand_join or strand_scope_join_first. */
void sim_take(void *result);

/** How a strand ended, for its joiner. */
enum sim_end { SIM_RETURNED, SIM_CANCELLED, SIM_FAILED };
/** Join a child, whatever it ended by. The caller's own interruption goes on. */
STRAND_BLOCKS enum sim_end sim_join(struct sim_life *child);

/** Wait for an interruption, which has to come: an hour without one has failed the run. */
STRAND_BLOCKS STRAND_NORETURN void sim_for_ever(void);
/** A strand that does nothing else. */
void sim_eternal(struct sim_life *me, void *arg);

/** Run body(me, arg); returns what it threw, which the caller owns, or NULL. */
strand_exception *sim_try(struct sim_life *me, sim_body *body, void *arg);
/** Give e back, but an interruption is thrown again. NULL is allowed. */
void sim_settle(strand_exception *e);

/** What sim_fail throws; its payload is the life. */
extern const strand_kind SIM_ERROR; /* below STRAND_ERROR */
STRAND_NORETURN void sim_fail(struct sim_life *me);

/** Note in their lives the exceptions of sim_fail in e, which is about to be given back: e itself, and what is
 * suppressed in it, and so on. Each is seen once at most. */
void sim_see(const strand_exception *e);

/** A clean-up of the enclosing block, by whatever way it is left. */
#define SIM_CLEANUP(me) SIM_CLEANUP_(me, __COUNTER__)

/* ---- what is refused --------------------------------------------------------------------------- */

/** Whether this run refuses memory now and then (SIM_NO_MEMORY). */
bool sim_refuses_memory(void);
/** Whether e tells of that: itself, by its cause, or by what is suppressed in it. False for NULL. */
bool sim_no_memory(const strand_exception *e);
/** Whether connections break or fall silent in this run, now and then (SIM_BREAKS). */
bool sim_breaks(void);
/** Whether it has ended, or could not begin for want of memory. */
bool sim_ended(const struct sim_life *life);

/* ---- checks ---------------------------------------------------------------------------------- */

/** Those that fail say the seed, and what replays it, and end the process. Anywhere. */
#define SIM_CHECK(condition) ((condition) ? (void)0 : sim_failed_(__FILE__, __LINE__, "not true: " #condition, 0, 0))
#define SIM_CHECK_EQ(a, b) sim_check_eq_((long long)(a), (long long)(b), #a " == " #b, __FILE__, __LINE__)
/** Ends the run as failed, with the exception. */
STRAND_NORETURN void sim_unexpected(const strand_exception *e, const char *where);

/** Something that was seen in this run, in the order in which it was seen: part of the run's hash. */
void sim_observe(uint64_t what);
/** How often the library has told the log hook in this run that an exception was lost. */
int sim_logged(void);

/** What this run does when it is out of work: STRAND_OUT_OF_WORK_THROW or END; otherwise it waits (SIM_OUT_OF_WORK).
 */
enum strand_out_of_work sim_out_of_work(void);

/** What a workload may bear beside the seed: under one seed in four, each; the third under two in three. Or it has its
 * run shut down: then its root may end by that. */
enum { SIM_NO_MEMORY = 1, SIM_BREAKS = 2, SIM_OUT_OF_WORK = 4, SIM_STOPPED = 8 };
/** SIM_WORKLOAD of a workload that bears it. Refused memory may leave its root strand as an exception. */
#define SIM_WORKLOAD_THAT(bears, name, root, oracle, world)                                                            \
    const struct sim_workload sim_workload = {#name, root, oracle, &(world), sizeof(world), bears}

/* ---- behind the macros ----------------------------------------------------------------------- */

struct sim_workload {
    const char *name;
    sim_body *root;
    void (*oracle)(void);
    void *world;
    size_t world_size;
    unsigned bears;
};
extern const struct sim_workload sim_workload;
#define SIM_WORKLOAD(name, root, oracle, world) SIM_WORKLOAD_THAT(0, name, root, oracle, world)

struct sim_cleanup_ {
    struct sim_life *life;
    int depth;
};
struct sim_cleanup_ sim_enter_(struct sim_life *life);
void sim_leave_(const struct sim_cleanup_ *cleanup);
#define SIM_CLEANUP_(me, n) SIM_CLEANUP2_(me, n)
#define SIM_CLEANUP2_(me, n)                                                                                           \
    struct sim_cleanup_ sim_cleanup_##n __attribute__((cleanup(sim_leave_), unused)) = sim_enter_(me)

STRAND_NORETURN void sim_failed_(const char *file, int line, const char *text, long long a, long long b);
void sim_check_eq_(long long a, long long b, const char *text, const char *file, int line);

#endif
