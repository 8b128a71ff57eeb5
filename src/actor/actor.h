/*
 * Actors: the data, and the rules of access. Page: docs/protocols/actor.md.
 *
 * PARTIES   senders to an actor: strands of the run, and posts for others; the runner that has the actor's turn; its
 *           parent and its children; strands that stop it.
 * STATE     cell.word, one of
 *             serial << WORD_SERIAL | CELL_FRESH          dormant: nothing to do; FRESH: never woken yet
 *             wakes << CELL_WAKES | activation | CELL_AWAKE     it has an activation, which has the serial
 *             serial << WORD_SERIAL | WORD_FREE           ended: the memory is free, or about to be
 *           and in the first two CELL_LOCK: the cell is locked. In a run of one thread nothing here is atomic, and LOCK
 *           is never set.
 *
 *             dormant --wake: an activation, with a first message--> awake --retire: nothing is queued--> dormant
 *             awake --close--> ended
 *
 *           activation.flags: SCHEDULED: a runner has it, or will get it; SUSPENDED, WAITS (for its children): it
 *           handles no messages, and stays awake without a runner while there is nothing else to do.
 * OWNERSHIP the cell's lock protects the queues and flags of an activation, and the list of a cell's children. The
 *           state of an actor, activation.batch, and its supervision belong to the runner that has the activation, from
 *           one turn to the next. The parent's lock protects a cell's place in its parent's list; the parent's cell
 *           outlives it.
 * INVARIANTS [A1] an activation has at most one runner, and a runner one activation. [A2] a party that finds a cell
 *           dormant and queues something wakes it, under the same lock under which its runner finds the queues empty:
 *           nothing is queued at a dormant cell. [A3] an activation that has something to do is SCHEDULED. [A4] a
 *           cell's memory stays that of a cell for ever, and an activation's that of an activation: so through a stale
 *           reference one reads another serial, or none. [A5] each message that was taken is handled, or a dead letter,
 *           once. [A6] no call in a turn waits for an actor that awaits a decision of the caller's actor; deadlock.c
 *           says which longer cycles that leaves out.
 * ORDER OF LOCKS one cell's at a time. The lock of runners below it; a promise's, one at a time, above it.
 * BEGINNING a cell appears with its word, which is written LOCKED under the parent's lock, as it enters the list of
 *           children: a parent that stops finds it, or it is not created. The holder of that lock waits for no other
 *           lock: a parent that has ended may have given its memory to a cell that is just being made.
 * END       from STOPPING on nothing is queued: a later message is a dead letter. So is each message that was queued
 *           before.
 * ORDERING  [A7] LOCK is taken by acquire and released by release: one turn happens before the next, and a send before
 *           the handling of its message. [A8] A reader without the lock (cell_ref) loads the word, the activation's
 *           serial, and the word again, by acquire. The serial of an activation is stored by release, after the word of
 *           the cell that it served before was changed: so a reader that finds the same word twice has read that cell's
 *           serial. [A9] the store that clears a watch's `linked` (release) is the notifier's last access to it, and
 *           pairs with the load of the watch's owner (acquire), which may free it then.
 *           [A10] system.decisions is counted up under the lock of the failed actor that a decision is about, before a
 *           party can see that the actor goes on. So a reader that has found, under locks, what happened after a
 *           decision reads the new count.
 * NOT DONE  a strand for each turn: it would have to be anchored, which takes the lock of the system's scope twice. A
 *           queue of actors beside the threads' queues of fibres, served by a few strands: handlers block, so there
 *           would have to be more strands at any moment, and it would be a second scheduler. A mailbox without a lock:
 *           whether it is empty is decided by the sender and the runner together, by one word, and with a lock in that
 *           word a message costs one compare-and-swap. Lock, serial and flags in one word and the activation in
 *           another: eight bytes for each of a million actors.
 * TESTED BY tests/models/actor.pml, tests/sim/actors.c, tests/spec/actor.c.
 */
#ifndef ACTOR_ACTOR_H
#define ACTOR_ACTOR_H

#include "../../include/strand/actor.h"
#include "../../include/strand/sync.h"
#include "../base/index.h"
#include "../strand/handle.h"
#include "../strand/scope.h"
#include "actor_layer.h"

/* WAKES: above the address of an activation is a count of its uses, in 15 bits: a reader that finds the same word
 * before and after reading the activation knows that the activation has not served another cell meanwhile. */
