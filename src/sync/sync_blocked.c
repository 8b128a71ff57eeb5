/*
 * What diagnostics print about this layer's reasons.
 */
#include "sync_blocked.h"

#include <stddef.h>

#define SYNC(name, words, ended_by, on) REASON(SYNC_REASONS, BLOCKED_##name, words, ended_by, on)

const struct blocked_reason sync_reasons[REASONS_OF_LAYER] = {
    SYNC(SEND, "sends to channel", NULL, ON_ADDRESS),
    SYNC(RECEIVE, "receives from channel", NULL, ON_ADDRESS),
    SYNC(SELECT, "waits for one of", NULL, ON_CASES),
    SYNC(MUTEX, "waits for mutex", NULL, ON_ADDRESS),
    SYNC(CONDITION, "waits for condition", NULL, ON_ADDRESS),
    SYNC(READ_LOCK, "waits to read under lock", NULL, ON_ADDRESS),
    SYNC(WRITE_LOCK, "waits to write under lock", NULL, ON_ADDRESS),
    SYNC(SEMAPHORE, "waits for semaphore", NULL, ON_ADDRESS),
    SYNC(EVENT, "waits for event", NULL, ON_ADDRESS),
    SYNC(BARRIER, "waits at barrier", NULL, ON_ADDRESS),
    SYNC(ONCE, "waits for once", NULL, ON_ADDRESS),
    SYNC(GROUP, "waits for group", NULL, ON_ADDRESS),
    SYNC(PERMIT, "waits for semaphore", NULL, ON_ADDRESS),
    SYNC(PORT, "receives from port", "the outside: a sender to the port, or its closer", ON_ADDRESS),
};
