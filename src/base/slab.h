/*
 * Slab allocator: objects of one size, cut from chunks. A slab belongs to a run. Every thread takes from its own cache,
 * and the caches exchange whole batches with the slab, so that no thread walks through objects that are not in its
 * processor's caches. If one thread returns what another takes, each object of a batch also points to one some places
 * behind it, for prefetching: following the links alone would miss the cache at each object. Memory comes from a chunk
 * source that never unmaps, and gives a chunk to slabs of one type only. So the address of an object stays readable for
 * ever, and stays that of an object. The first 8 bytes belong to the object's owner also while the object is free (a
 * word that shows whether a handle is stale); the next two words link free objects.
 *
 * Callers: slab_init, slab_close: one thread. slab_get, slab_put: the thread that owns the cache.
 */
#ifndef BASE_SLAB_H
#define BASE_SLAB_H

#include "atomic.h"
#include "base.h"

struct slab_object {
    uint64_t word;
    struct slab_object *next;
    union {
        struct slab_object *ahead;      /* the object to prefetch when this one is taken */
        struct slab_object *next_batch; /* set in the first object of a batch */
    };
};

/* The source of chunks. A chunk keeps its type for ever. */
struct slab_source {
    size_t chunk; /* bytes of a chunk, which is aligned to its size */
    int (*take)(unsigned type, void **chunk);
    void (*give)(unsigned type, void *chunk, size_t used); /* nothing was written beyond its first `used` bytes */
    void (*pause)(void);                                   /* called in the spin loop of the slab's lock */
};

struct slab;
struct slab_chunk {
    struct slab_chunk *next;
    struct slab *slab; /* NULL: a free chunk */
};

struct slab {
    const struct slab_source *source;
    unsigned type;                   /* equal for slabs of the same objects, and different for all others */
    size_t size;                     /* of an object; a multiple of 64 */
    void (*construct)(void *object); /* once per object and chunk, on zeroed memory */
    struct slab_chunk *chunks;       /* all chunks */
    char *bump, *end;                /* the part of the newest chunk that was never handed out */
    uint32_t next_count;             /* how many new objects are cut at once: few at first, a batch in the end */
    struct slab_object *batches;     /* returned by the caches */
    struct slab_object *loose;       /* objects of incomplete batches */
    struct slab_cache *giver;        /* the cache that returned the last batch */
    bool crosses;                    /* a cache has taken another's batch: look-ahead pointers are set */
    atomic_flag lock;
};

struct slab_cache {
    struct slab *slab;
    struct slab_object *free;
    struct slab_object *spare; /* a whole batch, or NULL */
    uint32_t count;            /* length of `free`: a batch at most */
};

void slab_init(struct slab *slab, const struct slab_source *source, unsigned type, size_t size,
               void (*construct)(void *object));
/* Return all chunks, even if objects are still in use. */
void slab_close(struct slab *slab);
int slab_refill_(struct slab_cache *cache);
void slab_set_aside_(struct slab_cache *cache);
/* Return all objects of a cache that is not needed for now to the slab. */
void slab_flush(struct slab_cache *cache);
/* Call visit for every object that was cut before, in use or free. It may also see objects that are being cut, some as
 * zeroed memory. Lock-free; any thread. */
void slab_each(struct slab *slab, void (*visit)(void *object, void *arg), void *arg);

/* Whether an address in memory of this source lies in one of the slab's objects; its chunk may have changed hands. Any
 * thread. */
static inline bool slab_has(const struct slab *slab, const void *at)
{
    const struct slab_chunk *chunk = (const struct slab_chunk *)((uintptr_t)at & ~(uintptr_t)(slab->source->chunk - 1));
    return plain_load(&chunk->slab, memory_order_relaxed) == slab;
}

enum { SLAB_BATCH = 128, SLAB_FIRST = 8 };

/* Returns NULL if there is no memory. */
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

/* Whether slab_put has to hand objects to the slab first. */
OWN_INLINE bool slab_is_full(const struct slab_cache *cache)
{
    return cache->count == SLAB_BATCH;
}

/* As slab_put, for a cache that is not full. */
OWN_INLINE void slab_put_with_room(struct slab_cache *cache, void *memory)
{
    struct slab_object *object = memory;
    object->next = object->ahead = cache->free;
    cache->free = object;
    cache->count++;
}

OWN_INLINE void slab_put(struct slab_cache *cache, void *memory)
{
    if (UNLIKELY(slab_is_full(cache)))
        slab_set_aside_(cache);
    slab_put_with_room(cache, memory);
}

#endif
