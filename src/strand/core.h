/*
 * The data of the structure layer: a strand's control block, the blocks that can interrupt it (scopes, deadlines), the
 * exception, the run. Each group of members says which party may touch it. Pages explain the protocols:
 * docs/protocols/wait.md, end.md, scope.md, interrupt.md.
 */
#ifndef STRAND_CORE_H
#define STRAND_CORE_H

#include "../../include/strand.h"
#include "../../include/strand/pool.h"
#include "../base/slab.h"
#include "../sched/thread.h"
#include "../stack/stack.h"
#include "blocked.h"
#include "episode.h"
#include "layer.h"

/* ---- the word of a control block or a block ---------------------------------------------------------------- */

/* serial << 10 | references << 4 | flags. The serial is never used twice in a process, so a handle is the address and
 * the serial. A reference keeps the memory from being used again while another strand reads it. The protocol block of
 * handle.h says how the word changes. */
enum {
    WORD_CANCELLED = 1,
    WORD_OWNED = 2,
    WORD_DEAD = 4,
    WORD_STUCK = 8,
    WORD_REF = 16,
    WORD_REFS = 63 << 4,
    WORD_SERIAL = 10
};
/* Source 0 of interruption: the strand's own cancel. For the root strand also the deadlock of the run. */
#define WORD_ITSELF ((uint64_t)(WORD_CANCELLED | WORD_STUCK))
/* A free record keeps its last serial, for reports of misuse. This bit makes it differ from the serial of every
 * handle. */
#define WORD_FREE (UINT64_C(1) << 63)

static inline uint64_t word_serial(uint64_t word)
{
    return word >> WORD_SERIAL;
}

static inline uint64_t word_freed(uint64_t word)
{
    return (word & ~((UINT64_C(1) << WORD_SERIAL) - 1)) | WORD_FREE;
}

/* Whether the record is free, and had this serial in its last life. */
static inline bool word_was(uint64_t word, uint64_t serial)
{
    return word == (serial << WORD_SERIAL | WORD_FREE);
}

/* ---- waiting: one way to block --------------------------------------------------------------------------- */

/* wait state: epoch << 32 | floor << 8 | tag. After WAIT_WON the index takes the place of the floor. See wait.h. */
enum {
    WAIT_IDLE = 0,
    WAIT_ARMED = 1,
    WAIT_INTERRUPTED = 2,
    WAIT_WON = 3,
    WAIT_TRYING = 4,
    WAIT_CHILD = 5, /* armed for the end of child_awaited alone */
    WAIT_ARMED_MASK = 3
};
#define WAIT_FLOOR_MOST 0xffffffu

struct cb;

enum {
    NODE_DROPS = 1,    /* a case that drops out when its channel is closed */
    NODE_TRY_ONLY = 2, /* of a select that only tries: no other waiter gives up its place for it */
    NODE_ORDERED = 4   /* of a select that takes the first case that is ready */
};

/* One strand's interest in one source of events. Lies in the control block or in a record of a select, never on a
 * stack. */
struct wait_node {
    union {
        struct wait_node *next; /* the next waiter for the same end or descriptor */
        struct link link;       /* in the queue of a channel, a lock, ...; in anchor->ended */
    };
    struct cb *waiter;
    uint32_t epoch;
    _Atomic uint16_t linked; /* not 0 from the linking until the source has let go of it */
    uint8_t marks;           /* NODE_*; 0 unless it is the case of a select */
    uint32_t index;          /* the case of a select; else 0 */
    int result;              /* written by the claimer before it makes the waiter runnable */
    void *value;             /* the address that a value is copied from, or to */
};

struct wait {
    _Atomic uint64_t state;
    struct wait_node node;
    struct timer timer; /* its index is that of a select's case, else 0 */
};

/* ---- strands --------------------------------------------------------------------------------------------- */

struct scope;
struct block;
struct local;
struct flight;
struct checked;
struct lockset;

/* Which strand cancelled, and why. Reference-counted. */
struct cancel_reason {
    _Atomic uint32_t refs;
    uint64_t who_id;
    bool pruned; /* the cancel is a pruning: src/sync/prio.c */
    char who[32];
    char why[129];
};

/* Only strands with attributes or copied arguments have this record. The arguments follow it. */
enum { STRAND_NAME_ROOM = 32 };
struct extra {
    void (*drop)(void *result);
    size_t size; /* of args */
    _Alignas(16) char name[STRAND_NAME_ROOM];
};

