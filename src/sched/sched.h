/*
 * The scheduler's data: sub-process, pool, thread, fibre, run queue, timer. This layer runs fibres on threads
 * and knows nothing of scopes, cancelling or exceptions; the layer above is reached through struct sched_ops only.
 *
 * Reading order: fibre (what runs), thread (who runs it), runq (where it waits for that), pool (who looks for work),
 * timers, driver (the door to time, chance and sleep). Protocol pages: docs/protocols/runq.md, seeker.md, switch.md.
 */
#ifndef SCHED_SCHED_H
#define SCHED_SCHED_H

#include "../arch/arch.h"
#include "../base/atomic.h"
#include "../base/heap.h"
#include "../base/list.h"
#include "../base/rng.h"
#include "../stack/memory.h"
#include "../stack/shared.h"

struct fibre;
struct shared_fibre;
struct thread;
struct pool;
struct subprocess;
struct driver;
struct scheduler;

/* ---- fibres ---------------------------------------------------------------------------------------------- */

/* A strand's place in its fibre: all that the scheduler knows of a strand. Part of the strand's control block. */
struct member {
    struct fibre *fibre;
    struct member *next; /* in a batch */
};

/* Strands that were claimed under a lock and are made runnable after it, in order. */
struct batch {
    struct member *first, *last;
};

OWN_INLINE void batch_init(struct batch *batch)
{
    batch->first = batch->last = NULL;
}

/* NULL: nobody. */
OWN_INLINE void batch_add(struct batch *batch, struct member *member)
{
    if (!member)
        return;
    member->next = NULL;
    if (batch->first)
        batch->last->next = member;
    else
        batch->first = member;
    batch->last = member;
}

/* Those from `first` to `last`, which are linked, and nothing comes after the last. */
OWN_INLINE void batch_append(struct batch *batch, struct member *first, struct member *last)
{
    if (batch->first)
        batch->last->next = first;
    else
        batch->first = first;
    batch->last = last;
}

OWN_INLINE struct member *batch_take(struct batch *batch)
{
    struct member *member = batch->first;
    if (member)
        batch->first = member->next;
    return member;
}

struct fibre {
    struct member *active; /* whose stack lies in this stack */
    /* Where it goes on. NULL while it runs and until the switch away from it is complete: the thread that runs it next
     * waits for that (docs/protocols/switch.md). Before the first run: meaningless, stack is NULL. */
    _Atomic(arch_context) context;
    struct stack *stack;
    struct thread *home;       /* ran it last; NULL: its strand has not begun */
    _Atomic(struct runq *) in; /* written under that queue's lock */
    struct link queued;        /* in the run queue `in` */
    struct pool *pool;
    size_t stack_size;
    int32_t rank; /* for a scheduler of the user's */
    union {
        struct {
            bool shared; /* it is a struct shared_fibre's */
            bool pinned; /* to `home`, from the beginning to the end: pinned.h */
        };
        uint16_t odd; /* making it runnable has more to do */
    };
    bool started;        /* cxx means something */
    struct arch_cxx cxx; /* the state of C++ exceptions while it does not run */
    _Alignas(8) char own[OWN_SIZE];
    struct arch_note note;
};

/* ---- run queues (runq.h) --------------------------------------------------------------------------------- */

/* Fibres that were made runnable by other threads: a stack, linked by queued.next. */
typedef _Atomic(struct fibre *) inbox;

struct runq {
    /* The owner's line. */
    _Alignas(CACHE_LINE) _Atomic uint32_t busy; /* the owner is inside */
    _Atomic uint32_t put, served;               /* fibres that came to the lists below, and were run from there */
    struct fibre *slot;                         /* the newest; others leave it to the owner for a moment */
    struct link young;                          /* not started yet: the newest in front */
    struct link woken;                          /* to be gone on with, before those: first come, first served */
    struct link ready;                          /* yielded, or came from another queue: after those, in order */
    /* The others' line. */
    _Alignas(CACHE_LINE) _Atomic uint32_t thief; /* somebody else is inside, or wants to be */
    inbox inbox;                                 /* made runnable by other threads */
    struct fibre *stale;                         /* the slot, as the seeker saw it at stale_since */
    int64_t stale_since;
};

/* ---- how long those wait (service.h) ---------------------------------------------------------------------- */

