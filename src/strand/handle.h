/*
 * Handles: values that go stale. A handle is the address of a control block (or scope record) and its serial; the
 * memory is never unmapped, so a stale handle reads another serial, or none. arch_in_handles keeps an address that was
 * damaged from being read where no memory is.
 *
 * STATE     word: serial << WORD_SERIAL | bits of the strand (cancelled, ...) | DEAD | FREE | pins.
 * INVARIANTS [HN1] what is pinned is not given away: the party that retires it, or else the last one to unpin it, frees
 *           it, once. [HN2] a party that finds a serial finds what belongs to it complete. [HN3] no change of the word
 *           is lost.
 * ORDERING  each change of a word that others know is a compare-and-swap, or another atomic update [HN3]. Retiring and
 *           unpinning release, and the swap that frees acquires: all uses of a life happen before the next one. A party
 *           that finds a handle stale acquires the word too: it sees what the strand did [HN1]. The word of a new life
 *           is stored by release, and acquired by pins and dumps [HN2].
 * TESTED BY tests/models/end.pml, tests/models/scope.pml.
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

/* The control block, if the handle is not stale at this moment. For somebody who keeps it from ending, or pins it next.
 */
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

/* Whether what stands behind a handle is of the caller's run. Of another's nothing else may be looked at but the word:
 * that run may be giving it back. */
static inline bool cb_is_ours(struct thread *thread, const struct cb *c)
{
    struct runtime *runtime = runtime_of(thread);
    return LIKELY(slab_has(&runtime->cbs, c)) || slab_has(&runtime->guests, c);
}

static inline bool scope_is_ours(struct thread *thread, const struct scope *scope)
{
    return LIKELY(slab_has(&runtime_of(thread)->blocks, scope));
}

/* Of a block that may have been left meanwhile and belong to somebody else; it is the caller's only if that is still
 * so. */
static inline struct cb *block_owner(const struct block *block)
{
    return plain_load(&block->owner, memory_order_relaxed);
}

static inline bool handle_is_open(strand_scope handle)
{
    return handle.bits[1] & 1;
}

/* Keep the memory of a stranger's strand or scope from being given to somebody else; false if the handle is stale. A
 * pin is held across a few instructions, never across a suspension. */
bool pin(struct thread *thread, _Atomic uint64_t *word, uint64_t serial);
/* The same of a word that threads outside of the run change too, namely a pool's: the change is atomic even in a run of
 * one thread. thread: NULL on a plain thread. Every pin of such a word goes through this function or the next one. */
bool pin_with_outsiders(struct thread *thread, _Atomic uint64_t *word, uint64_t serial);
/* As pin_with_outsiders, but without waiting for a free pin: the caller may be a signal handler that has interrupted
 * the holder of one. 0; -ESRCH: the handle is stale; -EAGAIN: all pins are taken. */
int pin_at_once(_Atomic uint64_t *word, uint64_t serial);
/* True if the memory was retired meanwhile and this was the last pin: it is the caller's to give back. */
bool unpin(struct thread *thread, _Atomic uint64_t *word);
/* NULL: it is gone. Of another run: misuse of `function`. */
struct cb *pin_cb(struct thread *thread, strand handle, const char *function);
void unpin_cb(struct thread *thread, struct cb *c);
struct scope *pin_scope(struct thread *thread, strand_scope handle, const char *function);
void unpin_scope(struct thread *thread, struct scope *scope);

/* Retire a word that is pinned: true if its memory is the caller's to give back after all; else the last pin's holder
 * does it. */
bool word_retire_slow_(struct thread *thread, _Atomic uint64_t *word);

static inline bool word_retire(struct thread *thread, _Atomic uint64_t *word)
{
    uint64_t old = atomic_load_explicit(word, memory_order_relaxed);
    if (LIKELY(!(old & WORD_PINS)) && LIKELY(swap_word(word, &old, word_freed(old), thread->concurrent))) /* [HN1] */
        return true;
    return word_retire_slow_(thread, word);
}

void cb_construct(void *memory);
void cb_construct_guest(void *memory);
/* NULL: nothing. wipes: its copied arguments may hold secrets. */
void extra_free(struct extra *extra, bool wipes);
/* Give back what a pin keeps beside the memory: the note, the name and the copied arguments. */
void cb_clear(struct cb *c);
/* The strand is over, or will not be: it is given back now, or by the last who keeps a pin. */
void cb_retire(struct thread *thread, struct cb *c);

static inline void cb_put(struct thread *thread, struct cb *c)
{
    if (UNLIKELY(atomic_load_explicit(&c->note, memory_order_relaxed) != NULL))
        cb_clear(c);
    bool guest = c->guest;
    if (UNLIKELY(guest))
        shared_fibre_release(thread, shared_of(c->member.fibre), SHARED_KNOWN);
    arch_note_release(c);
    if (UNLIKELY(guest))
        slab_put(&worker_of(thread)->guests, guest_of(&c->member));
    else
        slab_put(&worker_of(thread)->cbs, fibre_of(c));
}

/* Of one that has nothing but a note, at most. */
static inline void cb_free(struct thread *thread, struct cb *c)
{
    if (LIKELY(word_retire(thread, &c->word)))
        cb_put(thread, c);
}

static inline void cb_begin_(struct cb *c)
{
    arch_note_acquire(c);
    memset((char *)c + offsetof(struct cb, ends), 0, offsetof(struct cb, fn) - offsetof(struct cb, ends));
    plain_store(&c->anchor, NULL, memory_order_relaxed); /* who finds it takes that of its last life for none */
    ASSERT_SLOW(!c->extra);
}

/* From here on a dump may find it, and pin it: so its fibre is known. Pairs with is_live in src/debug/dump.c. */
static inline void cb_publish_(struct thread *thread, struct cb *c)
{
    atomic_store_explicit(&c->word, next_serial(worker_of(thread)) << WORD_SERIAL, memory_order_release); /* [HN2] */
}

/* What is not set here is set by the caller, or holds of every free control block (cb_construct). NULL: no memory. */
/* It does not count against options.max_strands any more. */
static inline void cb_uncount(struct thread *thread, struct cb *c)
{
    if (LIKELY(!c->counted))
        return;
    c->counted = false;
    atomic_fetch_sub_explicit(&runtime_of(thread)->live, 1, memory_order_relaxed);
}

static inline struct cb *cb_new(struct thread *thread)
{
    struct fibre *fibre = driver_slab_get(thread, &worker_of(thread)->cbs);
    if (UNLIKELY(!fibre))
        return NULL;
    struct cb *c = cb_in(fibre);
    cb_begin_(c);
    fibre->stack = NULL;
    plain_store(&fibre->home, NULL, memory_order_relaxed);
    plain_store(&fibre->pool, thread->pool, memory_order_relaxed); /* with who closes a pool */
    fibre->started = false;
    fibre->rank = 0;
    fibre->odd = 0;
    ASSERT_SLOW(own_is_clean(own_of(c)));
    cb_publish_(thread, c);
    return c;
}

/* Of a strand that is to run on a shared fibre, of which it takes the references. */
struct cb *cb_new_guest(struct thread *thread, struct shared_fibre *shared);

#endif
