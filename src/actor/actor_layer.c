/*
 * What this layer adds to a run and to its threads.
 */
#include "actor_layer.h"

#define SLAB(name, size) SLAB_PLAN(struct actor_run, struct actor_thread, name, size, NULL)
#define CELLS(class, size) SLAB(cells[class], size),
#define ENVELOPES(class, size) SLAB(envelopes[class], size),

static const struct slab_plan slabs[] = {EACH_CELL_CLASS(CELLS) EACH_ENVELOPE_CLASS(ENVELOPES)
                                             SLAB(activations, ACTIVATION_SIZE),
                                         SLAB(runners, RUNNER_SIZE), SLAB(promises, PROMISE_SIZE)};

const struct layer actor_layer = {slabs, sizeof slabs / sizeof *slabs};
