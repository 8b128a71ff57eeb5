/*
 * Handles of strands and scopes. A handle is the address of a control block or a scope record, and the record's serial.
 * The memory is never unmapped, and each life of the record gets a new serial: so a stale handle is recognised by its
 * serial. arch_in_handles rejects damaged addresses before they are read.
 *
 * STATE     word: serial << WORD_SERIAL | bits of the strand (cancelled, ...) | DEAD | FREE | references.
 * INVARIANTS [HN1] a record with references is not freed: the thread that retires the record, or else the one that
 *           releases the last reference, frees it, once. [HN2] a thread that reads a serial sees the whole record of
 *           that life. [HN3] no change of the word is lost.
 * ORDERING  each change of a published word is a compare-and-swap, or another atomic update [HN3], except for two
 *           stores, which no other change competes with. One retires a plain scope, to which no other strand takes a
 *           reference. The other ends the retirement of a pool, which has set DEAD and waited for the references.
 *           Retiring a record and releasing a reference have release order, and the swap that frees acquires, as does
 *           the pool's wait: all uses of a life happen before the next life. A thread that finds a handle stale
 *           acquires the word too, so it sees what the strand did [HN1]. The word of a new life is stored by release,
 *           and acquired by handle_ref_take and by dumps [HN2]. Only the word of a block is stored relaxed, and before
 *           the other members: no dump searches for blocks. Another strand knows the new serial only from the handle.
 *           The owner makes the handle after the entry, and passing it on orders the two [HN2].
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

/* Returns the control block, or NULL if the handle is stale. The caller keeps the strand from ending, or takes a
 * reference next. */
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

/* Whether the object of a handle belongs to the caller's run. If not, only its word may be read: the other run may be
 * freeing it. */
static inline bool cb_is_ours(struct thread *thread, const struct cb *c)
{
    struct runtime *runtime = runtime_of(thread);
    return LIKELY(slab_has(&runtime->cbs, c)) || slab_has(&runtime->guests, c);
}

static inline bool scope_is_ours(struct thread *thread, const struct scope *scope)
{
    return LIKELY(slab_has(&runtime_of(thread)->blocks, scope));
}

/* The owner of a block that may have been left meanwhile and may serve another strand. The result is certain only if
 * it is the caller. */
static inline struct cb *block_owner(const struct block *block)
{
    return plain_load(&block->owner, memory_order_relaxed);
}

static inline bool handle_is_open(strand_scope handle)
{
    return handle.bits[1] & 1;
}

/* Takes a temporary reference to the record of another's strand or scope, which keeps the record from being reused.
 * Returns false if the handle is stale. The holder releases the reference after a few instructions, and does not
 * suspend before. */
bool handle_ref_take(struct thread *thread, _Atomic uint64_t *word, uint64_t serial);
/* As handle_ref_take, for a word that threads outside of the run change too, namely a pool's: the change is atomic even
 * in a run of one thread. thread is NULL on a plain thread. All references to such a record are taken by this function
 * or the next one. */
bool handle_ref_take_with_outsiders(struct thread *thread, _Atomic uint64_t *word, uint64_t serial);
/* As handle_ref_take_with_outsiders, but does not wait if the count of references is at its maximum: the caller may be
 * a signal handler that has interrupted the holder of one. Returns 0, -ESRCH if the handle is stale, or -EAGAIN if the
 * count is at its maximum. */
int handle_ref_take_at_once(_Atomic uint64_t *word, uint64_t serial);
/* Returns true if the record was retired and this was its last reference: then the caller frees it. */
bool handle_ref_release(struct thread *thread, _Atomic uint64_t *word);
/* Take a reference to the object of a handle. NULL if the handle is stale. Misuse of `function` if the object belongs
 * to another run. */
struct cb *handle_ref_cb(struct thread *thread, strand handle, const char *function);
void handle_unref_cb(struct thread *thread, struct cb *c);
struct scope *handle_ref_scope(struct thread *thread, strand_scope handle, const char *function);
void handle_unref_scope(struct thread *thread, struct scope *scope);

/* A noun whose objects lie in runtime.objects and have handles of which the serial is marked. */
struct handle_noun {
    const char *noun;
    uint64_t mark;
    size_t word;    /* the offset of the word in the record */
    bool outsiders; /* handle_ref_take_with_outsiders */
    /* Writes for a report of misuse where the object was made. Returns the buffer, or another text. */
    const char *(*made)(const void *object, char *buffer, size_t size);
};

__attribute__((noreturn)) void handle_misuse_other_(const struct handle_noun *noun, const char *function);
__attribute__((noreturn)) void handle_misuse_gone_(const struct handle_noun *noun, const uint64_t bits[2],
                                                   const char *function);
/* Misuse if the handle is not stale. */
void handle_misuse_foreign_(const struct handle_noun *noun, const uint64_t bits[2], const char *function);

/* Returns the record that a handle names, which may serve another object by now. Misuse of `function` if the handle is
 * of another noun. */
static inline __attribute__((always_inline)) void *handle_object(const struct handle_noun *noun, const uint64_t bits[2],
                                                                 const char *function)
{
    void *object = (void *)(uintptr_t)bits[0];
    if (UNLIKELY(!arch_in_handles(object)) || UNLIKELY(!(bits[1] & noun->mark)))
        handle_misuse_other_(noun, function);
    return object;
}

static inline _Atomic uint64_t *handle_word(const struct handle_noun *noun, const uint64_t bits[2])
{
    return (_Atomic uint64_t *)(uintptr_t)(bits[0] + noun->word);
}

