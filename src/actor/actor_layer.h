/*
 * What this layer adds to a run and to its threads. Its parts lie behind those of src/sync.
 */
#ifndef ACTOR_ACTOR_LAYER_H
#define ACTOR_ACTOR_LAYER_H

#include "../sync/sync_layer.h"
#include "actor_blocked.h"

struct system;

/* Classes of actors, and of messages to them: EACH(class, bytes of an object). */
#define EACH_CELL_CLASS(EACH) EACH(0, 56) EACH(1, 64) EACH(2, 96) EACH(3, 128) EACH(4, 256)
#define EACH_ENVELOPE_CLASS(EACH) EACH(0, 64) EACH(1, 128)
#define SIZE_OF_CLASS(class, size) size,
enum { CELL_CLASSES = 5, ENVELOPE_CLASSES = 2 };
static const uint16_t cell_sizes[CELL_CLASSES] = {EACH_CELL_CLASS(SIZE_OF_CLASS)};
static const uint16_t envelope_sizes[ENVELOPE_CLASSES] = {EACH_ENVELOPE_CLASS(SIZE_OF_CLASS)};

enum { ACTIVATION_SIZE = 128, RUNNER_SIZE = 256, PROMISE_SIZE = 128 };

struct actor_run {
    struct sync_run sync;
    struct slab cells[CELL_CLASSES];         /* actors */
    struct slab activations;                 /* of ACTIVATION_SIZE bytes: of actors that are awake */
    struct slab runners;                     /* of RUNNER_SIZE bytes: the strands that run actors */
    struct slab promises;                    /* of PROMISE_SIZE bytes: answers that are awaited; handles of systems */
    struct slab envelopes[ENVELOPE_CLASSES]; /* messages to actors */
    atomic_flag lock;
    struct system *systems; /* the newest, under the lock: registry.c */
};

struct actor_thread {
    struct sync_thread sync;
    struct slab_cache cells[CELL_CLASSES], activations, runners, promises, envelopes[ENVELOPE_CLASSES];
};

extern const struct layer actor_layer;

static inline struct actor_run *actor_run_of(const struct thread *thread)
{
    return (struct actor_run *)thread->sub;
}

static inline struct actor_thread *actor_thread_of(struct thread *thread)
{
    return (struct actor_thread *)thread;
}

#endif