struct service {         /* in ticks */
    uint64_t noted;      /* when the thread looked around last, or began to be busy */
    uint32_t served;     /* runq.served then */
    uint64_t time;       /* in which somebody waited */
    uint64_t turns;      /* and so many were served meanwhile, in parts of one */
    uint64_t slowest;    /* the longest time between two notes, which fades as well */
    uint64_t evened_out; /* when it last compared itself with others */
};
/* What is done about threads whose strands wait longer than those of others: as enum strand_balance. */
enum balance { BALANCE_EVEN, BALANCE_STIR, BALANCE_NONE };

/* ---- what is pinned to a thread (pinned.h) ---------------------------------------------------------------- */

struct pinned {
    struct link ready;        /* the thread's own: runnable, in order */
    bool turn;                /* whether they come first the next time: the thread's own */
    inbox inbox;              /* made runnable by others */
    _Atomic uint32_t dozes;   /* the thread sleeps, or is about to: a poster wakes it */
    _Atomic uint32_t strands; /* how many are pinned to it, and live */
};

/* ---- timers (timers.c) ----------------------------------------------------------------------------------- */

/* What the time is waited for with: sched_ops.fire. */
enum timer_kind { TIMER_WAIT, TIMER_DEADLINE, TIMER_REST, TIMER_SHUTDOWN, TIMER_KINDS };

struct timer {
    struct heap_node node;
    uint32_t kind : 7, excused : 1, index : 24; /* timer_excuse; the index is the layer's above */
};

struct timers {
    struct heap heap;
    _Atomic int64_t next;     /* the least key: read without the lock */
    _Atomic uint32_t count;   /* how many are pending: the same */
    _Atomic uint32_t excused; /* of them: timer_excuse */
    atomic_flag lock;
};

/* ---- shared fibres that rest (rest.c) -------------------------------------------------------------------- */

struct rests { /* a pool's */
    atomic_flag lock;
    struct link used;   /* shared fibres that were in use since they were trimmed last */
    uint32_t count;     /* of them */
    uint32_t left;      /* of the round that is under way: how many at the front have not been looked at */
    _Atomic bool armed; /* the timer is started, or has fired and was not seen to yet */
    /* The seeker's. */
    bool due;       /* it has fired */
    bool under_way; /* a round has begun, and goes on with the timer */
    bool found;     /* and has found one that has rested */
    size_t chunks;  /* so many chunks of the store it still has to give back */
    size_t stacks;  /* and the pages of so many free stacks */
    struct timer timer;
};

/* ---- threads --------------------------------------------------------------------------------------------- */

enum thread_state { THREAD_BUSY, THREAD_IDLE, THREAD_POLLING };
/* Whether there is a thread of the system behind a struct thread: docs/protocols/resize.md. */
enum thread_life {
    THREAD_NONE,    /* none */
    THREAD_HERE,    /* it runs, or is about to */
    THREAD_LEAVING, /* it goes at its next switch */
    THREAD_GONE     /* it takes nothing any more; to be joined */
};
/* Clean-up that the resumed fibre performs for the fibre just suspended. */
enum after {
    AFTER_PARK,
    AFTER_YIELD,
    AFTER_END,
    AFTER_LOOP,
    AFTER_SHARED_PARK, /* of one that runs on a shared fibre */
    AFTER_SHARED_YIELD,
    AFTER_SHARED_END
};

/* Of thread.held: it sleeps, has ended or not begun; it stands still, because it was asked to. */
enum { HELD_RESTS = 1, HELD_STANDS = 2 };

