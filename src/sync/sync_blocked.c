/*
 * What diagnostics print about this layer's reasons.
 */
#include "sync_blocked.h"

#include <stddef.h>

const struct blocked_reason sync_reasons[REASONS_OF_LAYER] = {
    REASON(SYNC, SEND, "sends to channel", NULL, NULL, ON_ADDRESS),
    REASON(SYNC, RECEIVE, "receives from channel", NULL, NULL, ON_ADDRESS),
    REASON(SYNC, SELECT, "waits for one of", NULL, NULL, ON_CASES),
    REASON(SYNC, MUTEX, "waits for mutex", NULL, NULL, ON_ADDRESS),
    REASON(SYNC, CONDITION, "waits for condition", NULL, NULL, ON_ADDRESS),
    REASON(SYNC, READ_LOCK, "waits to read under lock", NULL, NULL, ON_ADDRESS),
    REASON(SYNC, WRITE_LOCK, "waits to write under lock", NULL, NULL, ON_ADDRESS),
    REASON(SYNC, SEMAPHORE, "waits for semaphore", NULL, NULL, ON_ADDRESS),
    REASON(SYNC, EVENT, "waits for event", NULL, NULL, ON_ADDRESS),
    REASON(SYNC, BARRIER, "waits at barrier", NULL, NULL, ON_ADDRESS),
    REASON(SYNC, ONCE, "waits for once", NULL, NULL, ON_ADDRESS),
    REASON(SYNC, GROUP, "waits for group", NULL, NULL, ON_ADDRESS),
    REASON(SYNC, PERMIT, "waits for semaphore", NULL, NULL, ON_ADDRESS),
    REASON(SYNC, PORT, "receives from port", "the outside: a sender to the port, or its closer", "messages of ports",
           ON_ADDRESS),
};