enum { ENDS_LOCK = 1, ENDS_OVER = 2, ENDS_NOTIFY = 4 };
#define ENDS_PARTED ((uintptr_t)1 << 63) /* no address has this bit */
#define ENDS_BITS (ENDS_PARTED | ENDS_LOCK | ENDS_OVER | ENDS_NOTIFY)
enum outcome {
    OUTCOME_NONE,
    OUTCOME_VALUE,
    OUTCOME_FAILED,      /* by an exception, without having been cancelled */
    OUTCOME_INTERRUPTED, /* cancelled, and ended by that */
    OUTCOME_ERROR        /* cancelled, but ended by another exception */
};

/* Ordered by use: a strand that is spawned, runs without blocking and is joined touches only the first two cache lines
 * here, and two of its fibre before them. */
struct cb {
    struct member member; /* its fibre lies right before it: fibre_of */

    /* Anybody, by compare-and-swap. */
    _Atomic uint64_t word;
    _Atomic uintptr_t ends; /* list of the nodes that wait for its end | ENDS_*: docs/protocols/end.md */
    _Atomic uint32_t due;   /* 1 + the highest index of a source that holds, or 0. Any strand raises it; only the strand
                               itself lowers it */

    /* Only the strand itself. */
    uint8_t outcome; /* written before ENDS_OVER, read after it */
    uint8_t blocked; /* blocked.h */
    bool listed;     /* in anchor->ended, by wait.node.link; protected like `sibling` */
    bool started : 1;
    bool slow_end : 1; /* ending and joining it take slow paths: it is the root, pinned, counted or listed, has extra or
                          locals, threw, or had locks */
    bool counted : 1;  /* against options.max_strands */
    bool section_by_mutex : 1; /* section.h */
    bool tried : 1;            /* its select has tried all cases once: a channel that it finds gone existed then */
    bool guest : 1;            /* it runs on a shared fibre */
    bool has_joiner : 1;       /* set by its owner before it begins: the owner waits in WAIT_CHILD for its end, unless
                                  ENDS_PARTED is set */
    strand_fn *fn;
    union {
        void *arg;                   /* until the strand begins */
        void *result;                /* after its end, if outcome <= OUTCOME_VALUE */
        strand_exception *exception; /* after its end, otherwise; NULL once it was taken. See cb_exception */
    };

    /* The owner of the scope, or the holder of the scope's lock (scope.h). */
    struct scope *anchor; /* changed under ENDS_LOCK; NULL: the root */
    struct link sibling;  /* in anchor->children */
    _Atomic(struct cancel_reason *) cancel_reason;

    void *site; /* where it was spawned */

    /* Only the strand itself, again. */
    struct extra *extra;
    struct wait wait;

    union {
        uint64_t blocked_on;    /* diagnostics only: enum blocked_on */
        struct local *inherits; /* until the strand begins, if slow_end. See cb_inherits */
    };
    int64_t since; /* diagnostics only */
};

/* The caller knows that the strand has not begun, and does not begin by throwing. */
static inline struct local *cb_inherits(const struct cb *c)
{
    return UNLIKELY(c->slow_end) ? c->inherits : NULL;
}

/* The caller knows that the strand has ended, or is about to judge its end. */
static inline strand_exception *cb_exception(const struct cb *c)
{
    return UNLIKELY(c->outcome > OUTCOME_VALUE) ? c->exception : NULL;
}

/* As cb_exception. The reference becomes the caller's. */
static inline strand_exception *cb_take_exception(struct cb *c)
{
    strand_exception *e = cb_exception(c);
    if (e)
        c->exception = NULL;
    return e;
}

/* The strand ends by an exception. */
static inline void cb_throws(struct cb *c, strand_exception *e)
{
    c->exception = e;
    c->outcome = OUTCOME_FAILED; /* for now: judge in end.c decides */
    c->slow_end = true;
}

/* The blocks, sections and try blocks that a strand has open. No other strand touches it. When nothing is open, all
 * members but `tries` and `locals` are zero. */
