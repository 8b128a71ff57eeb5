/*
 * Actors: the data, and who may touch what. Page: docs/protocols/actor.md.
 *
 * PARTIES   whoever sends to an actor: strands of the run, and posts for others; the runner that has its turn; its
 *           parent and its children; whoever stops it.
 * STATE     cell.word, one of
 *             serial << WORD_SERIAL | CELL_FRESH          dormant: nothing is to be done; FRESH: never woken yet
 *             wakes << CELL_WAKES | task | CELL_AWAKE     it has a task, which knows the serial
 *             serial << WORD_SERIAL | WORD_FREE           ended: the memory is free, or about to be
 *           and in the first two CELL_LOCK: somebody is at it. In a run of one thread nothing here is atomic, and LOCK
 *           is never set.
 *
 *             dormant --wake: a task, with the first message in it--> awake --retire: nothing is queued--> dormant
 *             awake --close--> ended
 *
 *           task.flags: SCHEDULED: a runner has it, or is to get it; SUSPENDED, WAITS (for its children): it handles no
 *           messages, and stays awake without a runner while nothing else is to be done.
 * OWNERSHIP the queues and flags of a task, and the list of a cell's children: who holds the cell's lock. The state of
 *           an actor, task.batch, and its supervision: the runner that has the task, from one turn to the next. A
 *           cell's place in its parent's list: who holds the parent's lock; the parent's cell outlives it.
 * INVARIANTS [A1] a task has at most one runner, and a runner one task. [A2] who finds a cell dormant and queues
 *           something wakes it, under the same lock under which its runner finds the queues empty: nothing is queued
 *           at a dormant cell. [A3] a task that has something to do is SCHEDULED. [A4] a cell's memory is that of a
 *           cell for ever, and a task's that of a task: so a reference that is stale reads another serial, or none.
 *           [A5] each message that was taken is handled, or a dead letter, once. [A6] no call in a
 *           turn of a parent waits for a child of its own that waits for its decision; deadlock.c says which longer
 *           cycles that leaves out.
 * ORDER OF LOCKS one cell's at a time. The place's lock below it; a promise's, one at a time, above it.
 * BEGINNING a cell is there with its word, which is written LOCKED under the parent's lock, as it enters the list of
 *           children: a parent that stops finds it, or it does not come to be. Nobody waits for a lock while he holds
 *           that one: a parent that has ended may have given its memory to a cell that is just being made.
 * END       from STOPPING on nothing is queued: who sends then sends a dead letter. What was queued before is one, too.
 * ORDERING  LOCK is taken by acquire and given back by release: what was done in one turn is seen in the next, and what
 *           a sender did where its message is handled.
 * NOT DONE  a strand for each turn: it would have to be anchored, which takes the lock of the system's scope twice.
 *           A queue of actors beside the threads' queues of fibres: a second scheduler.
 * TESTED BY tests/models/actor.pml, tests/sim/actors.c, tests/spec/actor.c.
 */
#ifndef ACTOR_ACTOR_H
#define ACTOR_ACTOR_H

#include "../../include/strand/actor.h"
#include "../../include/strand/sync.h"
#include "../base/index.h"
#include "../strand/handle.h"
#include "../strand/scope.h"

/* WAKES: above the address of a task stands how often that was given out, in 15 bits: who reads the word and what the
 * task says, and then the same word again, has not missed that it served another. */
enum { CELL_LOCK = 1, CELL_AWAKE = 2, CELL_FRESH = 4, CELL_BITS = 7, CELL_WAKES = 48, CELL_WAKES_MOST = (1 << 15) - 1 };
/* In the serial of a reference: of an actor; a system's handle. */
#define MARK_ACTOR (UINT64_C(1) << 58)
#define MARK_ACTORS (UINT64_C(1) << 57)
#define MARK_PROMISE (UINT64_C(1) << 56)
/* In the sender of a timer's message that nobody has looked at yet: beside it the timer's number, before it its key. */
#define MARK_TIMER (UINT64_C(1) << 59)

struct system;
struct place;
struct runner;

/* ---- what is pooled (rule S-23) ---------------------------------------------------------------------------- */

