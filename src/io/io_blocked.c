/*
 * What diagnostics print about this layer's reasons.
 */
#include "io_blocked.h"

#include <stddef.h>

#define IO(name, words, ended_by, on) REASON(IO_REASONS, BLOCKED_##name, words, ended_by, on)

const struct blocked_reason io_reasons[REASONS_OF_LAYER] = {
    IO(OFFLOAD, "waits for an offloaded call", "the outside: the function that was called, on a thread of a crew",
       ON_NOTHING),
    IO(CREW, "waits for the end of a crew", "the outside: functions that run on threads of the crew", ON_NOTHING),
    IO(DESCRIPTOR, "waits for descriptor", "the outside: the other side of the descriptor", ON_DESCRIPTOR),
    IO(SIGNAL, "waits for signals", NULL, ON_NOTHING),
};
