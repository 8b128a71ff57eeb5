/*
 * The reasons for which strands block, and what diagnostics print about each. Diagnostics only.
 *
 * A reason is a number of 8 bits: the upper four bits name the layer, the lower four the reason in the table of that
 * layer. Each layer lists its own reasons in its header *blocked.h; src/run registers the tables in runtime.reasons.
 */
#ifndef STRAND_BLOCKED_H
#define STRAND_BLOCKED_H

/* What cb.blocked_on is, and how diagnostics print it after the words. */
enum blocked_on {
    ON_NOTHING, /* nothing is printed */
    ON_STRAND,  /* a strand's number */
    ON_INSTANT,
    ON_POOL, /* the record of a pool's handle */
    ON_DESCRIPTOR,
    ON_CASES, /* the number of a select's cases */
    ON_ADDRESS
};

struct blocked_reason {
    const char *words; /* printed before the object: "waits for mutex" */
    /* What ends the wait, where no strand can be named: "time". NULL: the object says it. */
    const char *ended_by;
    /* A wait for the outside, in the plural, as reports count such waits: "descriptors". NULL: not for the outside. */
    const char *outside;
    enum blocked_on on;
};

enum { REASONS = 256, REASONS_OF_LAYER = 16, LAYERS_WITH_REASONS = REASONS / REASONS_OF_LAYER };

/* An entry of a layer's table: REASON(IO, SIGNAL, ...) is that of BLOCKED_SIGNAL. */
#define REASON(layer, name, words, ended_by, outside, on)                                                              \
    [BLOCKED_##name - layer##_REASONS] = {words, ended_by, outside, on}

/* This layer's. */
enum {
    CORE_REASONS = 0,
    BLOCKED_NOT = CORE_REASONS,
    BLOCKED_JOIN,
    BLOCKED_JOIN_SCOPE,
    BLOCKED_WAIT,
    BLOCKED_LEAVE,
    BLOCKED_SLEEP,
    BLOCKED_SCOPE,
    BLOCKED_STATIC,
    BLOCKED_POOL
};
extern const struct blocked_reason core_reasons[REASONS_OF_LAYER];

struct runtime;
/* Returns the entry of a reason; one with the words "" for a number that no layer has. */
const struct blocked_reason *blocked_reason(const struct runtime *runtime, unsigned blocked);

#endif