/* Compile-time switches, for bench/actor_pool.c alone, which compares: tasks and envelopes from malloc; how many idle
 * runners each thread keeps, 0 being a strand for each time that an actor is awake. With malloc [A4] does not hold. */
#ifndef STRAND_ACTOR_TASKS_MALLOC
#define STRAND_ACTOR_TASKS_MALLOC 0
#endif
#ifndef STRAND_ACTOR_ENVELOPES_MALLOC
#define STRAND_ACTOR_ENVELOPES_MALLOC 0
#endif
#ifndef STRAND_ACTOR_RUNNERS_KEPT
#define STRAND_ACTOR_RUNNERS_KEPT 128
#endif

/* ---- what is sent ------------------------------------------------------------------------------------------ */

/* In the size of a message that waits: it takes no room in a mailbox that is bounded. */
#define ENVELOPE_EXTRA ((size_t)1 << 63)

/* A message on its way, or in hand. */
struct envelope {
    struct envelope *next;
    strand_message message;
    /* The body of a copied one. */
};
_Static_assert(sizeof(struct envelope) == 48, "a small message takes one line of the cache");

/* What the tree tells an actor: before messages, and between any two. Bits of task.calls. */
enum {
    CALL_START = 1,
    CALL_STOP = 2,
    CALL_RESUME = 4,
    CALL_RESTART = 8,
    CALL_SUSPEND = 16,
    CALL_ALONE = 32,   /* its last child has ended */
    CALL_FAILED = 64,  /* children have failed: task.failed */
    CALL_NOW = 128,    /* with STOP: the strand that handles a message is cancelled */
    CALL_DECIDED = 256 /* its parent has decided what becomes of it: it does nothing by that alone */
};

/* ---- an actor ---------------------------------------------------------------------------------------------- */

/* What actors of one class in one system have in common. */
struct kind {
    struct kind *next;          /* in system.kinds */
    struct index_node by_parts; /* in system.more_kinds */
    struct system *system;
    const strand_actor_class *class;
    struct place *place;
    strand_behaviour *receive;
    bool odd;    /* its messages have priorities, or are published; or its turns a time of their own */
    size_t args; /* how many bytes it begins with, which lie behind the state, from `args_at` on */
    size_t args_at, whole;
    uint32_t most; /* messages that may wait */
    uint8_t size_class;
    bool outside;                 /* all that lies in memory of its own, of which the cell has the address */
    char label[STRAND_NAME_ROOM]; /* what a strand is called that runs one of them: the class */
};

/* Lies in a slab of cells; free, it keeps its word. */
struct cell {
    _Atomic uint64_t word;
    struct cell *parent;
    struct cell *newer, *older; /* siblings: under the parent's lock */
    struct cell *children;      /* the newest */
    uintptr_t form;             /* its kind; or what it has beside that | FORM_MORE. Changed under the lock */
    char state[];
};
enum { FORM_MORE = 1 };
_Static_assert(sizeof(struct cell) == 48, "what a dormant actor has beside its state");

#define ACTIVE_NOW INT64_MAX

/* What few actors have. */
struct more {
    struct kind *kind;
    struct cell *cell;
    struct link watchers, askers;  /* get a notice of its end; the askers, that there is no answer: under the lock */
    struct tree watching;          /* the actors whose end it gets a notice of: its own */
    struct behaviours *behaviours; /* what it has become: its own */
    struct envelope *stash, **stash_last;
    struct levels *levels;                /* what waits, by priority: its own */
    struct tree restarts;                 /* of its children, by number: its own */
    size_t restarts_count, restarts_most; /* so many, and at how many those that have ended are looked for: its own */
    const struct limits *limits;          /* of these; NULL: its class': its own */
    struct tree timers;                   /* by key: its own */
    uint64_t numbers;                     /* how many timers it has had: its own */
    bool timed;                           /* one of them is a receive timeout: its own */
    int64_t patience;                     /* then: how long that is, in ns: its own */
    int64_t active;                       /* then: when it last handled a message; ACTIVE_NOW: it does */
    struct more *next;                    /* in system.names */
    uint32_t hash;
    char name[]; /* "": it has none */
};

