/*
 * Cancelling one strand. The rules are in cancel.h and docs/protocols/interrupt.md.
 */
#include "cancel.h"

#include "exception.h"
#include "handle.h"
#include "interrupt.h"
#include "misuse.h"
#include "note.h"
#include "scope.h"

struct member *cancel_strand(struct thread *thread, struct cb *c, struct note *note, bool owned)
{
    uint64_t word = atomic_load_explicit(&c->word, memory_order_relaxed),
             flags = WORD_CANCELLED | (owned ? WORD_OWNED : 0);
    struct note *none = NULL;
    if (note && !(word & WORD_CANCELLED) && !atomic_load_explicit(&c->note, memory_order_relaxed)) {
        note_keep(note);
        if (!atomic_compare_exchange_strong_explicit(&c->note, &none, note, memory_order_acq_rel,
                                                     memory_order_relaxed)) /* [PB1] */
            note_release(note);
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
    struct cb *c = ref_cb(thread, s, "strand_cancel");
    if (!c)
        return; /* it is gone */
    /* Only an owner's cancel makes a child of its scope one that may be left, also after its end. The anchor is changed
     * by its owner only. */
    struct scope *anchor = plain_load(&c->anchor, memory_order_relaxed);
    bool owned = anchor && block_owner(&anchor->block) == me && plain_load(&c->anchor, memory_order_relaxed) == anchor;
    bool over = atomic_load_explicit(&c->ends, memory_order_acquire) & ENDS_OVER; /* [E5] */
    struct note *note = over ? NULL : note_new(thread, me, why);
    struct member *member = owned || !over ? cancel_strand(thread, c, note, owned) : NULL;
    if (member)
        thread_ready(thread, member);
    note_release(note);
    unref_cb(thread, c);
}