struct thread {
    struct fibre *current; /* NULL: in the loop, or between two fibres */
    struct fibre *from;    /* of a switch that is under way */
    enum after after;
    int32_t ticks;     /* operations until the next thread_tick */
    int32_t period;    /* what ticks starts from */
    bool concurrent;   /* the run has several threads: atomics are needed */
    bool stealing;     /* the scheduler is the default one: its hot functions are called directly */
    uint8_t fair_turn; /* which list it tries first */
    bool canaries;     /* stacks without guard pages exist */
    bool waits;        /* one that is driven waits for what becomes ready */
    bool census;       /* sub->census */
    union {
        struct {
            bool fair;   /* set by a look: the next pick takes from the queues' other end */
            bool pinned; /* there may be pinned fibres to run: set by anybody, cleared by the thread itself */
            bool seeded; /* there is a second driver */
        };
        uint32_t any; /* picking has more to do */
    } picks;
    union {
        struct {
            bool always; /* canaries, or cxx, or driver, or census, or the pool is closing */
            bool shared; /* the current fibre is a shared one */
            bool leave;  /* it goes at its next switch: set and cleared by the resizer */
        };
        uint32_t any; /* the switch has more to do */
    } odd;
    struct fibre *next;       /* made runnable by the end of the strand that ran here: goes on at once, in its place */
    struct arch_cxx *cxx;     /* the system's thread's state of C++ exceptions; NULL: there is no C++ runtime */
    struct arch_cxx loop_cxx; /* what *cxx was before the thread ran strands: that of the caller of strand_run */
    uint64_t locals;          /* arch_locals_generation, when the C++ runtime was looked for last */
    struct pool *pool;
    struct subprocess *sub;
    const struct driver *driver; /* NULL: the machine itself */
    arch_context loop;           /* the thread's own stack */
    struct stack_user stacks;
    size_t usual;       /* the usual size of a stack */
    struct stack *dead; /* left by AFTER_END */
    struct arch_note dead_note;
    struct arch_note loop_note;
    struct arch_note *here; /* whose stack this is; kept for a second driver only */
    struct fibre *late;     /* to be run as soon as the switch away from it is complete */
    struct fibre *refused;  /* could not start: no stack */
    int refusal;
    uint64_t looked_switches; /* `switches` then */
    uint32_t awaits;          /* in all spin loops so far */
    uint64_t looked, ticked;  /* driver_ticks of the last look, of the last tick */
    int64_t limit;            /* one that is driven goes back to its driver at this instant; else ARCH_FOREVER */
    bool fed;                 /* since the last look there were events of descriptors */
    bool young_reached;       /* since the last look there was a moment when nobody woken was left to go on */
    int64_t robbed;           /* when it last stole something and went to run it; 0: judged */
    uint32_t unsure;          /* so often in a row sched_ops.quiet has wished to be called again */
    bool saw_slot;            /* its last round of looking found a slot that may go stale */
    bool looked_twice;        /* it waited for that before it waited last */
    struct service service;
    uint64_t young_served; /* when the oldest that had not started was last given its turn out of order */
    int64_t now;           /* the clock a millisecond ago, at most, if it is busy: for "since when", not for waiting */
    int64_t busy_since;    /* about when it found something to do, after it had nothing; diagnostics only */
    struct rng rng;
    struct runq runq;
    struct pinned pinned;
    _Atomic uint64_t spawned, departed, ended; /* strands: spawned here, of them onto other pools, ended here */
    /* Strands that began here to wait for what is outside of the run, and that ended that here. */
    _Atomic uint64_t left, returned;

    _Atomic uint32_t life; /* enum thread_life */
    /* Under the pool's lock. */
    enum thread_state state;
    struct link sleeping;                       /* in pool->sleepers */
    bool timed;                                 /* sleeps with a time limit */
    _Alignas(CACHE_LINE) _Atomic uint32_t wake; /* futex: 1 = go on */
    _Atomic uint32_t hold;                      /* somebody asks all threads to stand still (pool_hold) */
    _Atomic uint32_t held;                      /* HELD_RESTS, HELD_STANDS, or 0: it moves */
    void *held_ips[32];                         /* where it stands, while it does in a strand */
    size_t held_count;
    char *held_at; /* in its stack */
    int index;
    arch_thread os;
    uint32_t os_id;
    void *simulated; /* the second driver's part */
    uint64_t switches, steals, wakes, sleeps;
};

/* ---- pools (pool.c, seek.c) ------------------------------------------------------------------------------ */

/* Something to be done on a thread of the pool, given in from any thread. */
struct post {
    _Atomic(struct post *) next;
    struct member *(*run)(struct post *post); /* as sched_ops.fire; or by no thread of the pool, after its end */
};

struct posts { /* posts.h */
    _Atomic(struct post *) last, first;
};

enum { THREADS_MOST = 1024, COMMON_FIBRES = 3 };

struct pool {
    struct subprocess *sub;
    _Atomic(struct pool *)
        older; /* the next of the sub-process's: a record stays there, closed or not, until its end */
    const struct scheduler *scheduler;
    struct thread **threads; /* room for `room`; a record stays there, with a thread behind it or not */
    _Atomic int count;       /* how many records there are */
    int room;
    int64_t spin_ns;
    enum balance balance;
    const void *custom; /* the scheduler's own: what it was made with, and its state */
    void *scheduler_state;
    const int *cpus; /* thread i is bound to cpus[i % cpus_count]; none: NULL */
    int cpus_count;

