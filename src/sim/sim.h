/*
 * The second driver. One thread of the operating system plays all threads of a pool, and plain threads too: each has a
 * context of its own. Where one of them gives way (at every suspension, sleep, spin and operation that may suspend;
 * with STEPS=1 at every atomic operation of the runtime) the order chooses who goes on, and control passes there
 * directly. Time is virtual, passes a little with every step, and jumps to the next timer when everybody sleeps.
 *
 * PARTIES   played threads, of which one runs (sim->running); the director, which is the caller of the run.
 * STATE     played->state: READY, RELAXED (would rather have others go first), SLEEPING until `deadline` or
 *           `woken`, DONE, FREE (a plain one that was joined).
 * OWNERSHIP all of it is the one thread's of the system, so nothing here is atomic. A context is valid while its
 *           thread does not run: it is stored by whoever is passed control (came_from).
 * PROGRESS  a RELAXED one goes on when nobody else can; if all sleep time jumps; if no sleep can end it is a
 *           deadlock.
 * NOT DONE  threads of the program's own: the director can't know that one of them is about to post.
 *
 *   sim.c      opening and closing, what threads call: the driver
 *   player.c   played threads, and passing control between them
 *   order.c    who goes on, and every other choice
 *   options.c  what is asked for, by options and by the environment
 *   report.c   the last steps in words; the ends of runs that fail
 *   net.c      played descriptors: queues of bytes that are on their way; wire.c, what the seed does to them
 *   search.c   looking for a seed that fails
 *
 * What is chosen is folded into a hash: who takes each step and when it ends, whether a request or a connection fails,
 * how long bytes take and in which portions they come, and every choice of the runtime's. Not the priorities, which are
 * seen by who goes on. The hash never depends on an address, a real time, or a number that the system gives.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include "../../include/strand/sim.h"

#include "../sched/driver.h"
#include "../sched/pool.h"
#include "../sched/thread.h"

/* RELAXED: spins, and would rather have others go first. FREE: there is no thread; one may be made in its place. */
enum played_state { PLAYED_READY, PLAYED_RELAXED, PLAYED_SLEEPING, PLAYED_DONE, PLAYED_FREE };
/* Where a thread had given way when it is chosen: for the words of a report. */
enum gave_way { GAVE_START, GAVE_SUSPENSION, GAVE_SPIN, GAVE_SLEEP, GAVE_OPERATION, GAVE_ATOMIC };

struct played {
    struct sim *sim;
    struct thread *thread; /* NULL: a plain one */
    void *(*fn)(void *);
    void *arg;
    uint32_t index;
    arch_context context;
    void *stack;
    size_t stack_size;
    struct arch_note note; /* of its stack: a plain one's, or one's that is done */
    enum played_state state;
    enum gave_way gave_way;
    void *where; /* in the code, of the last operation */
    bool woken;
    bool polls; /* it sleeps in the poller: played descriptors end that too */
    int64_t deadline;
    const _Atomic uint32_t *word; /* a plain one sleeps on it */
    int64_t priority;
    uint32_t turns;   /* since that was dealt */
    bool interrupted; /* it sleeps, and is woken by a handler */
};

/* A handler that is to interrupt somebody. */
struct interrupt {
    struct interrupt *next;
    void (*handler)(void *arg);
    void *arg;
};

struct step {
    uint64_t number;
    int64_t now;
    uint32_t who;
    enum gave_way gave_way;
    uint32_t again; /* it spun so often */
    uint32_t blocked;
    uint64_t blocked_on;
    void *where;       /* in the code: of GAVE_OPERATION */
    struct cb *strand; /* NULL: none; it may have ended since */
    uint64_t id;
};

/* Of strand_sim.depth, which is 0 here for a walk. */
enum { DEPTH_MOST = 64 };

struct order {
    struct rng rng;
    int64_t lowest;               /* of the priorities so far */
    uint64_t changes[DEPTH_MOST]; /* the steps at which who runs loses its priority */
    uint32_t habit;               /* of the other choices; another one at each of these steps */
};

enum { LAST_STEPS = 48 };

struct sim {
    struct arch_player player; /* first */
    struct arch_player *outer; /* the run that this one is inside of */
    struct subprocess *sub;
    struct driver driver;
    struct strand_sim options;
    uint64_t seed, hash, steps;
    uint32_t noted; /* entries of `last` so far */
    bool atomic_steps;
    bool failed; /* a report is being written: nobody gives way any more */
    struct order order;
    int64_t began, now;
    struct played **played;
    uint32_t count, room, pool_threads;
    struct played *running; /* NULL: the director */
    struct played *came_from;
    const struct played *waits_for; /* the director, for the end of this one; NULL: of all threads of the pool */
    arch_context director;          /* who called play */
    struct arch_note director_note;
    struct step last[LAST_STEPS];
    struct interrupt *interrupts; /* the first come first */
    struct net *net;              /* NULL: no descriptor was ever made */
    bool met;                     /* it was said that there are descriptors of the system's */
    struct stage *stage;
};

