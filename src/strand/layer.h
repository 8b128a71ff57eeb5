/*
 * A layer's part of a run: slabs, of which each thread has caches. src/run assembles the records of a run and of its
 * threads from the parts of all layers, and lists the layers in runtime.layers. A layer knows the offsets of its own
 * parts only.
 */
#ifndef STRAND_LAYER_H
#define STRAND_LAYER_H

#include <stddef.h>

struct slab_plan {
    size_t slab;                     /* where the struct slab lies in the record of a run */
    size_t cache;                    /* and its struct slab_cache in the record of a thread */
    size_t size;                     /* of an object, in bytes */
    void (*construct)(void *object); /* initialises the memory of an object once, or NULL */
};

/* The plan of the slab `name`, a member of both records. */
#define SLAB_PLAN(run, thread, name, size, construct)                                                                  \
    {                                                                                                                  \
        offsetof(run, name), offsetof(thread, name), size, construct                                                   \
    }

struct layer {
    const struct slab_plan *slabs;
    size_t slabs_count;
};

extern const struct layer core_layer;

#endif
