/*
 * The reason of a cancel: the strand that cancelled, and why.
 */
#include "cancel_reason.h"

#include "../base/text.h"

#include <stdlib.h>

struct cancel_reason *cancel_reason_new(struct thread *thread, struct cb *who, const char *why)
{
    struct cancel_reason *reason = platform_malloc(thread, sizeof *reason);
    if (!reason)
        return NULL; /* the strand is cancelled without a reason */
    atomic_init(&reason->refs, 1);
    reason->who_id = who ? cb_id(who) : 0;
    reason->pruned = false;
    text_copy(reason->who, sizeof reason->who, who ? cb_name(who) : "the run itself");
    text_copy(reason->why, sizeof reason->why, why ? why : "");
    arch_san_release(reason);
    return reason;
}

struct cancel_reason *cancel_reason_keep(struct cancel_reason *reason)
{
    if (reason)
        atomic_fetch_add_explicit(&reason->refs, 1, memory_order_relaxed);
    return reason;
}

void cancel_reason_release(struct cancel_reason *reason)
{
    if (!reason)
        return;
    arch_san_release(reason);
    if (atomic_fetch_sub_explicit(&reason->refs, 1, memory_order_acq_rel) != 1) /* [RF1] */
        return;
    arch_san_acquire(reason);
    free(reason);
}

struct cancel_reason *cancel_reason_of(struct cb *c)
{
    struct cancel_reason *reason = atomic_load_explicit(&c->cancel_reason, memory_order_acquire); /* [PB1] */
    if (reason)
        arch_san_acquire(reason);
    return reason;
}