struct own {
    struct strand_try_ *tries; /* the innermost open one */
    struct flight *flight;     /* the newest exception in flight; linked by outer */
    struct block *blocks;      /* the innermost open one */
    uint32_t
        depth; /* the number of open blocks, and the index of the innermost one; index 0 is the strand's own cancel */
    uint32_t floor; /* sources with an index below it are deferred: by a shield, or while an exception is in flight */
    struct lockset *lockset; /* the locks that the strand holds; NULL if it never held one. Otherwise slow_end is set */
    struct local *locals;
    uint32_t shield; /* as floor, but raised by shields only */
    int section_line;
    const char
        *section_file; /* the innermost no-suspend section, in which the strand must not suspend, or NULL: section.h */
    struct checked *checked; /* the checked mutexes that the strand holds, the newest first: section.h */
};
_Static_assert(sizeof(struct own) == OWN_SIZE && offsetof(struct own, section_file) == OWN_KEPT * sizeof(uint64_t) &&
                   offsetof(struct own, tries) == 0,
               "it lies in a fibre");

static inline bool own_is_clean(const struct own *own)
{
    return !own->flight && !own->blocks && !own->depth && !own->floor && !own->lockset && !own->locals &&
           !own->shield && !own->section_file && !own->checked;
}

/* The record of the strand that runs on the fibre. */
static inline struct own *own_on(struct fibre *fibre)
{
    return (struct own *)(void *)fibre->own;
}

/* `me` is running on the caller's thread. */
static inline struct own *own_of(const struct cb *me)
{
    return own_on(me->member.fibre);
}

static inline struct cb *cb_of(struct member *member)
{
    return CONTAINER(member, struct cb, member);
}

/* An object of the slab of control blocks is a strand's private fibre, then child_awaited, then its control block. An
 * object of the slab of guests is the shared fibre's record of the strand, then its control block. */
enum {
    FIBRE_ROOM = (sizeof(struct fibre) + sizeof(struct cb *) + 63) & ~63u,
    CB_SIZE = (FIBRE_ROOM + sizeof(struct cb) + 63) & ~63u,
    GUEST_SIZE = GUEST_ROOM + sizeof(struct cb)
};

static inline struct fibre *fibre_of(struct cb *c)
{
    return (struct fibre *)(void *)((char *)c - FIBRE_ROOM);
}

static inline struct cb *cb_in(void *object)
{
    return (struct cb *)(void *)((char *)object + FIBRE_ROOM);
}

static inline struct cb *guest_in(void *object)
{
    return (struct cb *)(void *)((char *)object + GUEST_ROOM);
}

/* Where a strand that is no guest keeps the child that it waits for in WAIT_CHILD. Only the strand writes it. */
static inline struct cb **child_awaited(struct cb *c)
{
    return (struct cb **)(void *)c - 1;
}

/* Whether its memory must be wiped before it is reused. */
static inline bool cb_wipes(struct cb *c)
{
    return UNLIKELY(c->guest) && guest_of(&c->member)->wipes;
}

static inline uint64_t cb_id(struct cb *c)
{
    return word_serial(atomic_load_explicit(&c->word, memory_order_relaxed));
}

/* Diagnostics only. */
static inline const char *cb_name(struct cb *c)
{
    const struct extra *extra = plain_load(&c->extra, memory_order_acquire); /* [PB1] */
    if (extra && extra->name[0])
        return extra->name;
    return plain_load(&c->anchor, memory_order_relaxed) ? "strand" : "root"; /* a hand-off may change the anchor */
}

/* ---- blocks: what can interrupt the strand that opened it ------------------------------------------------ */

enum block_type { BLOCK_SCOPE, BLOCK_DEADLINE };

struct block {
    _Atomic uint64_t word;
    void *link_;
    struct block *outer;
    struct cb *owner;
    uint32_t index;
    uint8_t type;
    _Atomic uint8_t due;      /* whether this source holds */
    struct flight *in_flight; /* at its entry */
    uintptr_t uncaught;       /* C++ exceptions in flight at its entry */
    const char *file;         /* for a block that the library opened for the user: a text, with line 0 */
    int line;
};
/* Where a block was opened, for printf. */
#define BLOCK_LOCATION "%s%s%.0d"
#define BLOCK_LOCATION_OF(block) (block)->file, (block)->line ? ":" : "", (block)->line

/* Something that ends with a scope: a channel, a shared fibre, a crew, a pool. */
struct owned {
    struct owned *next;
    struct pool *pool; /* of the scope's owner */
    /* Called by the owner, the newest first. May suspend the strand that leaves, unless that is in a no-suspend
     * section, and may return on another thread. */
    void (*release)(struct thread *thread, struct owned *owned);
};

