/*
 * What this layer adds to a run and to its threads.
 */
#include "sync_layer.h"

static const struct slab_plan slabs[] = {SLAB_PLAN(struct sync_run, struct sync_thread, offers, OFFERS_SIZE, NULL)};

const struct layer sync_layer = {slabs, sizeof slabs / sizeof *slabs};
