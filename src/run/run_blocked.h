/*
 * This layer's reasons for which strands block: src/strand/blocked.h.
 */
#ifndef RUN_RUN_BLOCKED_H
#define RUN_RUN_BLOCKED_H

#include "../strand/blocked.h"

enum { RUN_REASONS = 4 * REASONS_OF_LAYER, BLOCKED_QUIESCENCE = RUN_REASONS, BLOCKED_STOPPING };
extern const struct blocked_reason run_reasons[REASONS_OF_LAYER];

#endif
