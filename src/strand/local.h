/*
 * Strand-local values: an immutable list of bindings, shared with the children that were spawned under them.
 */
#ifndef STRAND_LOCAL_H
#define STRAND_LOCAL_H

#include "core.h"

struct local {
    struct local *outer;
    const strand_key *key;
    void *value;
    _Atomic uint32_t refs;
};

struct local *locals_keep(struct local *local);
void locals_release_slow_(struct local *local);

static inline void locals_release(struct local *local)
{
    if (UNLIKELY(local != NULL))
        locals_release_slow_(local);
}

#endif
