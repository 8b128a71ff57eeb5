/*
 * The second platform: simulation. One thread of the operating system simulates all threads of a run, and plain threads
 * too: each has a context of its own. Where a simulated thread yields (at every suspension, sleep, spin and operation
 * that may suspend; with STEPS=1 at every atomic operation of the runtime) the order chooses the next thread, and
 * control passes there directly. Time is virtual, advances a little with every step, and jumps to the next timer when
 * all threads sleep.
 *
 * PARTIES   simulated threads, one of which runs (sim->running); the director, which is the caller of the run.
 * STATE     played->state: READY, RELAXED (spins: others go first), SLEEPING until `deadline` or `woken`, DONE, FREE (a
 *           plain thread that was joined).
 * OWNERSHIP everything belongs to the one thread of the system, so nothing here is atomic. A context is valid while its
 *           thread does not run: the thread that gets control stores it (came_from).
 * PROGRESS  a RELAXED thread goes on when no other can; if all sleep, time jumps; if no sleep can end, that is a
 *           deadlock.
 * NOT DONE  threads of the program's own: the director can't know that one of them is about to post.
 *
 *   sim.c      opening and closing, and the platform's functions
 *   player.c   simulated threads, and passing control between them
 *   order.c    which thread goes on, and every other choice
 *   options.c  options, from the caller and from the environment
 *   report.c   the last steps in words; the ends of runs that fail
 *   net.c      simulated descriptors: queues of bytes in transit; wire.c, the seed's effects on them
 *   net_names.c their names; datagram.c, those without connections
 *   routes.c   what becomes of connections to an address
 *   calendar.c the virtual date, and descriptors that wait for one
 *   and src/run/search.c looks for a seed that fails
 *
 * All choices are folded into a hash: which thread takes each step and when it ends, whether a request or a connection
 * fails, how long bytes take and in which portions they arrive, and every choice of the runtime. Priorities are not,
 * since they show in the order of threads. The hash never depends on an address, a real time, or a number from the
 * system.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include "../../include/strand/sim.h"

#include "../sched/platform.h"
#include "../sched/resize.h"
#include "../sched/thread.h"
#include "../strand/core.h"

/* What this layer adds to a run. */
struct plain;
enum { SIM_PART = 1 }; /* in runtime.parts */
struct sim_run {
    _Atomic(struct plain *) plain; /* the plain threads of strand_sim_thread: threads.c */
};
/* Joins them, at the end of the run: the strands that started them have ended. */
void threads_close(struct runtime *runtime);

/* RELAXED: spins, and lets others go first. FREE: the thread was joined; its place can be reused. */
enum played_state { PLAYED_READY, PLAYED_RELAXED, PLAYED_SLEEPING, PLAYED_DONE, PLAYED_FREE };
/* Where a thread had yielded when it is chosen: for the words of a report. */
enum switch_point { POINT_START, POINT_SUSPENSION, POINT_SPIN, POINT_SLEEP, POINT_OPERATION, POINT_ATOMIC };

struct played {
    struct sim *sim;
    struct thread *thread; /* NULL: a plain thread */
    void *(*fn)(void *);
    void *arg;
    uint32_t index;
    arch_context context;
    void *stack;
    size_t stack_size;
    struct arch_san san; /* of its stack: for a plain thread, or one that is done */
    enum played_state state;
    enum switch_point switch_point;
    void *where; /* the code address of the last operation */
    bool woken;
    bool polls; /* it sleeps in the poller: events of simulated descriptors end that too */
    int64_t deadline;
    const _Atomic uint32_t *word; /* the word that a plain thread sleeps on */
    int64_t priority;
    uint32_t steps_since_deal; /* steps since the priority was dealt */
    bool interrupted;          /* it sleeps, and is woken by a handler */
};

/* A handler that will interrupt some thread. */
struct interrupt {
    struct interrupt *next;
    void (*handler)(void *arg);
    void *arg;
};

struct step {
    uint64_t number;
    int64_t now;
    uint32_t who;
    enum switch_point switch_point;
    uint32_t again; /* how many times more it spun */
    uint32_t blocked;
    uint64_t blocked_on;
    void *where;       /* a code address, for POINT_OPERATION */
    struct cb *strand; /* NULL: none; it may have ended since */
    uint64_t id;
};

/* The limit of strand_sim.depth; 0 stands for a walk here. */
enum { DEPTH_MOST = 64 };

struct order {
    struct rng rng;
    int64_t lowest;               /* of the priorities so far */
    uint64_t changes[DEPTH_MOST]; /* the steps at which the running thread loses its priority */
    uint32_t habit;               /* of the other choices; changes at each of these steps */
};

enum { LAST_STEPS = 48 };

struct sim {
    struct arch_player player; /* first */
    struct arch_player *outer; /* the run that this one is nested in */
    struct subprocess *sub;
    struct platform platform;
    struct strand_sim options;
    uint64_t seed, hash, steps;
    uint32_t recorded; /* entries of `last` so far */
    bool atomic_steps;
    bool failed; /* a report is being written: no thread yields any more */
    struct order order;
    int64_t began, now;
    int64_t date_offset; /* of the virtual date from `now` */
    struct played **played;
    uint32_t count, room, pool_threads;
    struct played *running; /* NULL: the director */
    struct played *came_from;
    const struct played *waits_for; /* the director waits for the end of this thread; NULL: for all threads of the
                                     * pool */
    arch_context director;          /* the caller of player_play */
    struct arch_san director_san;
    struct step last[LAST_STEPS];
    struct interrupt *interrupts; /* FIFO */
    struct net *net;              /* NULL: no descriptor was ever made */
    struct route *routes;         /* of addresses that are not open, or slow */
    bool met;                     /* real descriptors were warned of */
    struct stage *stage;
};