/* As handle_object, and takes a reference. Misuse of `function` if the object is gone, or belongs to another run. */
static inline __attribute__((always_inline)) void *
handle_ref_object(struct thread *thread, const struct handle_noun *noun, const uint64_t bits[2], const char *function)
{
    void *object = handle_object(noun, bits, function);
    uint64_t serial = bits[1] ^ noun->mark;
    if (UNLIKELY(!slab_has(&runtime_of(thread)->objects, object)))
        handle_misuse_foreign_(noun, bits, function);
    bool taken = noun->outsiders ? handle_ref_take_with_outsiders(thread, handle_word(noun, bits), serial)
                                 : handle_ref_take(thread, handle_word(noun, bits), serial);
    if (UNLIKELY(!taken))
        handle_misuse_gone_(noun, bits, function);
    return object;
}

/* Retires a record that had references. Returns true if it has none any more, and the caller frees it; otherwise the
 * holder of the last reference frees it. */
bool handle_retire_slow_(struct thread *thread, _Atomic uint64_t *word);

static inline bool handle_retire(struct thread *thread, _Atomic uint64_t *word)
{
    uint64_t old = atomic_load_explicit(word, memory_order_relaxed);
    if (LIKELY(!(old & WORD_REFS)) && LIKELY(swap_word(word, &old, word_freed(old), thread->concurrent))) /* [HN1] */
        return true;
    return handle_retire_slow_(thread, word);
}

/* As handle_retire, for a record that no other strand may take a reference to. */
static inline void handle_retire_unshared(_Atomic uint64_t *word)
{
    uint64_t old = atomic_load_explicit(word, memory_order_relaxed);
    ASSERT_SLOW(!(old & WORD_REFS));
    atomic_store_explicit(word, word_freed(old), memory_order_release); /* [HN1] */
}

void cb_construct(void *memory);
void cb_construct_guest(void *memory);
/* Frees the copied name and arguments. extra may be NULL. wipes: the arguments may contain secrets. */
void cb_extra_free(struct extra *extra, bool wipes);
/* Frees what belongs to a control block: the reason, the name and the copied arguments. */
void cb_clear(struct cb *c);
/* The strand has ended, or was never started: frees the control block, or leaves that to the holder of the last
 * reference. */
void cb_retire(struct thread *thread, struct cb *c);

static inline __attribute__((always_inline)) void cb_put(struct thread *thread, struct cb *c)
{
    if (UNLIKELY(atomic_load_explicit(&c->cancel_reason, memory_order_relaxed) != NULL))
        cb_clear(c);
    bool guest = c->guest;
    if (UNLIKELY(guest))
        shared_fibre_release(thread, shared_of(c->member.fibre), SHARED_KNOWN);
    arch_san_release(c);
    if (UNLIKELY(guest))
        slab_put(&worker_of(thread)->guests, guest_of(&c->member));
    else
        slab_put(&worker_of(thread)->cbs, fibre_of(c));
}

/* Like cb_retire, for a control block without copied name and arguments. */
static inline __attribute__((always_inline)) void cb_free(struct thread *thread, struct cb *c)
{
    if (LIKELY(handle_retire(thread, &c->word)))
        cb_put(thread, c);
}

static inline void cb_begin_(struct cb *c)
{
    arch_san_acquire(c);
    memset((char *)c + offsetof(struct cb, ends), 0, offsetof(struct cb, fn) - offsetof(struct cb, ends));
    /* a thread that finds the record early must not see the anchor of its last life */
    plain_store(&c->anchor, NULL, memory_order_relaxed);
    ASSERT_SLOW(!c->extra);
}

/* From here on a dump may find the control block and take a reference: so its fibre is set. Pairs with is_live in
 * src/strand/each_strand.c. */
static inline void cb_publish_(struct cb *c, uint64_t serial)
{
    atomic_store_explicit(&c->word, serial << WORD_SERIAL, memory_order_release); /* [HN2] */
}

/* The strand no longer counts against options.max_strands. */
static inline void cb_uncount(struct thread *thread, struct cb *c)
{
    if (LIKELY(!c->counted))
        return;
    c->counted = false;
    atomic_fetch_sub_explicit(&runtime_of(thread)->live, 1, memory_order_relaxed);
}

/* Begins a life of a control block. The caller sets what is not set here, or cb_construct has set it. */
static inline __attribute__((always_inline)) struct cb *cb_make(struct thread *thread, struct fibre *fibre,
                                                                uint64_t serial)
{
    struct cb *c = cb_in(fibre);
    cb_begin_(c);
    fibre->stack = NULL;
    plain_store(&fibre->home, NULL, memory_order_relaxed);
    plain_store(&fibre->pool, thread->pool, memory_order_relaxed); /* read by the thread that closes a pool */
    fibre->started = false;
    fibre->rank = 0;
    plain_store(&fibre->slow_wake, 0, memory_order_relaxed); /* a strand that spins on a mutex reads it */
    ASSERT_SLOW(own_is_clean(own_of(c)));
    cb_publish_(c, serial);
    return c;
}

/* Returns NULL if there is no memory. */
static inline struct cb *cb_new(struct thread *thread)
{
    struct fibre *fibre = platform_slab_get(thread, &worker_of(thread)->cbs);
    return LIKELY(fibre != NULL) ? cb_make(thread, fibre, next_serial(worker_of(thread))) : NULL;
}

/* As cb_new, for a strand of a shared fibre. It takes over the caller's references to the fibre. */
struct cb *cb_new_guest(struct thread *thread, struct shared_fibre *shared);

#endif
