/*
 * Pins, and the life of control blocks and block records. The protocol block is in core.h and handle.h.
 */
#include "handle.h"

#include "misuse.h"

#include "exception.h"

#include <stdlib.h>

static bool try_pin(_Atomic uint64_t *word, uint64_t *old, bool shared)
{
    return (*old & WORD_PINS) != WORD_PINS && swap_word(word, old, *old + WORD_PIN, shared);
}

bool pin(struct thread *thread, _Atomic uint64_t *word, uint64_t serial)
{
    uint64_t old = atomic_load_explicit(word, memory_order_relaxed);
    while (word_serial(old) == serial && !(old & WORD_DEAD)) {
        if (try_pin(word, &old, thread->shared))
            return true;
        if ((old & WORD_PINS) == WORD_PINS) {
            driver_await(thread);
            old = atomic_load_explicit(word, memory_order_relaxed);
        }
    }
    return false;
}

/* Returns true if the memory was retired meanwhile and this was the last pin. */
static bool unpin(struct thread *thread, _Atomic uint64_t *word)
{
    uint64_t old = atomic_load_explicit(word, memory_order_relaxed), new;
    do {
        new = old - WORD_PIN;
        if ((new &WORD_DEAD) && !(new &WORD_PINS))
            new = word_freed(new);
    } while (!swap_word(word, &old, new, thread->shared));
    return new &WORD_FREE;
}

COLD bool word_retire_slow_(struct thread *thread, _Atomic uint64_t *word)
{
    uint64_t old = atomic_load_explicit(word, memory_order_relaxed), new;
    do
        new = old &WORD_PINS ? old | WORD_DEAD : word_freed(old);
    while (!swap_word(word, &old, new, thread->shared));
    return new &WORD_FREE;
}

struct cb *pin_cb(struct thread *thread, strand handle)
{
    struct cb *c = (struct cb *)(uintptr_t)handle.bits[0];
    if (!arch_in_handles(c) || !handle.bits[1])
        return NULL;
    if (!pin(thread, &c->word, handle.bits[1]))
        return NULL;
    if (UNLIKELY(c->own.pool != &thread->sub->pool))
        MISUSE_STRAND("a handle", c, "the strand is of another run");
    return c;
}

COLD void cb_clear(struct cb *c)
{
    free(c->extra);
    c->extra = NULL;
    note_release(atomic_exchange_explicit(&c->note, NULL, memory_order_acq_rel));
}

void unpin_cb(struct thread *thread, struct cb *c)
{
    if (unpin(thread, &c->word)) {
        cb_clear(c);
        cb_put(thread, c);
    }
}

struct scope *pin_scope(struct thread *thread, strand_scope handle)
{
    struct scope *scope = (struct scope *)(uintptr_t)handle.bits[0];
    if (!arch_in_handles(scope) || handle.bits[1] < 2)
        return NULL;
    if (!pin(thread, &scope->block.word, handle.bits[1] >> 1))
        return NULL;
    if (UNLIKELY(scope->block.owner->own.pool != &thread->sub->pool))
        MISUSE_SCOPE("a handle", scope, "the scope is of another run");
    return scope;
}

void unpin_scope(struct thread *thread, struct scope *scope)
{
    if (unpin(thread, &scope->block.word))
        slab_put(&worker_of(thread)->blocks, scope);
}

/* What holds of every free control block, from its making on, beside zeroes in tries, flight, note and order; whoever
 * ends a strand leaves it so. */
void cb_construct(void *memory)
{
    struct cb *c = memory;
    fibre_init(&c->own, &c->member);
    c->wait.timer.node.place = HEAP_NOWHERE;
    c->wait.node.waiter = c;
    arch_note_release(c);
}
