/*
 * What diagnostics print about this layer's reasons.
 */
#include "run_blocked.h"

#include <stddef.h>

#define RUN(name, words, ended_by, on) REASON(RUN_REASONS, BLOCKED_##name, words, ended_by, on)

const struct blocked_reason run_reasons[REASONS_OF_LAYER] = {
    RUN(QUIESCENCE, "waits for quiescence", "all strands that still run, sleep, or wait for the outside", ON_NOTHING),
    RUN(STOPPING, "waits for the run to be shut down", "the outside, or a strand: a caller of strand_run_stop",
        ON_NOTHING),
};