    /* Its life: docs/protocols/pools.md. */
    _Atomic uint32_t state;          /* enum pool_state */
    _Atomic uint32_t stop;           /* its threads end when they have nothing to run */
    _Atomic uint64_t arrived;        /* strands that threads of other pools were about to spawn onto it */
    _Atomic uint64_t refused;        /* and were not */
    _Atomic uint32_t keepers;        /* pool_keep */
    _Atomic uint32_t alive;          /* threads that have begun, or are about to, and have not ended */
    void (*gone)(struct pool *pool); /* called by the last of them; NULL: the first pool */
    void *above;                     /* the layer's above */
    atomic_flag resizing;
    _Atomic int size;         /* so many threads are wanted */
    _Atomic uint32_t driver;  /* drive.c: the system's id of the thread that drives it; 0: none has yet */
    _Atomic uint32_t driving; /* enum pool_driving */
    struct shared_fibre *common[COMMON_FIBRES]; /* for tests: run.c */
    uint32_t common_turn;

    _Atomic uint32_t era; /* counts the rounds of `rests`: read at each visit of a shared fibre */
    struct arch_poller poller;
    _Atomic uint32_t watched; /* how many descriptors it watches: none are not asked for */
    struct timers timers;
    int64_t near_credit; /* of the seeker: how long it may wait for near timers without sleeping */
    int64_t near_seen;   /* up to when that has been reckoned */
    bool near_spins;     /* since then it has waited so */
    struct runq global;  /* of the scheduler with one queue */
    atomic_flag global_lock;

    /* Read by every producer. KICK_*: somebody has to be woken when there is work. */
    _Alignas(CACHE_LINE) _Atomic uint32_t kick;
    _Atomic uint32_t rung; /* somebody has to be woken, and the lock was taken: its holder does that */
    _Atomic int64_t until; /* how long a seeker that is parked waits at most */
    _Alignas(CACHE_LINE) struct posts posts;

    /* The states of the threads: docs/protocols/seeker.md. */
    _Alignas(CACHE_LINE) atomic_flag lock;
    _Atomic(struct thread *) seeker; /* the thread with the role; written under the lock */
    struct link sleepers;
    int busy;
    bool parked;              /* the seeker waits in the poller */
    _Atomic uint32_t kickers; /* so many have taken it upon themselves to wake it there, and are about to */
    bool eager;               /* and a push is to wake it */
    uint64_t stirs;           /* how often somebody of the pool has begun to move: quiet.h */
    int futile;               /* wake-ups and thefts in a row that were not worth it */

    _Alignas(CACHE_LINE) struct rests rests;
};
enum pool_state {
    POOL_NONE, /* the record is free */
    POOL_OPEN,
    POOL_CLOSING, /* it ends as soon as its last strand has */
    POOL_CLOSED,  /* its threads and its poller are gone; somebody keeps the record still */
};
/* For a pool that a plain thread drives. */
enum pool_driving { POOL_UNDRIVEN, POOL_DRIVEN, POOL_DRIVEN_TO_ITS_END };
/* The seeker waits: wake it for timers and posts. It wants pushes as well. Nobody seeks, and somebody sleeps. */
enum { KICK_SEEKER = 1, KICK_PUSH = 2, KICK_SLEEPER = 4 };

/* ---- schedulers ------------------------------------------------------------------------------------------ */

enum push {
    PUSH_NEW,     /* spawned: not started */
    PUSH_WOKEN,   /* made runnable by the strand that runs here */
    PUSH_OUTSIDE, /* by a timer, or another thread */
    PUSH_YIELDED  /* lets others go first */
};

