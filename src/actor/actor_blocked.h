/*
 * This layer's reasons for which strands block: src/strand/blocked.h.
 */
#ifndef ACTOR_ACTOR_BLOCKED_H
#define ACTOR_ACTOR_BLOCKED_H

#include "../strand/blocked.h"

enum {
    ACTOR_REASONS = 3 * REASONS_OF_LAYER,
    BLOCKED_MAILBOX = ACTOR_REASONS,
    BLOCKED_ASK,
    BLOCKED_ACTOR_END,
    BLOCKED_ACTOR /* a runner strand, while no actor has a message */
};
extern const struct blocked_reason actor_reasons[REASONS_OF_LAYER];

#endif
