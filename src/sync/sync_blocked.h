/*
 * This layer's reasons for which strands block: src/strand/blocked.h.
 */
#ifndef SYNC_SYNC_BLOCKED_H
#define SYNC_SYNC_BLOCKED_H

#include "../strand/blocked.h"

enum {
    SYNC_REASONS = 1 * REASONS_OF_LAYER,
    BLOCKED_SEND = SYNC_REASONS,
    BLOCKED_RECEIVE,
    BLOCKED_SELECT,
    BLOCKED_MUTEX,
    BLOCKED_CONDITION,
    BLOCKED_READ_LOCK,
    BLOCKED_WRITE_LOCK,
    BLOCKED_SEMAPHORE,
    BLOCKED_EVENT,
    BLOCKED_BARRIER,
    BLOCKED_ONCE,
    BLOCKED_GROUP,
    BLOCKED_PERMIT, /* of a priority semaphore, or a limit */
    BLOCKED_PORT
};
extern const struct blocked_reason sync_reasons[REASONS_OF_LAYER];

#endif