enum { CELL_LOCK = 1, CELL_AWAKE = 2, CELL_FRESH = 4, CELL_BITS = 7, CELL_WAKES = 48, CELL_WAKES_MOST = (1 << 15) - 1 };
/* Bits in the serial of a reference: an actor; a system's handle. */
#define MARK_ACTOR (UINT64_C(1) << 58)
#define MARK_ACTORS (UINT64_C(1) << 57)
#define MARK_PROMISE (UINT64_C(1) << 56)
/* In the sender of a timer's message that was not examined yet: beside it the timer's number, before it its key. */
#define MARK_TIMER (UINT64_C(1) << 59)

struct system;
struct runners;
struct runner;

/* ---- messages ----------------------------------------------------------------------------------------------- */

/* In the size of a waiting message: it takes no room in a bounded mailbox. */
#define ENVELOPE_EXTRA ((size_t)1 << 63)

/* A message in a mailbox, or in hand. */
struct envelope {
    struct envelope *next;
    strand_message message;
    /* The body of a copied message follows. */
};
_Static_assert(sizeof(struct envelope) == 48, "a small message takes one line of the cache");

/* Requests of the tree to an actor: served before messages, and between any two. Bits of activation.calls. */
enum {
    CALL_START = 1,
    CALL_STOP = 2,
    CALL_RESUME = 4,
    CALL_RESTART = 8,
    CALL_SUSPEND = 16,
    CALL_ALONE = 32,          /* its last child has ended */
    CALL_FAILED = 64,         /* children have failed: activation.failed */
    CALL_NOW = 128,           /* with STOP: cancel the strand that handles a message */
    CALL_DECIDED = 256,       /* its parent has decided about it: causes no action by itself */
    CALL_DEADLOCK_CHECK = 512 /* the party that has to decide about it may wait for it: deadlock.c */
};

/* ---- an actor ---------------------------------------------------------------------------------------------- */

/* What actors of one class in one system have in common. */
struct cell_type {
    struct cell_type *next;     /* in system.types */
    struct index_node by_parts; /* in system.further_types */
    struct system *system;
    const strand_actor_class *class;
    struct runners *runners;
    strand_behaviour *receive;
    bool slow; /* takes the slow path: its messages have priorities, or are published; or its turns have a time limit */
    size_t args; /* size of its initial arguments, which lie behind the state, from `args_at` on */
    size_t args_at, whole;
    uint32_t most; /* capacity of the mailbox */
    uint8_t size_class;
    bool outside;                 /* state and arguments are in separate memory, whose address is in the cell */
    char label[STRAND_NAME_ROOM]; /* the name of a strand that runs such an actor: the class */
};

/* In a slab of cells; a free cell keeps its word. */
struct cell {
    _Atomic uint64_t word;
    struct cell *parent;
    struct cell *newer, *older; /* siblings: under the parent's lock */
    struct cell *children;      /* the newest */
    uintptr_t form;             /* its cell_type; or its `struct optional` | FORM_OPTIONAL. Changed under the lock */
    char state[];
};
enum { FORM_OPTIONAL = 1 };
_Static_assert(sizeof(struct cell) == 48, "what a dormant actor has beside its state");

#define HANDLING_NOW INT64_MAX

/* Properties that few actors have. Those marked "own" belong to the actor's turn. */
struct optional {
    struct cell_type *type;
    struct cell *cell;
    struct link watchers, askers;  /* get a notice of its end; the askers, that there is no answer: under the lock */
    struct tree watching;          /* own: the actors of whose end it gets a notice */
    struct behaviours *behaviours; /* own: what it has become */
    struct envelope *stash, **stash_last;
    struct levels *levels;               /* own: queued messages, by priority */
    struct tree restarts;                /* own: restarts of its children, by number */
    size_t restarts_count, max_restarts; /* own: their number, and the number at which those of ended children are
                                          * looked for */
    const struct limits *limits;         /* own: their limits; NULL: the limits of its class */
    struct tree timers;                  /* own: by key */
    uint64_t numbers;                    /* own: how many timers it has had */
    bool timed;                          /* own: one of them is a receive timeout */
    int64_t patience;                    /* own: then its length in ns */
    int64_t handled_at;                  /* then: when it last handled a message; HANDLING_NOW: it is handling one */
    struct optional *next;               /* in system.names */
    uint32_t hash;
    char name[]; /* "": it has none */
};