/* What an actor has that is not dormant. */
struct task {
    _Atomic uint64_t serial; /* the cell's; 0: it is free */
    struct cell *cell;
    struct runner *runner; /* of one that is SCHEDULED; NULL: it waits for one */
    struct task *next;     /* in place.starved */
    struct envelope *first, **last;
    struct envelope *batch;    /* taken out of the queue: before it */
    struct envelope **counted; /* in the queue: those before it are all ENVELOPE_EXTRA */
    _Atomic uint32_t calls;    /* CALL_*; written under the lock */
    uint32_t queued, taken;    /* messages that wait; of them in the batch when that was taken */
    uint16_t flags;            /* TASK_* */
    uint16_t wakes;            /* how often it was given out */
    struct link waiters;       /* senders, for room: by their wait nodes, whose value is the envelope */
    struct cell *cursor;       /* of who walks through the children: the next one */
    struct failure *failed;    /* children's, the newest first */
    struct failure *escalated; /* of them, those that it has failed by */
    strand_exception *why;     /* that it failed by, and rests for; written in its own turn */
};

enum {
    TASK_SCHEDULED = 1,
    TASK_SUSPENDED = 2,
    TASK_WAITS = 4,
    TASK_STOPPING = 8,
    TASK_RESTARTING = 16,
    TASK_FRESH = 32,
    TASK_NOW = 64,        /* its children are to stop at once, too */
    TASK_UNSTARTED = 128, /* its function for the beginning has not returned: that for the end is not called */
    TASK_UNDECIDED = 256  /* it has failed, and its parent has not decided yet what becomes of it */
};

/* A child that has failed, and waits for what is decided. */
struct failure {
    struct failure *next;
    strand_actor child;
    strand_exception *why;
    bool unstarted; /* it was its function for the beginning */
};

/* ---- who runs it ------------------------------------------------------------------------------------------- */

/* IDLE: it touches nothing more; who takes that away has it. LISTED: it is in a list of idle ones, idle or not; who
 * takes it out of that takes both away, at once, and touches it no more if it was not idle: it may have ended. */
enum { RUNNER_IDLE = 1, RUNNER_LISTED = 2 };

/* A strand that has the turns of one actor after the other. */
struct runner {
    struct runner *next; /* among the idle ones */
    struct link others;  /* in system.runners, or system.ended */
    struct place *place;
    struct cb *strand;
    struct task *task; /* NULL: idle; woken so, it is to end */
    struct cell *cell;
    struct envelope *in_hand;
    struct envelope *notice;   /* the last message of the turn that was one of an end that it has watched */
    strand_behaviour *receive; /* what the actor has become */
    void *state;
    bool odd; /* kind.odd, or there is more of it */
    strand_actor self;
    strand_scope scope;
    _Atomic uint64_t asks;       /* of the promise that its strand waits for; 0: none [A6] */
    _Atomic bool queues;         /* its strand waits for room in a mailbox [A6] */
    _Atomic uint32_t idle;       /* RUNNER_* */
    uint32_t left;               /* messages of its turn; 0: that has not begun */
    bool launched;               /* its strand has begun, or is about to */
    bool over;                   /* it takes no more tasks */
    bool unhandled;              /* strand_unhandled has been called for the message in hand */
    struct extra label;          /* what the strand is called: by its actor's name, or by the class */
    const struct kind *labelled; /* this is of that kind; NULL: of one actor */
    strand_exception *fatal;     /* the system's failure, by which it ends */
};

/* Of a place: threads that keep idle runners, how many each does at most, and how many runners may be about to begin.
 */
enum {
    TURN_MOST = 64,
    PLACE_THREADS = 32,
    IDLE_MOST = STRAND_ACTOR_RUNNERS_KEPT,
    COMMON_MOST = 64,
    UNBEGUN_MOST = 1024
};
_Static_assert(sizeof(struct task) <= TASK_SIZE && sizeof(struct runner) <= RUNNER_SIZE, "they lie in slabs");

