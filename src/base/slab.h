/*
 * Objects of one size, cut from chunks. A slab belongs to a sub-process; every thread takes from a cache of its own,
 * and the caches exchange whole batches with the slab, so that nobody walks through objects that have left his
 * processor's caches. Where one thread gives back what another takes, each object of a batch also tells of one that is
 * some places behind it: to go from one to the next would be to wait for the other processor at each. Memory comes from
 * a chunk source that never unmaps, and gives a chunk to slabs of one kind only, so an address of an object can be read
 * for ever, and is that of an object: the first 8 bytes of an object are its owner's also while it is free (a word that
 * says whether a handle is stale), the next two words link the free ones.
 *
 * Who may call: slab_init, slab_close: one thread. slab_get, slab_put: the thread that owns the cache.
 */
#ifndef BASE_SLAB_H
#define BASE_SLAB_H

#include "atomic.h"
#include "base.h"

struct slab_object {
    uint64_t word;
    struct slab_object *next;
    union {
        struct slab_object *ahead;      /* one to be fetched when this is taken */
        struct slab_object *next_batch; /* of a batch's first */
    };
};

/* A chunk that was of one kind is of that for ever. */
struct slab_source {
    size_t chunk; /* bytes of a chunk, aligned to itself */
    int (*take)(unsigned kind, void **chunk);
    void (*give)(unsigned kind, void *chunk, size_t used); /* nothing was written behind its first `used` bytes */
    void (*pause)(void);                                   /* in the spin loop of the slab's lock */
};

struct slab;
struct slab_chunk {
    struct slab_chunk *next;
    struct slab *slab; /* whose it is; NULL: nobody's */
};

struct slab {
    const struct slab_source *source;
    unsigned kind;                   /* the same for slabs of the same objects, and for no others */
    size_t size;                     /* of an object; a multiple of 64 */
    void (*construct)(void *object); /* once per object and chunk, on zeroed memory */
    struct slab_chunk *chunks;       /* all of them */
    char *bump, *end;                /* the part of the newest that was never handed out */
    uint32_t next_count;             /* how many new ones are cut at once: few at first, a batch in the end */
    struct slab_object *batches;     /* what the caches gave back */
    struct slab_object *loose;       /* less than a batch each */
    struct slab_cache *giver;        /* of the last batch that was given back */
    bool crosses;                    /* a cache has got what another had: batches are to be looked ahead in */
    atomic_flag lock;
};

struct slab_cache {
    struct slab *slab;
    struct slab_object *free;
    struct slab_object *spare; /* a whole batch, or NULL */
    uint32_t count;            /* in `free`: a batch at most */
};

void slab_init(struct slab *slab, const struct slab_source *source, unsigned kind, size_t size,
               void (*construct)(void *object));
/* All chunks go back, whatever is still in use. */
void slab_close(struct slab *slab);
int slab_refill_(struct slab_cache *cache);
void slab_set_aside_(struct slab_cache *cache);
/* The cache's owner needs it no more, for now: all goes back to the slab. */
void slab_flush(struct slab_cache *cache);
/* Calls visit for every object that was cut before, in use or free; some that are cut meanwhile, or bytes that will be
 * one, which are zero. Without a lock; any thread. */
void slab_each(struct slab *slab, void (*visit)(void *object, void *arg), void *arg);

/* Whether an address in memory of this source lies in one of the slab's objects, whoever has the memory now. Any
 * thread.
 */
static inline bool slab_has(const struct slab *slab, const void *at)
{
    const struct slab_chunk *chunk = (const struct slab_chunk *)((uintptr_t)at & ~(uintptr_t)(slab->source->chunk - 1));
    return plain_load(&chunk->slab, memory_order_relaxed) == slab;
}

enum { SLAB_BATCH = 128, SLAB_FIRST = 8 };

/* NULL: no memory. */
OWN_INLINE void *slab_get(struct slab_cache *cache)
{
    if (UNLIKELY(!cache->free) && slab_refill_(cache) < 0)
        return NULL;
    struct slab_object *object = cache->free;
    cache->free = object->next;
    cache->count--;
    __builtin_prefetch(object->ahead, 1);
    return object;
}

OWN_INLINE void slab_put(struct slab_cache *cache, void *memory)
{
    struct slab_object *object = memory;
    if (UNLIKELY(cache->count == SLAB_BATCH))
        slab_set_aside_(cache);
    object->next = object->ahead = cache->free;
    cache->free = object;
    cache->count++;
}

#endif
