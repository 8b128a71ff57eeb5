/*
 * What this layer adds to a run and to its threads.
 */
#ifndef SYNC_SYNC_LAYER_H
#define SYNC_SYNC_LAYER_H

#include "../strand/core.h"
#include "sync_blocked.h"

enum { OFFERS_SIZE = 448 }; /* bytes of the records that selects wait with: select.c */

struct sync_run {
    struct runtime runtime;
    struct slab offers;
};

struct sync_thread {
    struct worker worker;
    struct slab_cache offers;
};

extern const struct layer sync_layer;

static inline struct sync_thread *sync_thread_of(struct thread *thread)
{
    return (struct sync_thread *)thread;
}

#endif