#ifdef STRAND_STEPS
#define SIM_HAS_ATOMIC_STEPS true
#else
#define SIM_HAS_ATOMIC_STEPS false
#endif

static inline struct sim *sim_of(struct subprocess *sub)
{
    return sub->sim;
}

static inline void sim_fold(struct sim *sim, uint64_t what)
{
    sim->hash = (sim->hash ^ what) * UINT64_C(0x100000001b3); /* FNV-1a, a word at a time */
}

/* realloc, and free, for memory that simulated threads share: they announce the order to TSan. */
static inline void *sim_resize(struct sim *sim, void *old, size_t size)
{
    arch_san_acquire(sim);
    void *new = realloc(old, size);
    arch_san_release(sim);
    return new;
}

static inline void sim_free(struct sim *sim, void *memory)
{
    arch_san_acquire(sim);
    free(memory);
    arch_san_release(sim);
}

/* ---- player.c ---- */

/* Add a simulated thread, which begins when it is chosen. Returns 0 or a negated errno code. */
int player_add(struct sim *sim, struct thread *thread, void *(*fn)(void *), void *arg, struct played **out);
/* Release a plain thread that is done and was joined. */
void player_free(struct played *played);
/* The running thread lets the next one run. Returns when it is chosen again. */
void player_switch(struct sim *sim, enum played_state state, enum switch_point point);
/* The running thread, a plain one, sleeps until a wake-up or the instant deadline. */
void player_sleep(struct sim *sim, int64_t deadline);
/* Have a handler interrupt some simulated thread at some time. Returns 0 or a negated errno code. */
int player_interrupt(struct sim *sim, void (*handler)(void *arg), void *arg);
/* From the director: run until `last` is done; NULL: until all threads of the pool are. */
void player_play(struct sim *sim, const struct played *last);
/* Likewise, for one step. */
void player_step(struct sim *sim);
void player_close(struct sim *sim);
/* Resources that one run leaves to the next. NULL is allowed, and may be returned. */
struct stage *stage_make(void);
void stage_free(struct stage *stage);

/* ---- order.c ---- */

void order_open(struct sim *sim);
/* Choose the thread that takes the next step; time jumps if all sleep. NULL: no thread can ever go on. */
struct played *order_next(struct sim *sim);
/* A uniform random number in [0, n). */
uint32_t order_chance(struct sim *sim, uint32_t n);
/* Likewise, but usually the habit's choice if there are priorities. */
uint32_t order_choose(struct sim *sim, uint32_t n);
/* True once in so many times, by chance; 0: never. */
bool order_once_in(struct sim *sim, uint32_t n);
/* The thread spins: others go first. */
void order_relaxed(struct sim *sim, struct played *played);
/* Deal a priority to a thread that is new, or has woken up. */
void order_deal(struct sim *sim, struct played *played);

/* ---- options.c ---- */

/* The options of a seeded run. */
struct sim_request {
    bool has_seed;
    uint64_t seed;
    const struct strand_sim *sim;
};
/* Copy the user's options, which may have fewer fields, or more; NULL: none. Returns false if the size is
 * impossible. */
bool options_copy(struct strand_sim *out, const struct strand_sim *options);
/* Fill in options, seed, atomic_steps. Returns 1; 0: there is no seed; or a negated errno code, with an explanation in
 * text. */
int options_take(struct sim *sim, const struct sim_request *asked, char *text, size_t room);
/* Check the options. Returns 0, or a negated errno code, with an explanation in text. */
int options_check(const struct sim_request *asked, char *text, size_t room);

/* ---- report.c ---- */

/* Record the strand that runs in a fibre. */
void report_strand(struct step *step, const struct fibre *fibre);

/* At the end of every run: print a line, or a report of the failure. */
void report_end(struct sim *sim, const char *failure);
__attribute__((noreturn)) void report_fail(struct sim *sim, const char *what);
__attribute__((noreturn)) void report_deadlock(struct sim *sim);
void report_ending(struct arch_player *player);

/* ---- net.c ---- */

int net_open(struct sim *sim);
void net_close(struct sim *sim);
extern const struct platform_fds net_fds;
/* Note a real descriptor. The first one causes a warning, since the seed does not determine what the system does. */
void net_meet(struct subprocess *sub, int fd);
/* Forget what strand_sim_route has said: routes.c. */
void routes_close(struct sim *sim);
/* When the next event of the poller happens; ARCH_FOREVER: none is pending. */
int64_t net_next(const struct sim *sim);
/* Take the events that have happened, in an order chosen by the seed. */
int net_take(struct sim *sim, struct arch_event *events, int most);

/* Install the simulation in a run with a seed, before its first pool is made. Returns 0, also if there is no seed, or a
 * negated errno code; for -EINVAL, `text` explains. */
int sim_open(struct subprocess *sub, const struct sim_request *asked, char *text, size_t room);
/* Remove it again, if it is installed. failure: what is wrong with the run, or NULL. */
void sim_close(struct subprocess *sub, const char *failure);

#endif