/* What an awake actor has. */
struct activation {
    _Atomic uint64_t serial; /* the cell's; 0: the activation is free */
    struct cell *cell;
    struct runner *runner;   /* of a SCHEDULED activation; NULL: it waits for one */
    struct activation *next; /* in runners.starved */
    struct envelope *first, **last;
    struct envelope *batch;    /* taken out of the queue; comes before it */
    struct envelope **counted; /* in the queue: all messages before it are ENVELOPE_EXTRA */
    _Atomic uint16_t calls;    /* CALL_*; written under the lock */
    bool decided_above; /* with UNDECIDED: its parent has failed by its failure, and awaits a decision itself: under the
                           lock */
    uint32_t queued, taken;    /* waiting messages; size of the batch when that was taken */
    uint16_t flags;            /* ACTIVATION_* */
    uint16_t wakes;            /* how often the activation was used */
    struct link waiters;       /* senders that wait for room: by their wait nodes, whose value is the envelope */
    struct cell *cursor;       /* of a walk through the children: the next one */
    struct failure *failed;    /* children's, the newest first */
    struct failure *escalated; /* those of them that made it fail itself; own */
    strand_exception *why;     /* why it failed, and is suspended; written in its own turn */
};

enum {
    ACTIVATION_SCHEDULED = 1,
    ACTIVATION_SUSPENDED = 2,
    ACTIVATION_WAITS = 4,
    ACTIVATION_STOPPING = 8,
    ACTIVATION_RESTARTING = 16,
    ACTIVATION_FRESH = 32,
    ACTIVATION_NOW = 64,        /* its children must stop at once, too */
    ACTIVATION_UNSTARTED = 128, /* its start function has not returned: its stop function is not called */
    ACTIVATION_UNDECIDED = 256  /* it has failed, and its parent has not decided about it yet */
};

/* A child that has failed, and waits for a decision. */
struct failure {
    struct failure *next;
    strand_actor child;
    strand_exception *why;
    bool unstarted; /* its start function failed */
};

/* ---- runners ------------------------------------------------------------------------------------------------ */

/* IDLE: the runner touches nothing more; clearing the bit takes the runner. LISTED: it is in a list of idle runners,
 * idle or not. The states are in runners.h. */
enum { RUNNER_IDLE = 1, RUNNER_LISTED = 2 };

/* A strand that has the turns of one actor after the other. */
struct runner {
    struct runner *next; /* in a list of idle ones */
    struct link others;  /* in system.living, or system.ended */
    struct runners *runners;
    struct cb *strand;
    struct activation *activation; /* NULL: idle; if woken without one, it ends */
    struct cell *cell;
    struct envelope *in_hand;
    struct envelope *notice;   /* the last message of the turn that was a notice of an end that it watched */
    strand_behaviour *receive; /* the actor's current behaviour */
    void *state;
    bool slow; /* type.slow, or the cell has a struct optional */
    strand_actor self;
    strand_scope scope;
    _Atomic uint64_t asks;            /* the promise that its strand waits for; 0: none [A6] */
    _Atomic bool queues;              /* its strand waits for room in a mailbox [A6] */
    _Atomic uint32_t idle;            /* RUNNER_* */
    uint32_t left;                    /* messages left in its turn; 0: the turn has not begun */
    bool launched;                    /* its strand has begun, or is about to */
    bool over;                        /* it takes no more activations */
    bool unhandled;                   /* strand_message_unhandled has been called for the message in hand */
    struct extra label;               /* the name of the strand: its actor's name, or the class */
    const struct cell_type *labelled; /* label belongs to this type; NULL: to one actor */
    strand_exception *fatal;          /* the system's failure, by which it ends */
};

/* Limits of runners: threads that keep idle runners, how many each keeps, messages in a turn, and how many runners may
 * be about to begin. */
enum { TURN_MOST = 64, RUNNERS_THREADS = 32, IDLE_MOST = 128, COMMON_MOST = 64, UNBEGUN_MOST = 1024 };
_Static_assert(sizeof(struct activation) <= ACTIVATION_SIZE && sizeof(struct runner) <= RUNNER_SIZE,
               "they lie in slabs");