#ifdef STRAND_STEPS
#define SIM_HAS_ATOMIC_STEPS true
#else
#define SIM_HAS_ATOMIC_STEPS false
#endif

static inline struct sim *sim_of(struct subprocess *sub)
{
    return sub->driver_state;
}

static inline void sim_fold(struct sim *sim, uint64_t what)
{
    sim->hash = (sim->hash ^ what) * UINT64_C(0x100000001b3); /* FNV-1a, a word at a time */
}

/* realloc, and free, for what played threads share: TSan is told that one comes after the other. */
static inline void *sim_resize(struct sim *sim, void *old, size_t size)
{
    arch_note_acquire(sim);
    void *new = realloc(old, size);
    arch_note_release(sim);
    return new;
}

static inline void sim_free(struct sim *sim, void *memory)
{
    arch_note_acquire(sim);
    free(memory);
    arch_note_release(sim);
}

/* ---- player.c ---- */

/* A new played thread, which begins when it is chosen. Returns 0 or a negated errno code. */
int player_add(struct sim *sim, struct thread *thread, void *(*fn)(void *), void *arg, struct played **out);
/* A plain one that is done was joined. */
void player_free(struct played *played);
/* The running one gives way; returns when it is chosen again. */
void player_give_way(struct sim *sim, enum played_state state, enum gave_way how);
/* The running one, a plain one, sleeps until it is woken, or the instant deadline. */
void player_sleep(struct sim *sim, int64_t deadline);
/* A handler interrupts some played thread, some time. Returns 0 or a negated errno code. */
int player_interrupt(struct sim *sim, void (*handler)(void *arg), void *arg);
/* From outside of played threads: until `last` is done; NULL: all threads of the pool. */
void player_play(struct sim *sim, const struct played *last);
/* The same, one step. */
void player_step(struct sim *sim);
void player_close(struct sim *sim);
/* What one run leaves to the next; NULL is allowed, and may be the answer. */
struct stage *stage_make(void);
void stage_free(struct stage *stage);

/* ---- order.c ---- */

void order_open(struct sim *sim);
/* Who takes the next step; time jumps if everybody sleeps. NULL: nobody ever can again. */
struct played *order_next(struct sim *sim);
/* In [0, n), each as likely as another. */
uint32_t order_chance(struct sim *sim, uint32_t n);
/* The same by habit, if there are any. */
uint32_t order_choose(struct sim *sim, uint32_t n);
/* One in so many, by chance; 0: never. */
bool order_once_in(struct sim *sim, uint32_t n);
/* It spins: others first. */
void order_relaxed(struct sim *sim, struct played *played);
/* It is new, or has woken up. */
void order_deal(struct sim *sim, struct played *played);

/* ---- options.c ---- */

/* What a seeded run is asked for. */
struct driver_second {
    bool has_seed;
    uint64_t seed;
    const struct strand_sim *sim;
};
/* A copy of the user's, who may know fewer fields, or more; NULL: nothing. False: its size is none that can be. */
bool options_copy(struct strand_sim *out, const struct strand_sim *options);
/* Fills in options, seed, atomic_steps. 1; 0: no seed is asked for; or a negated errno code, with what was wrong in
 * text. */
int options_take(struct sim *sim, const struct driver_second *asked, char *text, size_t room);
/* Whether these are understood: 0, or a negated errno code, with what was wrong in text. */
int options_check(const struct driver_second *asked, char *text, size_t room);

/* ---- report.c ---- */

/* Of the strand that runs in a fibre. */
void report_strand(struct step *step, const struct fibre *fibre);

/* At the end of every run: a line, or a report of the failure, if it is one. */
void report_end(struct sim *sim, const char *failure);
__attribute__((noreturn)) void report_fail(struct sim *sim, const char *what);
__attribute__((noreturn)) void report_deadlock(struct sim *sim);
void report_ending(struct arch_player *player);

/* ---- net.c ---- */

int net_open(struct sim *sim);
void net_close(struct sim *sim);
extern const struct driver_fds net_fds;
/* A descriptor of the system's, of which the first is warned of: it is not for the seed to say what the system does. */
void net_meet(struct subprocess *sub, int fd);
/* When the next thing happens that the poller reports; ARCH_FOREVER: nothing. */
int64_t net_next(const struct sim *sim);
/* What has happened by now, in an order of the seed's. */
int net_take(struct sim *sim, struct arch_event *events, int most);

/* Put the simulation into a run that asks for a seed, before its first pool is made. Returns 0, also if none is asked
 * for, or a negated errno code; `text` says what is wrong for -EINVAL. */
int driver_second_open(struct subprocess *sub, const struct driver_second *asked, char *text, size_t room);
/* Take it out again, if there is one. failure: what is wrong with the run, or NULL. */
void driver_second_close(struct subprocess *sub, const char *failure);

#endif
