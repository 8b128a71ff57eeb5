/*
 * This layer's reasons for which strands block, and the look-up of the reasons of all layers.
 */
#include "core.h"

#define CORE(name, words, ended_by, on) REASON(CORE_REASONS, BLOCKED_##name, words, ended_by, on)

const struct blocked_reason core_reasons[REASONS_OF_LAYER] = {
    CORE(NOT, "runnable", NULL, ON_NOTHING),
    CORE(JOIN, "joins strand", NULL, ON_STRAND),
    CORE(JOIN_SCOPE, "joins its scope, waits for strand", NULL, ON_STRAND),
    CORE(WAIT, "waits for the end of strand", NULL, ON_STRAND),
    CORE(LEAVE, "leaves a scope, waits for strand", NULL, ON_STRAND),
    CORE(SLEEP, "sleeps", "time", ON_INSTANT),
    CORE(SCOPE, "waits for the end of any child", NULL, ON_NOTHING),
    CORE(STATIC, "waits for a static object, with the guard", "the strand or thread that constructs the object",
         ON_ADDRESS),
    CORE(POOL, "waits for the end of pool", NULL, ON_POOL),
};

const struct blocked_reason *blocked_reason(const struct runtime *runtime, unsigned blocked)
{
    static const struct blocked_reason unknown = {.words = ""};
    unsigned layer = blocked / REASONS_OF_LAYER;
    const struct blocked_reason *of_layer = layer < LAYERS_WITH_REASONS ? runtime->reasons[layer] : NULL;
    return of_layer && of_layer[blocked % REASONS_OF_LAYER].words ? &of_layer[blocked % REASONS_OF_LAYER] : &unknown;
}