struct scope {
    struct block block;
    /* A plain scope: only the owner. A scope with flags: under the lock. */
    struct link children;
    uint32_t count;
    uint32_t recount_at; /* plain scope: with so many children it may keep too many that have ended; 0 while it is being
                         joined. With flags, under the lock: HOARD until the warning is logged, but while
                         it is being joined */
    struct link ended;   /* ended children in the order of their ends; in a plain scope all of them while it is being
                            joined, otherwise only failed ones */
    union {
        struct cb *winner;   /* FIRST_WINS */
        struct link *unseen; /* the other policies: a link of `ended`. No child before it has failed */
    };
    /* From here on all members are zero at first. */
    uint8_t flags;
    bool cancelled, owned;  /* owned: the owner has cancelled it */
    _Atomic bool by_policy; /* a policy has cancelled children; a join of one of them reads it without the lock */
    bool closed;            /* an open scope that takes no more strands */
    atomic_flag lock;
    _Atomic bool hoards;                 /* it keeps too many ended children, and the warning is still to be logged */
    struct owned *belongings;            /* end with it; the newest first */
    struct cancel_reason *cancel_reason; /* cancelled, and why */
    struct wait_node *waiter;            /* the owner, in strand_scope_wait_next, _first or _join */
    size_t ends;                         /* the length of `ended` */
    uint32_t stack_taken; /* bytes of stack in use when the owner opened the scope; 0 if unknown (strand/check.h) */
    uint32_t failures;    /* failed children in `ended` that the owner has not seen */
    uint32_t expected;    /* hand-offs to this scope that are under way */
    uint32_t enough;      /* the waiter wakes when `ends` exceeds this */
};

struct deadline {
    struct block block;
    struct timer timer;
    struct pool *pool;
    int64_t when;
};

union any_block {
    struct scope scope;
    struct deadline deadline;
};

/* ---- threads and runs ------------------------------------------------------------------------------------ */

/* How often a strand has ignored one source, because it has caught the interruption or was in a noexcept function:
 * interrupt.c. Strands whose ids collide are counted again from the start, and so is a strand when another source
 * interrupts it. Only strands on the worker's thread use it, one after the other. It is atomic because ThreadSanitizer
 * does not see that order. */
struct ignored {
    _Atomic uint64_t id, source, count;
};

/* This layer's part of a thread's record. Parts of higher layers follow it: layer.h. */
struct worker {
    struct thread thread;
    struct slab_cache cbs, guests, blocks, objects, tickets;
    uint64_t serial, serials_end; /* the next serial, and the first that is not the thread's */
    strand_exception *exceptions; /* a stock for coming throws: exception_reserve.c */
    uint32_t exceptions_count;
    struct ignored ignored[8];
};

enum { SERIAL_BATCH = 1 << 16 };

enum { OBJECT_SIZE = 256, TICKET_SIZE = CACHE_LINE };
/* Marks in the serial of a handle tell the kinds of objects apart. Strands and channels have no mark. Higher layers use
 * the other bits from 56 to 62; src/run/run.c asserts that all marks differ. */
#define MARK_FIBRE (UINT64_C(1) << 62)
#define MARK_POOL (UINT64_C(1) << 59)
/* The offset of the lock in every kind of object. A strand that has waited at an object takes this lock even if another
 * object has the memory by then. */
enum { OBJECT_LOCK = 24 };

/* Functions of src/run that lower layers call. src/run sets them before the run has a strand. */
struct run_ops {
    /* strand_pool_open */
    strand_pool (*pool_open)(strand_scope scope, const strand_pool_attr *attr);
    /* Waits until the run is quiescent, or until another strand has set `over` and called wake_quiescence_waiter for
     * *waiter, which is the caller meanwhile. Throws if the caller is interrupted. */
    void (*wait_quiescent_or)(struct thread *thread, struct cb *me, struct cb *_Atomic *waiter,
                              const _Atomic bool *over);
    void (*wake_quiescence_waiter)(struct thread *thread, const struct cb *waiter);
};

enum { RUN_PARTS = 3 };