struct scheduler {
    const char *name;
    bool alone;      /* a pool has one thread */
    bool own_thread; /* which is never the caller's of strand_run */
    bool common;     /* all threads take from pool.global */
    /* At the pool's opening, and its end. open returns 0 or a negated errno code. NULL: nothing to do. */
    int (*open)(struct pool *pool);
    void (*close)(struct pool *pool);
    /* True: a thread has to be notified that there is work (pool_notify), which is the caller's business. */
    bool (*push)(struct thread *thread, struct fibre *fibre, enum push how);
    /* The same from a thread of another pool, or none (by: NULL). The caller wakes somebody. */
    void (*post)(struct pool *pool, struct thread *by, struct fibre *fibre);
    /* The next one for this thread, or NULL. fair: not the newest. */
    struct fibre *(*pick)(struct thread *thread);
    /* Take this very fibre out of the thread's queue; false if it is not there. */
    bool (*take)(struct thread *thread, struct fibre *fibre);
    /* For the seeker: get work from elsewhere into its own queue; false if there was none. NULL: a pick takes all work
     * of the pool. */
    bool (*steal)(struct thread *thread);
    /* For a busy thread that has the role of the seeker: take what waits too long elsewhere. NULL: nobody has more to
     * wait for than others. */
    void (*even_out)(struct thread *thread);
    /* Whether there is work that a thread without any could take. */
    bool (*work)(struct pool *pool);
    /* The thread goes: what only it would run is given to others. NULL: there is nothing of that kind. */
    void (*leave)(struct thread *thread);
    /* How many wait for this thread, or for any of the pool, at least. Any thread, without a lock. */
    size_t (*waiting)(const struct thread *thread);
};
extern const struct scheduler scheduler_stealing, scheduler_global, scheduler_dedicated, scheduler_current;
/* `work` and `waiting` of the schedulers whose threads take from pool.global. */
bool global_work(struct pool *pool);
size_t global_waiting(const struct thread *thread);
/* For messages. */
#define SCHEDULER_NAMES "'stealing', 'global', 'dedicated' or 'current'"
/* NULL: unknown. A NULL name is the default's. */
const struct scheduler *scheduler_find(const char *name);

/* ---- the sub-process ------------------------------------------------------------------------------------- */

/* What is noted of the bytes of a stack: that it suspends with so many; that it has used so many; that it ends, and has
 * used so many since it was noted last. */
enum census_what { CENSUS_SUSPENDS, CENSUS_USED, CENSUS_ENDS };

/* The layer above. */
struct sched_ops {
    size_t thread_size; /* struct thread is the first member of something bigger */
    int (*thread_open)(struct thread *thread);
    void (*thread_close)(struct thread *thread);
    /* It goes, and may come back: what it keeps for its own use is given back. On the thread itself. */
    void (*thread_leave)(struct thread *thread);
    /* On a new stack: run thread->current's strand to its end, call switch_serve_next, again and again. For each:
     * thread_detach before it lets go of the fibre; it may set thread->next. Never returns. */
    void (*serve)(struct thread *thread);
    /* On a new stack that is a shared fibre's: call shared_fibre_wait, then run its active strands, one after the
     * other, by switch_serve_shared. Never returns. above: so many bytes for its own use. */
    void (*serve_shared)(struct shared_fibre *shared, void *above);
    size_t above_size;
    /* It can't be started: end it with this error, on the thread's own stack. */
    void (*refuse)(struct member *member, int error);
    void (*overflow)(struct thread *thread); /* the canary of its strand's stack is damaged */
    /* There is no memory for the frames of this strand, and no way to go on. Does not return. */
    void (*starved)(struct member *member, size_t bytes);
    void (*warn)(struct subprocess *sub, const char *text);
    /* The child of a fork has come back into a run that has stayed in the parent. Does not return. */
    void (*orphaned)(struct subprocess *sub);
    void (*census)(struct thread *thread, struct member *member, size_t used, enum census_what what);
    /* The seeker of a pool is about to wait, and no thread of the pool is busy. Decides whether the pool, or the run,
     * is quiescent, and puts the strands that this wakes into the batch. Then the pool is not about to wait any more:
     * the call has passed through quiet_stir. Returns whether the seeker has to call again soon, even if nobody moves.
     * asked: how often that was so in a row, up to QUIET_ASKED_MOST. */
    bool (*quiet)(struct thread *thread, struct batch *batch, uint32_t asked);
    /* A thread that rested moves, and subprocess.drowsy is set. On that thread; it may be called more than once. */
    void (*moved)(struct subprocess *sub);
    /* Called once when the time has come, under the lock of the timers: they may claim, not run. They return a strand
     * that has to be made runnable, or NULL. */
    struct member *(*fire[TIMER_KINDS])(struct timer *timer);
};

struct subprocess {
    const struct sched_ops *ops;
    const struct driver *driver;
    void *driver_state;
    uint32_t generation; /* arch_generation at its making */
    bool concurrent;
    bool census; /* strands note how much of their stacks they use */
    struct stack_memory memory;
    bool copies; /* for tests: a strand that leaves a shared fibre is copied out at once, and its frames overwritten */
    struct pool pool;             /* the first one, which ends last */
    _Atomic(struct pool *) pools; /* all of them: linked by pool.older */
    _Atomic uint32_t holding;     /* pool_hold: threads that begin now are held as well */
    _Atomic uint32_t outside;     /* of a seeded run: strands that wait for what is outside of it */
    _Atomic uint32_t minds_quiet; /* QUIET_*: why sched_ops.quiet is called; 0: it is not */
    bool ends_dry;                /* the run acts when all of it is dry: from the launch of its first fibre on */
    atomic_flag quiet_lock;
    _Atomic int helpers; /* threads of the run that are in no pool: of crews, a watchdog; or that sleep in strand_run */
    _Atomic bool drowsy; /* the watchdog sleeps until a thread moves: sched_ops.moved, docs/protocols/watchdog.md */
    uint64_t seed;
};