/* The runners of one dispatcher. */
struct runners {
    /* A runner that falls idle has to check more than its list: from_outside, closing, starved, threads_most [T4]. */
    _Atomic bool slow_idle;
    struct runners *next; /* in system.runners */
    struct system *system;
    struct pool *pool;
    int pin;                      /* the index of their only thread; -1: any */
    int threads_most;             /* if the number of threads grows; otherwise 0 */
    _Atomic int running, threads; /* likewise: activations that have a runner, and threads */
    uint32_t most;                /* messages in a turn */
    int64_t quantum;              /* ns of a turn; 0: until other strands wait */
    char name[32];
    struct {
        _Alignas(CACHE_LINE) struct runner *first;
        uint32_t count;
    } idle[RUNNERS_THREADS]; /* one list for each thread, used by no other */
    _Alignas(CACHE_LINE) atomic_flag lock;
    _Atomic bool has_begun;     /* a runner of it has a stack */
    _Atomic bool from_outside;  /* threads without a list have asked for runners: `shared_idle` should have some */
    struct runner *shared_idle; /* idle ones that no thread keeps */
    uint32_t shared_idle_count;
    _Atomic uint32_t unbegun;           /* runners that were made, and have not begun */
    struct activation *starved, **last; /* activations without a runner, FIFO */
};

/* Timers of a system: src/actor/actor_timers.c. */
struct actor_timers {
    atomic_flag lock;
    struct heap heap;
    _Atomic bool begun;   /* it has a strand */
    strand_event changed; /* the first timer is another one now */
};

/* The actors of a system that have names: src/actor/optional.c. */
struct names {
    atomic_flag lock;
    struct optional **buckets;
    size_t room, count;
};

enum { TYPES_NEAR = 32, EVENTS = 6 };

