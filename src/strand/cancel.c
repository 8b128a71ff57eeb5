/*
 * Cancelling one strand. The rules are in cancel.h and docs/protocols/interrupt.md.
 */
#include "cancel.h"

#include "cancel_reason.h"
#include "exception.h"
#include "handle.h"
#include "interrupt.h"
#include "misuse.h"
#include "scope.h"

struct member *cancel_strand(struct thread *thread, struct cb *c, struct cancel_reason *reason, bool owned)
{
    uint64_t word = atomic_load_explicit(&c->word, memory_order_relaxed),
             flags = WORD_CANCELLED | (owned ? WORD_OWNED : 0);
    struct cancel_reason *none = NULL;
    if (reason && !(word & WORD_CANCELLED) && !atomic_load_explicit(&c->cancel_reason, memory_order_relaxed)) {
        cancel_reason_keep(reason);
        if (!atomic_compare_exchange_strong_explicit(&c->cancel_reason, &none, reason, memory_order_acq_rel,
                                                     memory_order_relaxed)) /* [PB1] */
            cancel_reason_release(reason);
    }
    while ((word & flags) != flags)
        if (swap_word(&c->word, &word, word | flags, thread->concurrent)) /* [HN3] [I1] */
            break;
    return word & WORD_CANCELLED ? NULL : interrupt_raise(c, 0, thread->concurrent);
}

void strand_cancel(strand s, const char *why)
{
    struct thread *thread = must_be_strand("strand_cancel");
    struct cb *me = current_of(thread);
    struct cb *c = handle_ref_cb(thread, s, "strand_cancel");
    if (!c)
        return; /* the strand is gone */
    /* Only a cancel by the owner of its scope makes the child one that may be left (WORD_OWNED), even after its end.
     * Only the owner changes the anchor. */
    struct scope *anchor = plain_load(&c->anchor, memory_order_relaxed);
    bool owned = anchor && block_owner(&anchor->block) == me && plain_load(&c->anchor, memory_order_relaxed) == anchor;
    bool over = atomic_load_explicit(&c->ends, memory_order_acquire) & ENDS_OVER; /* [E5] */
    struct cancel_reason *reason = over ? NULL : cancel_reason_new(thread, me, why);
    struct member *member = owned || !over ? cancel_strand(thread, c, reason, owned) : NULL;
    if (member)
        thread_ready(thread, member);
    cancel_reason_release(reason);
    handle_unref_cb(thread, c);
}
