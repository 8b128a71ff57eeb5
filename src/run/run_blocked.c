/*
 * What diagnostics print about this layer's reasons.
 */
#include "run_blocked.h"

#include <stddef.h>

const struct blocked_reason run_reasons[REASONS_OF_LAYER] = {
    REASON(RUN, QUIESCENCE, "waits for quiescence", "all strands that still run, sleep, or wait for the outside", NULL,
           ON_NOTHING),
    REASON(RUN, STOPPING, "waits for the run to be shut down", "the outside, or a strand: a caller of strand_run_stop",
           NULL, ON_NOTHING),
};
