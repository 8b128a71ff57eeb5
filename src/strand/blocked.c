/*
 * This layer's reasons for which strands block, and the look-up of the reasons of all layers.
 */
#include "core.h"

const struct blocked_reason core_reasons[REASONS_OF_LAYER] = {
    REASON(CORE, NOT, "runnable", NULL, NULL, ON_NOTHING),
    REASON(CORE, JOIN, "joins strand", NULL, NULL, ON_STRAND),
    REASON(CORE, JOIN_SCOPE, "joins its scope, waits for strand", NULL, NULL, ON_STRAND),
    REASON(CORE, WAIT, "waits for the end of strand", NULL, NULL, ON_STRAND),
    REASON(CORE, LEAVE, "leaves a scope, waits for strand", NULL, NULL, ON_STRAND),
    REASON(CORE, SLEEP, "sleeps", "time", NULL, ON_INSTANT),
    REASON(CORE, SCOPE, "waits for the end of any child", NULL, NULL, ON_NOTHING),
    REASON(CORE, STATIC, "waits for a static object, with the guard", "the strand or thread that constructs the object",
           NULL, ON_ADDRESS),
    REASON(CORE, POOL, "waits for the end of pool", NULL, NULL, ON_POOL),
};

const struct blocked_reason *blocked_reason(const struct runtime *runtime, unsigned blocked)
{
    static const struct blocked_reason unknown = {.words = ""};
    unsigned layer = blocked / REASONS_OF_LAYER;
    const struct blocked_reason *of_layer = layer < LAYERS_WITH_REASONS ? runtime->reasons[layer] : NULL;
    return of_layer && of_layer[blocked % REASONS_OF_LAYER].words ? &of_layer[blocked % REASONS_OF_LAYER] : &unknown;
}
