/*
 * Handles: values that go stale. A handle is the address of a control block (or scope record) and its serial; the memory is
 * never unmapped, so a stale handle reads another serial, or none.
 */
#ifndef STRAND_HANDLE_H
#define STRAND_HANDLE_H

#include "core.h"

#include <string.h>

/* bits[1] of a scope's handle: serial << 1 | open. */
static inline strand handle_of(struct cb *c)
{
    return (strand){{(uint64_t)(uintptr_t)c, cb_id(c)}};
}

/* The control block, if the handle is not stale at this moment. For somebody who keeps it from ending, or pins it next. */
static inline struct cb *handle_cb(strand handle)
{
    struct cb *c = (struct cb *)(uintptr_t)handle.bits[0];
    if (UNLIKELY(!arch_in_handles(c)))
        return NULL;
    return LIKELY(word_serial(atomic_load_explicit(&c->word, memory_order_relaxed)) == handle.bits[1]) ? c : NULL;
}

static inline struct scope *handle_scope(strand_scope handle)
{
    struct scope *scope = (struct scope *)(uintptr_t)handle.bits[0];
    if (UNLIKELY(!arch_in_handles(scope)))
        return NULL;
    uint64_t word = atomic_load_explicit(&scope->block.word, memory_order_relaxed);
    return LIKELY(word_serial(word) == handle.bits[1] >> 1) ? scope : NULL;
}

static inline bool handle_is_open(strand_scope handle)
{
    return handle.bits[1] & 1;
}

/* Keep the memory of a stranger's strand or scope from being given to somebody else; false if the handle is stale. A pin is
 * held across a few instructions, never across a suspension. */
bool pin(struct thread *thread, _Atomic uint64_t *word, uint64_t serial);
struct cb *pin_cb(struct thread *thread, strand handle);
void unpin_cb(struct thread *thread, struct cb *c);
struct scope *pin_scope(struct thread *thread, strand_scope handle);
void unpin_scope(struct thread *thread, struct scope *scope);

/* Retire a word: its memory is the caller's to give back if true; else the last pin's holder does it. */
bool word_retire(struct thread *thread, _Atomic uint64_t *word);

struct cb *cb_new(struct thread *thread); /* NULL: no memory */
void cb_free(struct thread *thread, struct cb *c);
void cb_construct(void *memory);

#endif