/* ---- the driver: the door to time, chance and sleep ------------------------------------------------------ */

/* A plain thread, the system's or a played one. */
struct driver_thread {
    arch_thread os;
    void *played;
};

/* What a second driver does instead of the machine. Everything is called on the thread that it concerns. */
struct driver {
    int64_t (*now)(struct subprocess *sub);
    /* The strand yields: any played thread may go on first. */
    void (*point)(struct thread *thread);
    /* The same, where an operation begins that may not suspend at all, at this address of the code. Returns whether it
     * wants to hear of each. */
    bool (*operation)(struct thread *thread, void *where);
    void (*relax)(struct thread *thread); /* in a spin loop */
    void (*sleep)(struct thread *thread, int64_t deadline);
    void (*wake)(struct thread *thread);
    /* As arch_poller_wait, of played descriptors. */
    int (*poll)(struct thread *thread, struct arch_event *events, int most, int64_t deadline);
    /* In [0, n): a choice of the scheduler's, which may be any, or by chance, where each is as likely as another. */
    uint32_t (*choose)(struct thread *thread, uint32_t n);
    uint32_t (*chance)(struct thread *thread, uint32_t n);
    bool (*refuses)(struct thread *thread);                   /* whether this request for memory is to fail */
    int (*start)(struct thread *thread, void *(*fn)(void *)); /* as arch_thread_start; they are run by `play` */
    void (*join)(struct thread *thread);                      /* as arch_thread_join, of one that is about to end */
    void (*play)(struct subprocess *sub);
    arch_context (*where)(struct thread *thread); /* where it stands; NULL: it runs */
    bool (*preempts)(struct subprocess *sub);     /* whether other threads go on between two suspensions of this one */

    /* Plain threads, which have no struct thread; and what they sleep on, as arch_futex_wait and wake. */
    int (*thread_start)(struct subprocess *sub, void *(*fn)(void *), void *arg, void **played);
    void (*thread_join)(struct subprocess *sub, void *played);
    void (*word_wait)(struct subprocess *sub, const _Atomic uint32_t *word, uint32_t expected, int64_t deadline);
    void (*word_wake)(struct subprocess *sub, const _Atomic uint32_t *word, int threads);
    void (*plain_point)(struct subprocess *sub);  /* as point */
    int (*plain_threads)(struct subprocess *sub); /* how many have not ended */

    void (*meet)(struct subprocess *sub, int fd); /* a descriptor of the system's is used for the first time */
    const struct driver_fds *fds;                 /* NULL: all descriptors are the system's */
};

/* Played descriptors. They have numbers of the system, behind which there is nothing. Each function is as that of arch
 * with its name (arch_fd_..., arch_poller_add and remove). */
struct driver_fds {
    bool (*has)(struct subprocess *sub, int fd);
    int (*socket)(struct subprocess *sub, int family);
    int (*pipe)(struct subprocess *sub, int fds[2]);
    int (*bind)(struct subprocess *sub, int fd, const void *address, uint32_t length);
    int (*listen)(struct subprocess *sub, int fd);
    int (*connect)(struct subprocess *sub, int fd, const void *address, uint32_t length);
    int (*accept)(struct subprocess *sub, int fd);
    int (*error)(struct subprocess *sub, int fd);
    int (*port)(struct subprocess *sub, int fd);
    int (*ready)(struct subprocess *sub, int fd);
    int64_t (*read)(struct subprocess *sub, int fd, void *buffer, size_t size);
    int64_t (*write)(struct subprocess *sub, int fd, const void *bytes, size_t size);
    int (*shutdown)(struct subprocess *sub, int fd, int how);
    int (*close)(struct subprocess *sub, int fd);
    int (*blank)(struct subprocess *sub, int fd);
    int (*watch)(struct subprocess *sub, int fd, uint64_t data);
    int (*unwatch)(struct subprocess *sub, int fd);
};

#endif
