/*
 * The memory of a run's stacks, and each thread's part of it. A run embeds struct stack_memory, and a thread embeds
 * struct stack_user, which is all that this layer knows of a thread.
 */
#ifndef STACK_MEMORY_H
#define STACK_MEMORY_H

#include "../arch/arch.h"
#include "../base/atomic.h"
#include "../base/list.h"

struct stack_user;
struct stack_memory;
struct guest;

/* ---- stacks (stack.h) ------------------------------------------------------------------------------------ */

/* At the high end of its own mapping, above the addresses that the fibre uses. */
struct stack {
    struct stack *next; /* in a cache */
    char *low;          /* the guard page; the fibre may use (low + page, top) */
    char *top;          /* coloured: stacks do not all start in the same cache set */
    size_t size;        /* of the mapping, a power of two */
    int guard;          /* enum arch_guard, or 0: a canary at low is checked at every switch away */
    arch_context idle;  /* the last strand that ended here left it, ready for the next one; NULL: never used */
};

enum { STACK_CLASSES = 48 };
struct stack_region;
struct stacks { /* a run's */
    atomic_flag lock;
    bool required;       /* a stack without a guard page is an error */
    _Atomic bool warned; /* about stacks without a guard page */
    size_t usual;        /* the default size */
    uint64_t made;       /* how many exist */
    uint32_t colour;
    struct stack_region *regions;
    struct stack *free[STACK_CLASSES]; /* by log2 of the size */
    size_t spare;                      /* how many are in these lists */
    size_t least;                      /* the minimum of `spare` since stacks_begin_round: so many were not needed */
    _Atomic bool many;                 /* enough are spare to make a round of trimming worth its wake-ups */
    uint32_t hollow;                   /* how many more are free and have no pages: budget.h */
};

struct stack_cache { /* a thread's stacks of the default size */
    struct stack *free;
    uint32_t count, max;
};

/* ---- saved stacks (saved.h) ------------------------------------------------------------------------------ */

enum { SAVED_CLASSES = 56, SAVED_KEPT_CLASSES = 64 };
struct saved_region;
struct saved_store { /* a run's */
    atomic_flag lock;
    struct saved_region *regions;
    struct link free;  /* chunks */
    size_t free_count; /* how many of them have pages */
    size_t chunks_used;
    size_t large_bytes, kept_bytes;       /* in mappings in use, and in kept ones */
    struct link kept[SAVED_KEPT_CLASSES]; /* of each class */
    struct link kept_by_age;              /* all kept mappings */
};

struct saved_set {                   /* a shared stack's */
    struct link room[SAVED_CLASSES]; /* chunks of each class that have room */
    size_t bytes;                    /* in saved stacks, rounded up */
};

/* ---- readers (readers.h) --------------------------------------------------------------------------------- */

/* Memory that a reader may still use. The last reader to leave frees it. */
struct deferred {
    struct deferred *next;
    size_t bytes; /* of the mapping that begins here; 0: this is a part of something else */
};

struct readers { /* a run's */
    _Atomic uint32_t count;
    _Atomic(struct deferred *) deferred;
};

/* ---- a run, and a thread --------------------------------------------------------------------------------- */

/* What the layer above does for this one. */
struct stack_ops {
    void (*await)(struct stack_user *user);   /* called in a spin loop: lets another thread proceed */
    bool (*refuses)(struct stack_user *user); /* whether a seeded run makes this request for memory fail */
    /* There is no memory for the frames of this strand, and no way to resume another. Does not return. */
    void (*starved)(struct stack_user *user, struct guest *active, size_t bytes);
    /* Called once, for the first stack without a guard page. */
    void (*unguarded)(struct stack_memory *memory);
};

struct stack_memory {
    const struct stack_ops *ops;
    bool seeded;
    struct stacks stacks;
    struct saved_store saved;
    struct readers readers;
    size_t most;                          /* the limit for stacks and saved stacks: budget.h; 0: none */
    _Atomic size_t taken;                 /* bytes counted against the limit */
    _Atomic(struct stack_user *) threads; /* the threads that run strands, the newest first */
};

struct stack_user {
    struct stack_cache cache;
    size_t kept;             /* the size of the stacks in the cache; 0: the thread has no cache */
    size_t wanted;           /* the bytes of the last request that options.max_stack_bytes refused */
    _Atomic uint32_t ending; /* budget.h */
    struct stack_memory *memory;
    struct stack_user *older; /* in memory->threads */
};

void stack_memory_open(struct stack_memory *memory, const struct stack_ops *ops);
void stack_memory_close(struct stack_memory *memory);
/* Registers a thread that runs strands, until the memory is closed. */
void stack_memory_join(struct stack_memory *memory, struct stack_user *user);

OWN_INLINE bool stack_memory_refuses(struct stack_user *user)
{
    return UNLIKELY(user->memory->seeded) && user->memory->ops->refuses(user);
}

/* Locks that are held for a few instructions. */
OWN_INLINE void stack_memory_lock(atomic_flag *lock, struct stack_user *user)
{
    while (atomic_flag_test_and_set_explicit(lock, memory_order_acquire)) /* [LK1] */
        user->memory->ops->await(user);
    arch_san_acquire(lock);
}

OWN_INLINE void stack_memory_unlock(atomic_flag *lock)
{
    arch_san_release(lock);
    atomic_flag_clear_explicit(lock, memory_order_release); /* [LK1] */
}

#endif