/* Where actors run, and the runners that have nothing to do there. */
struct place {
    /* A runner that falls idle has more to look at: place_looks. Set by whoever has made that so. */
    _Atomic bool odd;
    struct place *next; /* in system.places */
    struct system *system;
    struct pool *pool;
    int pin;                     /* the index of its only thread; -1: any */
    int threads_most;            /* of one that grows; else 0 */
    _Atomic int active, threads; /* tasks that have a runner, and how many threads there are, of such a one */
    uint32_t most;               /* messages in a turn */
    int64_t quantum;             /* ns of a turn; 0: until others are waited for */
    char name[32];
    struct {
        _Alignas(CACHE_LINE) struct runner *first;
        uint32_t count;
    } idle[PLACE_THREADS]; /* of each thread, its own */
    _Alignas(CACHE_LINE) atomic_flag lock;
    _Atomic bool has_begun;    /* a runner of it has a stack */
    _Atomic bool from_outside; /* threads that keep none have asked for some: so there are to be some in `rest` */
    struct runner *rest;       /* idle ones that no thread keeps */
    uint32_t rest_count;
    _Atomic uint32_t unbegun;     /* runners that were made, and have not begun */
    struct task *starved, **last; /* have work, and no runner could be had; first come, first served */
};

/* What is to happen at an instant: src/actor/clock.c. */
struct clock {
    atomic_flag lock;
    struct heap heap;
    _Atomic bool begun;   /* it has a strand */
    strand_event changed; /* what is to happen first is another thing */
};

/* The actors of a system that have names: src/actor/more.c. */
struct names {
    atomic_flag lock;
    struct more **buckets;
    size_t room, count;
};

enum { KINDS_NEAR = 32, EVENTS = 6 };

struct system {
    struct system *older; /* of the run: under its lock */
    struct runtime *runtime;
    struct door *door; /* what its handles lead to */
    strand_scope scope;
    strand_actor root, user, own; /* the cells are others' when these have ended */
    atomic_flag lock;
    struct kind *_Atomic kinds; /* the first KINDS_NEAR: read without the lock */
    uint32_t kinds_near;        /* how many these are: under the lock */
    struct tree more_kinds;     /* the others, by what they are made of: the same */
    struct link runners, ended; /* under the lock */
    struct link failed;         /* the same: who has ended by the system's failure, which is the owner's to take */
    _Atomic bool closing;       /* the owner waits for their ends: set under the lock */
    strand_event over;
    _Atomic bool has_ended;
    struct cb *_Atomic joiner; /* the owner, in strand_actors_join */
    struct names names;
    struct clock clock;
    _Atomic uint64_t letters; /* dead ones that nobody was told of */
    char first_letter[160];   /* by whoever counts the first */
    int64_t logged_since;     /* failures, and so many since then: under events_lock */
    uint32_t logged;
    uint64_t unlogged; /* failures that were too many: the same */
    atomic_flag events_lock;
    struct tree subscribers;                    /* by the actor's number: under it */
    size_t subscribers_count, subscribers_most; /* as more.restarts_most: under it */
    uint32_t subscribers_of[EVENTS];            /* how many of each kind of event: under it */
    _Atomic uint32_t subscribed;                /* to what: STRAND_ON_* */
    char name[32];
    int thread; /* the index of the one that it was opened on */
    struct place *_Atomic places;
    struct place place;
};

/* ---- references -------------------------------------------------------------------------------------------- */

static inline struct cell *ref_cell(strand_actor actor)
{
    return (struct cell *)(uintptr_t)actor.bits[0];
}

static inline uint64_t ref_serial(strand_actor actor)
{
    return actor.bits[1] ^ MARK_ACTOR;
}

static inline strand_actor ref_of(const struct cell *cell, uint64_t serial)
{
    return (strand_actor){{(uint64_t)(uintptr_t)cell, serial | MARK_ACTOR}};
}

static inline struct task *word_task(uint64_t word)
{
    return (struct task *)(uintptr_t)(word & ((UINT64_C(1) << CELL_WAKES) - 1) & ~(uint64_t)CELL_BITS);
}

static inline const struct slab_chunk *cell_chunk(const struct cell *cell)
{
    return (const struct slab_chunk *)((uintptr_t)cell & ~(uintptr_t)(ARCH_CHUNK - 1));
}

