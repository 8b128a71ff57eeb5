/*
 * What diagnostics print about this layer's reasons.
 */
#include "actor_blocked.h"

#include <stddef.h>

#define ACTOR(name, words, ended_by, on) REASON(ACTOR_REASONS, BLOCKED_##name, words, ended_by, on)

const struct blocked_reason actor_reasons[REASONS_OF_LAYER] = {
    ACTOR(MAILBOX, "waits for room in the mailbox of an actor", NULL, ON_ADDRESS),
    ACTOR(ASK, "waits for the answer of an actor", NULL, ON_ADDRESS),
    ACTOR(ACTOR_END, "waits for the end of an actor", NULL, ON_ADDRESS),
    ACTOR(ACTOR, "waits for actors that have messages", NULL, ON_NOTHING),
};
