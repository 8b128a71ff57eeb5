/*
 * The slow side of slab.h: batches between a thread's cache and the slab, chunks between the slab and the process.
 * The lock is held for one batch at a time.
 */
#include "slab.h"

#include <errno.h>

void slab_init(struct slab *slab, const struct slab_source *source, size_t size, void (*construct)(void *object))
{
    *slab = (struct slab){.source = source, .size = size, .construct = construct, .lock = ATOMIC_FLAG_INIT};
}

static size_t first_offset(const struct slab *slab)
{
    (void)slab;
    return CACHE_LINE; /* the chunk's header has a line of its own */
}

void slab_close(struct slab *slab)
{
    while (slab->chunks) {
        struct slab_chunk *chunk = slab->chunks;
        slab->chunks = chunk->next;
        slab->source->give(chunk);
    }
    slab->bump = slab->end = NULL;
    slab->free = NULL;
}

static void lock(struct slab *slab)
{
    while (atomic_flag_test_and_set_explicit(&slab->lock, memory_order_acquire))
        slab->source->pause();
}

static void unlock(struct slab *slab)
{
    atomic_flag_clear_explicit(&slab->lock, memory_order_release);
}

static int more(struct slab *slab)
{
    void *memory;
    int error = slab->source->take(&memory);
    if (error)
        return error;
    struct slab_chunk *chunk = memory;
    chunk->next = slab->chunks;
    slab->chunks = chunk;
    slab->bump = (char *)memory + first_offset(slab);
    slab->end = (char *)memory + slab->source->chunk;
    return 0;
}

/* One object from the slab: a free one, else a new one. */
static struct slab_object *take(struct slab *slab)
{
    struct slab_object *object = slab->free;
    if (object) {
        slab->free = object->next;
        return object;
    }
    if ((size_t)(slab->end - slab->bump) < slab->size && more(slab) < 0)
        return NULL;
    object = (struct slab_object *)(void *)slab->bump;
    slab->bump += slab->size;
    if (slab->construct)
        slab->construct(object);
    return object;
}

int slab_refill_(struct slab_cache *cache)
{
    struct slab *slab = cache->slab;
    struct slab_object *first = NULL, **tail = &first;
    uint32_t count = 0;
    lock(slab);
    for (struct slab_object *object; count < SLAB_BATCH && (object = take(slab)); count++) {
        *tail = object;
        tail = &object->next;
    }
    unlock(slab);
    *tail = NULL;
    cache->free = first;
    cache->count = count;
    return count ? 0 : -ENOMEM;
}

void slab_spill_(struct slab_cache *cache)
{
    struct slab_object *first = cache->free, *last = first;
    uint32_t count = cache->count / 2;
    for (uint32_t i = 1; i < count; i++)
        last = last->next;
    cache->free = last->next;
    cache->count -= count;
    lock(cache->slab);
    last->next = cache->slab->free;
    cache->slab->free = first;
    unlock(cache->slab);
}

void slab_each(struct slab *slab, void (*visit)(void *object, void *arg), void *arg)
{
    lock(slab);
    for (struct slab_chunk *chunk = slab->chunks; chunk; chunk = chunk->next) {
        char *end = chunk == slab->chunks ? slab->bump : (char *)chunk + slab->source->chunk;
        for (char *at = (char *)chunk + first_offset(slab); (size_t)(end - at) >= slab->size; at += slab->size)
            visit(at, arg);
    }
    unlock(slab);
}
