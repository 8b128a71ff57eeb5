/*
 * What diagnostics print about this layer's reasons.
 */
#include "io_blocked.h"

#include <stddef.h>

const struct blocked_reason io_reasons[REASONS_OF_LAYER] = {
    REASON(IO, OFFLOAD, "waits for an offloaded call",
           "the outside: the function that was called, on a thread of a crew", "offloaded calls", ON_NOTHING),
    REASON(IO, CREW, "waits for the end of a crew", "the outside: functions that run on threads of the crew",
           "crews that end", ON_NOTHING),
    REASON(IO, DESCRIPTOR, "waits for descriptor", "the outside: the other side of the descriptor", "descriptors",
           ON_DESCRIPTOR),
    REASON(IO, SIGNAL, "waits for signals", NULL, "signals", ON_NOTHING),
    REASON(IO, FILE, "waits for a file", "the outside: the disk, or the server of the file system", "calls on files",
           ON_NOTHING),
    REASON(IO, DATE, "waits for a date", "the outside: the system's clock", "dates", ON_NOTHING),
};