/* This layer's part of a run's record. Parts of higher layers follow it: layer.h. */
struct runtime {
    struct subprocess sub;
    const struct run_ops *ops;
    const struct layer *const *layers; /* ends with NULL */
    void *parts[RUN_PARTS];            /* parts of higher layers that do not know each other, by index */
    strand_options options;
    const struct reports *reports;               /* print.h */
    const struct blocked_reason *const *reasons; /* the layers' tables: blocked.h */
    struct slab cbs, guests, blocks;
    struct slab objects; /* of OBJECT_SIZE bytes: the other things that have handles */
    struct slab tickets; /* of TICKET_SIZE bytes: the records of lockset.h, and other small ones */
    struct cb *root;
    void *result;
    strand_exception *exception;
    _Atomic int64_t live; /* kept only if max_strands is set */
    /* Called when a strand could not start. Returns true if the callee has dealt with that: the strand has ended with a
     * value. */
    bool (*_Atomic refused)(struct thread *thread, struct cb *c);
    struct arch_run listed;
    char deadlock[200]; /* its description, for the exception */
    /* Set by a shut-down, or because the run was out of work: the root's interruption is not a failure then. */
    _Atomic bool end_requested;
    struct episodes unwindings; /* the strands that unwind */
    bool shares;                /* for tests: strands without attr.fibre run on pool.common */
    bool slow_spawn;            /* shares, or max_strands */
    atomic_flag hand_off;       /* join.c */
};

static inline struct worker *worker_of(struct thread *thread)
{
    return (struct worker *)thread;
}

static inline struct runtime *runtime_of(struct thread *thread)
{
    return (struct runtime *)thread->sub;
}

OWN_INLINE struct cb *current_of(struct thread *thread)
{
    return cb_of(thread->current->current);
}

/* Returns the calling strand's thread. Misuse if the caller is not a strand. */
__attribute__((noreturn)) void misuse_plain_thread_(const char *function);
static inline struct thread *must_be_strand(const char *function)
{
    struct thread *thread = thread_self();
    if (UNLIKELY(!thread || !thread->current))
        misuse_plain_thread_(function);
    return thread;
}

/* Called at the start of every operation that may block. A frame that is larger than the guard page may step over it;
 * the strand then runs on another strand's stack. The check ends the program before the operation writes there. */
void print_stack_left_(struct thread *thread, const char *sp);
static inline void must_be_on_its_stack(struct thread *thread)
{
    const struct fibre *fibre = thread->current;
    const char *sp = arch_stack_pointer();
    if (UNLIKELY(stack_is_left(fibre->stack, fibre->stack_size, sp)))
        print_stack_left_(thread, sp);
}

OWN_INLINE bool has_serials(const struct worker *worker)
{
    return worker->serial != worker->serials_end;
}

OWN_INLINE uint64_t next_serial(struct worker *worker)
{
    if (UNLIKELY(!has_serials(worker))) {
        worker->serial = arch_serials(SERIAL_BATCH);
        worker->serials_end = worker->serial + SERIAL_BATCH;
    }
    return worker->serial++;
}

/* Each thread has its own count; a reader adds them up. */
OWN_INLINE void count_up(_Atomic uint64_t *count)
{
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1,
                          memory_order_release); /* [L1] */
}

OWN_INLINE void count_spawned(struct thread *thread)
{
    count_up(&thread->counts.spawned);
}

OWN_INLINE void count_ended(struct thread *thread)
{
    count_up(&thread->counts.ended);
}

/* ---- compare-and-swap, atomic only if another thread may compete ------------------------------------------- */

/* Each word has its own protocol. The labels stand at the callers. The caller has read *old from the word, and has
 * called nothing since that could change it. So the swap of the only thread succeeds. */
static inline bool swap_word(_Atomic uint64_t *word, uint64_t *old, uint64_t new, bool shared)
{
    if (shared)
        return atomic_compare_exchange_strong_explicit(word, old, new, memory_order_seq_cst, memory_order_seq_cst);
    ASSERT_SLOW(atomic_load_explicit(word, memory_order_relaxed) == *old);
    atomic_store_explicit(word, new, memory_order_relaxed);
    return true;
}

/* As swap_word, where *old may be a guess. If that is wrong, *old is set to what the word is. */
static inline bool swap_guessed_word(_Atomic uint64_t *word, uint64_t *old, uint64_t new, bool shared)
{
    if (!shared) {
        uint64_t now = atomic_load_explicit(word, memory_order_relaxed);
        if (now != *old) {
            *old = now;
            return false;
        }
    }
    return swap_word(word, old, new, shared);
}

/* As swap_word. */
static inline bool swap_ends(_Atomic uintptr_t *ends, uintptr_t *old, uintptr_t new, bool shared)
{
    if (shared)
        return atomic_compare_exchange_strong_explicit(ends, old, new, memory_order_acq_rel, memory_order_acquire);
    ASSERT_SLOW(atomic_load_explicit(ends, memory_order_relaxed) == *old);
    atomic_store_explicit(ends, new, memory_order_relaxed);
    return true;
}

#endif
