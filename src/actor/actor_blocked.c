/*
 * What diagnostics print about this layer's reasons.
 */
#include "actor_blocked.h"

#include <stddef.h>

const struct blocked_reason actor_reasons[REASONS_OF_LAYER] = {
    REASON(ACTOR, MAILBOX, "waits for room in the mailbox of an actor", NULL, NULL, ON_ADDRESS),
    REASON(ACTOR, ASK, "waits for the answer of an actor", NULL, NULL, ON_ADDRESS),
    REASON(ACTOR, ACTOR_END, "waits for the end of an actor", NULL, NULL, ON_ADDRESS),
    REASON(ACTOR, ACTOR, "waits for actors that have messages", NULL, NULL, ON_NOTHING),
};
