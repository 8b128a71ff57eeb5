/*
 * This layer's reasons for which strands block: src/strand/blocked.h.
 */
#ifndef IO_IO_BLOCKED_H
#define IO_IO_BLOCKED_H

#include "../strand/blocked.h"

enum {
    IO_REASONS = 2 * REASONS_OF_LAYER,
    BLOCKED_OFFLOAD = IO_REASONS,
    BLOCKED_CREW,
    BLOCKED_DESCRIPTOR,
    BLOCKED_SIGNAL, /* as a case of a select only */
    BLOCKED_FILE,
    BLOCKED_DATE
};
extern const struct blocked_reason io_reasons[REASONS_OF_LAYER];

#endif