struct system {
    struct system *older; /* by age, in the run: under its lock */
    struct runtime *runtime;
    struct door *door; /* the target of its handles */
    void *(*serve)(struct runner *r);
    strand_scope scope;
    strand_actor root, user, own; /* once these have ended, the cells may be reused */
    atomic_flag lock;
    struct cell_type *_Atomic types; /* the first TYPES_NEAR: read without the lock */
    uint32_t types_near;             /* how many these are: under the lock */
    struct tree further_types;       /* the others, by their parts: under the lock */
    struct link living, ended;       /* under the lock */
    struct link failed;   /* under the lock: runners ended by the system's failure, which the owner consumes */
    _Atomic bool closing; /* the owner waits for the runners' ends: set under the lock */
    strand_event over;
    _Atomic bool has_ended;
    struct cb *_Atomic joiner; /* the owner, in strand_actors_join */
    struct names names;
    struct actor_timers timers;
    _Atomic uint64_t decisions; /* how many were made about failed actors [A10] */
    _Atomic uint64_t letters;   /* dead letters that no subscriber received */
    char first_letter[160];     /* written by the thread that counts the first one */
    int64_t logged_since;       /* failures were logged since then, and so many: under events_lock */
    uint32_t logged;
    uint64_t unlogged; /* failures beyond the limit: under events_lock */
    atomic_flag events_lock;
    struct tree subscribers;                    /* by the actor's number: under events_lock */
    size_t subscribers_count, subscribers_most; /* like optional.max_restarts: under events_lock */
    uint32_t subscribers_of[EVENTS];            /* per kind of event: under events_lock */
    _Atomic uint32_t subscribed;                /* the events with subscribers: STRAND_ACTOR_* */
    char name[32];
    int thread; /* the index of the thread that it was opened on */
    struct runners *_Atomic runners;
    struct runners default_runners;
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

static inline struct activation *word_activation(uint64_t word)
{
    return (struct activation *)(uintptr_t)(word & ((UINT64_C(1) << CELL_WAKES) - 1) & ~(uint64_t)CELL_BITS);
}

static inline const struct slab_chunk *cell_chunk(const struct cell *cell)
{
    return (const struct slab_chunk *)((uintptr_t)cell & ~(uintptr_t)(ARCH_CHUNK - 1));
}

/* The runner whose strand calls; NULL: none. */
static inline struct runner *runner_self(struct thread *thread);

/* What a runner's strand runs: system.serve, once it has begun. */
void *runner_main(void *arg);
/* system.serve: serve one activation after the other until the runner is over. */
void *turns_serve(struct runner *r);

static inline struct runner *runner_self(struct thread *thread)
{
    struct cb *me = current_of(thread);
    return me->fn == runner_main ? (struct runner *)me->arg : NULL;
}

/* Misuse unless the caller is an actor in its turn. */
struct runner *must_be_actor(struct thread *thread, const char *function);
/* For a report of misuse: which actor the caller is, and what it handles. NULL: the caller is none. */
const char *caller_made_actor(const struct runner *r, char *buffer, size_t size);

/* ---- the cell (cell.c) ------------------------------------------------------------------------------------- */

/* Whether it refers to an actor of the caller's run; or to one that has ended, whose memory is not used by another
 * run. */
static inline bool ref_is_ours(const struct thread *thread, strand_actor actor)
{
    const struct actor_run *run = actor_run_of(thread);
    const struct cell *cell = ref_cell(actor);
    if (UNLIKELY(!(actor.bits[1] & MARK_ACTOR)) || UNLIKELY(!arch_in_handles(cell)))
        return false;
    const struct slab *slab = plain_load(&cell_chunk(cell)->slab, memory_order_relaxed);
    return slab >= run->cells && slab < run->cells + CELL_CLASSES;
}

/* A damaged reference leads anywhere. The library's activations lie where its handles do. */
static inline bool is_activation(const struct activation *activation)
{
    return arch_in_handles(activation);
}

/* Take the lock, unless the reference, which is of this run, is stale. *word: what it was. An awake cell's serial is
 * read under the lock: before that its activation may serve another cell, and then this one again. A damaged reference
 * may lead into the state of an actor, which holds any words. */
static inline bool cell_lock(struct thread *thread, struct cell *cell, uint64_t serial, uint64_t *word)
{
    uint64_t w = atomic_load_explicit(&cell->word, memory_order_acquire); /* [A7] */
    for (;;) {
        if (UNLIKELY(w & CELL_AWAKE ? !is_activation(word_activation(w)) : word_serial(w) != serial))
            return false;
        if (!thread->concurrent)
            break;
        if (UNLIKELY(w & CELL_LOCK)) {
            platform_await(thread);
            w = atomic_load_explicit(&cell->word, memory_order_acquire); /* [A7] */
        } else if (LIKELY(atomic_compare_exchange_weak_explicit(&cell->word, &w, w | CELL_LOCK, memory_order_acquire,
                                                                memory_order_acquire))) { /* [A7] */
            break;
        }
    }
    arch_san_acquire(cell);
    *word = w;
    if (!(w & CELL_AWAKE) || LIKELY(atomic_load_explicit(&word_activation(w)->serial, memory_order_relaxed) == serial))
        return true;
    arch_san_release(cell);
    atomic_store_explicit(&cell->word, w, memory_order_release); /* [A7] */
    return false;
}

/* Take the lock of a cell that can't end meanwhile: by its own runner, or a parent's by its child. */
static inline uint64_t cell_lock_living(struct thread *thread, struct cell *cell)
{
    uint64_t w = atomic_load_explicit(&cell->word, memory_order_acquire); /* [A7] */
    while (thread->concurrent) {
        if (w & CELL_LOCK) {
            platform_await(thread);
            w = atomic_load_explicit(&cell->word, memory_order_acquire); /* [A7] */
        } else if (atomic_compare_exchange_weak_explicit(&cell->word, &w, w | CELL_LOCK, memory_order_acquire,
                                                         memory_order_acquire)) { /* [A7] */
            break;
        }
    }
    arch_san_acquire(cell);
    return w;
}

static inline void cell_unlock(struct cell *cell, uint64_t word)
{
    arch_san_release(cell);
    atomic_store_explicit(&cell->word, word, memory_order_release); /* [A7] */
}

static inline struct optional *cell_optional(const struct cell *cell)
{
    uintptr_t form = plain_load(&cell->form, memory_order_acquire); /* [PB1] */
    return form & FORM_OPTIONAL ? (struct optional *)(form - FORM_OPTIONAL) : NULL;
}

static inline struct cell_type *cell_type(const struct cell *cell)
{
    uintptr_t form = plain_load(&cell->form, memory_order_acquire); /* [PB1] */
    return LIKELY(!(form & FORM_OPTIONAL)) ? (struct cell_type *)form
                                           : ((struct optional *)(form - FORM_OPTIONAL))->type;
}

static inline void *cell_state(struct cell *cell)
{
    return UNLIKELY(cell_type(cell)->outside) ? *(void **)(void *)cell->state : cell->state;
}

/* The reference to a cell whose memory can't be reused meanwhile; {0}: it has ended. */
strand_actor cell_ref(const struct cell *cell);

#endif