/* The runner whose strand calls; NULL: none. */
static inline struct runner *runner_self(struct thread *thread);

void *runner_main(void *arg);

static inline struct runner *runner_self(struct thread *thread)
{
    struct cb *me = current_of(thread);
    return me->fn == runner_main ? (struct runner *)me->arg : NULL;
}

/* Misuse if the caller is no actor that has a turn. */
struct runner *must_be_actor(struct thread *thread, const char *function);

/* ---- the cell (cell.c) ------------------------------------------------------------------------------------- */

/* Of an actor, and of the caller's run; or of one that has ended, whose memory serves nobody of another run by now. */
static inline bool ref_is_ours(const struct thread *thread, strand_actor actor)
{
    const struct runtime *runtime = (const struct runtime *)thread->sub;
    const struct cell *cell = ref_cell(actor);
    if (UNLIKELY(!(actor.bits[1] & MARK_ACTOR)) || UNLIKELY(!arch_in_handles(cell)))
        return false;
    const struct slab *slab = plain_load(&cell_chunk(cell)->slab, memory_order_relaxed);
    return slab >= runtime->cells && slab < runtime->cells + CELL_CLASSES;
}

/* Take the lock, if the reference, which is ours, is not stale. *word: what it was. An awake cell's serial is read
 * under the lock: before that its task may serve another one, and then this one again. */
static inline bool cell_lock(struct thread *thread, struct cell *cell, uint64_t serial, uint64_t *word)
{
    uint64_t w = atomic_load_explicit(&cell->word, memory_order_acquire);
    for (;;) {
        if (!(w & CELL_AWAKE) && UNLIKELY(word_serial(w) != serial))
            return false;
        if (!thread->shared)
            break;
        if (UNLIKELY(w & CELL_LOCK)) {
            driver_await(thread);
            w = atomic_load_explicit(&cell->word, memory_order_acquire);
        } else if (LIKELY(atomic_compare_exchange_weak_explicit(&cell->word, &w, w | CELL_LOCK, memory_order_acquire,
                                                                memory_order_acquire))) {
            break;
        }
    }
    arch_note_acquire(cell);
    *word = w;
    if (!(w & CELL_AWAKE) || LIKELY(atomic_load_explicit(&word_task(w)->serial, memory_order_relaxed) == serial))
        return true;
    arch_note_release(cell);
    atomic_store_explicit(&cell->word, w, memory_order_release);
    return false;
}

/* Of a cell that can't end meanwhile: its own runner's, or a parent's by its child. */
static inline uint64_t cell_lock_living(struct thread *thread, struct cell *cell)
{
    uint64_t w = atomic_load_explicit(&cell->word, memory_order_acquire);
    while (thread->shared) {
        if (w & CELL_LOCK) {
            driver_await(thread);
            w = atomic_load_explicit(&cell->word, memory_order_acquire);
        } else if (atomic_compare_exchange_weak_explicit(&cell->word, &w, w | CELL_LOCK, memory_order_acquire,
                                                         memory_order_acquire)) {
            break;
        }
    }
    arch_note_acquire(cell);
    return w;
}

static inline void cell_unlock(struct cell *cell, uint64_t word)
{
    arch_note_release(cell);
    atomic_store_explicit(&cell->word, word, memory_order_release);
}

static inline struct more *cell_more(const struct cell *cell)
{
    uintptr_t form = plain_load(&cell->form, memory_order_acquire);
    return form & FORM_MORE ? (struct more *)(form - FORM_MORE) : NULL;
}

static inline struct kind *cell_kind(const struct cell *cell)
{
    uintptr_t form = plain_load(&cell->form, memory_order_acquire);
    return LIKELY(!(form & FORM_MORE)) ? (struct kind *)form : ((struct more *)(form - FORM_MORE))->kind;
}

static inline void *cell_state(struct cell *cell)
{
    return UNLIKELY(cell_kind(cell)->outside) ? *(void **)(void *)cell->state : cell->state;
}

/* The reference to a cell that can't be given to somebody else meanwhile; {0}: it has ended. */
strand_actor cell_ref(const struct cell *cell);

#endif
