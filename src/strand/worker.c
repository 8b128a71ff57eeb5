/*
 * This layer's part of each thread of a run, and the slabs of the run, of which each thread has caches.
 */
#include "worker.h"

#include "cxx.h"
#include "end.h"
#include "exception.h"

#include <errno.h>

#define SLAB(name, size, construct) SLAB_PLAN(struct runtime, struct worker, name, size, construct)

static const struct slab_plan slabs[] = {
    SLAB(cbs, CB_SIZE, cb_construct),
    SLAB(guests, GUEST_SIZE, cb_construct_guest),
    SLAB(blocks, (sizeof(union any_block) + 63) & ~(size_t)63, NULL),
    SLAB(objects, OBJECT_SIZE, NULL),
    SLAB(tickets, TICKET_SIZE, NULL),
};

const struct layer core_layer = {slabs, sizeof slabs / sizeof *slabs};

/* ---- threads --------------------------------------------------------------------------------------------- */

static struct slab *slab_at(struct runtime *runtime, const struct slab_plan *plan)
{
    return (struct slab *)(void *)((char *)runtime + plan->slab);
}

static struct slab_cache *cache_at(struct worker *worker, const struct slab_plan *plan)
{
    return (struct slab_cache *)(void *)((char *)worker + plan->cache);
}

/* Gives the record of a thread its caches of a layer's slabs. */
static void open_caches(struct worker *worker, struct runtime *runtime, const struct layer *layer)
{
    for (size_t i = 0; i < layer->slabs_count; i++)
        cache_at(worker, &layer->slabs[i])->slab = slab_at(runtime, &layer->slabs[i]);
}

void worker_flush(struct worker *worker)
{
    for (const struct layer *const *layer = runtime_of(&worker->thread)->layers; *layer; layer++)
        for (size_t i = 0; i < (*layer)->slabs_count; i++)
            slab_flush(cache_at(worker, &(*layer)->slabs[i]));
}

void worker_open_outside(struct worker *worker, struct runtime *runtime)
{
    struct thread *thread = &worker->thread;
    thread->sub = &runtime->sub;
    thread->stacks.memory = &runtime->sub.memory;
    thread->pool = &runtime->sub.pool;
    thread->concurrent = true;
    thread->index = -1;
    open_caches(worker, runtime, &core_layer);
}

int worker_begin(struct thread *thread)
{
    struct worker *worker = worker_of(thread);
    struct runtime *runtime = runtime_of(thread);
    for (const struct layer *const *layer = runtime->layers; *layer; layer++)
        open_caches(worker, runtime, *layer);
    if (exception_reserve_open(worker) == 0)
        return 0;
    exception_reserve_close(worker);
    return -ENOMEM;
}

void worker_end(struct thread *thread)
{
    exception_reserve_close(worker_of(thread));
}

/* ---- slabs of a run -------------------------------------------------------------------------------------- */

static const struct slab_source chunks = {ARCH_CHUNK, arch_chunk_take, arch_chunk_give, arch_pause};

void worker_open_slabs(struct runtime *runtime)
{
    unsigned type = 0; /* a number per slab: each has its own list of chunks */
    for (const struct layer *const *layer = runtime->layers; *layer; layer++)
        for (size_t i = 0; i < (*layer)->slabs_count; i++) {
            const struct slab_plan *plan = &(*layer)->slabs[i];
            ASSERT(type < ARCH_CHUNK_TYPES);
            slab_init(slab_at(runtime, plan), &chunks, type++, plan->size, plan->construct);
        }
}

void worker_close_slabs(struct runtime *runtime)
{
    for (const struct layer *const *layer = runtime->layers; *layer; layer++)
        for (size_t i = 0; i < (*layer)->slabs_count; i++)
            slab_close(slab_at(runtime, &(*layer)->slabs[i]));
}
