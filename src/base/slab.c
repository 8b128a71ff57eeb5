/*
 * The slow path of slab.h: batches between a thread's cache and the slab, chunks between the slab and the process. The
 * lock is held for one batch at a time.
 */
#include "slab.h"

#include <errno.h> /* for the codes; errno itself is read in src/arch alone: tools/check-system.sh */

void slab_init(struct slab *slab, const struct slab_source *source, unsigned type, size_t size,
               void (*construct)(void *object))
{
    *slab = (struct slab){.source = source,
                          .type = type,
                          .size = size,
                          .construct = construct,
                          .next_count = SLAB_FIRST,
                          .lock = ATOMIC_FLAG_INIT};
}

static size_t first_offset(const struct slab *slab)
{
    (void)slab;
    return CACHE_LINE; /* the chunk's header has a cache line of its own */
}

void slab_close(struct slab *slab)
{
    while (slab->chunks) {
        struct slab_chunk *chunk = slab->chunks;
        size_t used = slab->bump ? (size_t)(slab->bump - (char *)chunk) : slab->source->chunk; /* the newest is first */
        slab->bump = NULL;
        slab->chunks = chunk->next;
        slab->source->give(slab->type, chunk, used);
    }
    slab->end = NULL;
    slab->batches = slab->loose = NULL;
}

static void lock(struct slab *slab)
{
    while (atomic_flag_test_and_set_explicit(&slab->lock, memory_order_acquire)) /* [LK1] */
        slab->source->pause();
}

static void unlock(struct slab *slab)
{
    atomic_flag_clear_explicit(&slab->lock, memory_order_release); /* [LK1] */
}

static int more(struct slab *slab)
{
    void *memory;
    int error = slab->source->take(slab->type, &memory);
    if (error)
        return error;
    struct slab_chunk *chunk = memory;
    chunk->next = slab->chunks;
    plain_store(&chunk->slab, slab, memory_order_relaxed);
    plain_store(&slab->chunks, chunk, memory_order_release); /* [PB1] */
    slab->bump = (char *)memory + first_offset(slab);
    slab->end = (char *)memory + slab->source->chunk;
    return 0;
}

/* Make a new object, under the lock. */
static struct slab_object *cut(struct slab *slab)
{
    if ((size_t)(slab->end - slab->bump) < slab->size && more(slab) < 0)
        return NULL;
    struct slab_object *object = (struct slab_object *)(void *)slab->bump;
    if (slab->construct)
        slab->construct(object);
    plain_store(&slab->bump, slab->bump + slab->size, memory_order_release); /* [PB1] */
    return object;
}

/* Take a loose object, or else a new one, under the lock. */
static struct slab_object *take_one(struct slab *slab)
{
    struct slab_object *object = slab->loose;
    if (!object)
        return cut(slab);
    slab->loose = object->next;
    return object;
}

enum { AHEAD = 4 };

/* Set the look-ahead pointers while the objects are cached. The first object has no room for one, and no object is far
 * enough behind the last ones. */
static void look_ahead(struct slab_object *batch)
{
    struct slab_object *object = batch->next, *ahead = object;
    for (int i = 0; i < AHEAD; i++)
        ahead = ahead->next;
    for (; ahead; object = object->next, ahead = ahead->next)
        object->ahead = ahead;
}

/* Return a batch to the slab. */
static void give(struct slab_cache *cache, struct slab_object *batch)
{
    struct slab *slab = cache->slab;
    if (plain_load(&slab->crosses, memory_order_relaxed))
        look_ahead(batch);
    lock(slab);
    batch->next_batch = slab->batches;
    slab->batches = batch;
    slab->giver = cache;
    unlock(slab);
}

/* Take a batch from the slab: one that was returned, or else single objects. */
static uint32_t take(struct slab_cache *cache, struct slab_object **out)
{
    struct slab *slab = cache->slab;
    struct slab_object **tail = out;
    uint32_t count = 0;
    lock(slab);
    struct slab_object *batch = slab->batches;
    if (batch) {
        slab->batches = batch->next_batch;
        if (slab->giver != cache)
            plain_store(&slab->crosses, true, memory_order_relaxed);
    }
    for (struct slab_object *object; !batch && count < slab->next_count && (object = take_one(slab)); count++) {
        *tail = object;
        tail = &object->next;
    }
    if (!batch && slab->next_count < SLAB_BATCH)
        slab->next_count *= 2;
    unlock(slab);
    if (batch) {
        batch->ahead = batch->next;
        *out = batch;
        return SLAB_BATCH;
    }
    *tail = NULL;
    return count;
}

int slab_refill_(struct slab_cache *cache)
{
    if (cache->spare) {
        cache->free = cache->spare;
        cache->count = SLAB_BATCH;
        cache->spare = NULL;
    } else {
        cache->count = take(cache, &cache->free);
    }
    return cache->count ? 0 : -ENOMEM;
}

/* The cache has a whole batch: it becomes the spare one, and the former spare batch goes to the slab. */
void slab_set_aside_(struct slab_cache *cache)
{
    if (cache->spare)
        give(cache, cache->spare);
    cache->spare = cache->free;
    cache->free = NULL;
    cache->count = 0;
}

void slab_flush(struct slab_cache *cache)
{
    struct slab *slab = cache->slab;
    if (cache->count == SLAB_BATCH)
        slab_set_aside_(cache); /* the spare batch goes to the slab */
    struct slab_object *object = cache->free;
    if (cache->spare)
        give(cache, cache->spare);
    lock(slab);
    while (object) {
        struct slab_object *next = object->next;
        object->next = slab->loose;
        slab->loose = object;
        object = next;
    }
    unlock(slab);
    cache->spare = cache->free = NULL;
    cache->count = 0;
}

/* A chunk is published before the first object is cut from it, and `bump` advances after an object was made. So if the
 * `bump` that is read here lies outside of the newest chunk, it is older than the chunk: nothing has been cut from the
 * chunk yet, or all. */
void slab_each(struct slab *slab, void (*visit)(void *object, void *arg), void *arg)
{
    struct slab_chunk *chunk = plain_load(&slab->chunks, memory_order_acquire); /* [PB1] */
    uintptr_t bump = (uintptr_t)plain_load(&slab->bump, memory_order_acquire);  /* [PB1] */
    for (; chunk; chunk = chunk->next) {
        uintptr_t begin = (uintptr_t)chunk, end = begin + slab->source->chunk;
        if (bump >= begin && bump <= end)
            end = bump;
        for (uintptr_t at = begin + first_offset(slab); end - at >= slab->size && at < end; at += slab->size)
            visit((void *)at, arg);
    }
}
