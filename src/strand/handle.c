/*
 * Temporary references, and the life of control blocks and block records. The protocol block is in handle.h.
 */
#include "handle.h"

#include "misuse.h"

#include "cancel_reason.h"
#include "exception.h"

#include <errno.h>
#include <stdlib.h>

static bool try_ref(_Atomic uint64_t *word, uint64_t *old, bool shared)
{
    return (*old & WORD_REFS) != WORD_REFS && swap_word(word, old, *old + WORD_REF, shared); /* [HN1] */
}

static inline bool await_ref(struct thread *thread, _Atomic uint64_t *word, uint64_t serial, bool shared)
{
    uint64_t old = atomic_load_explicit(word, memory_order_relaxed);
    while (word_serial(old) == serial && !(old & WORD_DEAD)) {
        if (try_ref(word, &old, shared))
            return true;
        if ((old & WORD_REFS) == WORD_REFS) {
            platform_await(thread);
            old = atomic_load_explicit(word, memory_order_relaxed);
        }
    }
    (void)atomic_load_explicit(word, memory_order_acquire); /* the object is gone: the caller sees what it did [HN1] */
    return false;
}

bool handle_ref_take(struct thread *thread, _Atomic uint64_t *word, uint64_t serial)
{
    return await_ref(thread, word, serial, thread->concurrent);
}

bool handle_ref_take_with_outsiders(struct thread *thread, _Atomic uint64_t *word, uint64_t serial)
{
    return await_ref(thread, word, serial, true);
}

int handle_ref_take_at_once(_Atomic uint64_t *word, uint64_t serial)
{
    uint64_t old = atomic_load_explicit(word, memory_order_relaxed);
    while (word_serial(old) == serial && !(old & WORD_DEAD))
        if (try_ref(word, &old, true))
            return 0;
        else if ((old & WORD_REFS) == WORD_REFS)
            return -EAGAIN;
    return -ESRCH;
}

bool handle_ref_release(struct thread *thread, _Atomic uint64_t *word)
{
    uint64_t old = atomic_load_explicit(word, memory_order_relaxed), new;
    do {
        new = old - WORD_REF;
        if ((new &WORD_DEAD) && !(new &WORD_REFS))
            new = word_freed(new);
    } while (!swap_word(word, &old, new, thread->concurrent)); /* [HN1] */
    return new &WORD_FREE;
}

COLD bool handle_retire_slow_(struct thread *thread, _Atomic uint64_t *word)
{
    uint64_t old = atomic_load_explicit(word, memory_order_relaxed), new;
    do
        new = old &WORD_REFS ? old | WORD_DEAD : word_freed(old);
    while (!swap_word(word, &old, new, thread->concurrent)); /* [HN1] */
    return new &WORD_FREE;
}

/* If the handle is not stale, the record belongs to another run. */
static COLD void check_foreign(const _Atomic uint64_t *word, uint64_t serial, const char *noun, const char *function)
{
    if (word_serial(atomic_load_explicit(word, memory_order_relaxed)) == serial)
        misuse_foreign(function, noun);
}

struct cb *handle_ref_cb(struct thread *thread, strand handle, const char *function)
{
    struct cb *c = (struct cb *)(uintptr_t)handle.bits[0];
    if (!arch_in_handles(c) || !handle.bits[1])
        return NULL;
    if (UNLIKELY(!cb_is_ours(thread, c))) {
        check_foreign(&c->word, handle.bits[1], "strand", function);
        return NULL;
    }
    return handle_ref_take(thread, &c->word, handle.bits[1]) ? c : NULL;
}

COLD void handle_misuse_other_(const struct handle_noun *noun, const char *function)
{
    MISUSE(function, "", "the handle is not a %s's", noun->noun);
}

/* Says where the object was made, unless the memory serves another object by now. */
COLD void handle_misuse_gone_(const struct handle_noun *noun, const uint64_t bits[2], const char *function)
{
    uint64_t word = atomic_load_explicit(handle_word(noun, bits), memory_order_relaxed);
    bool known = word_was(word, bits[1] ^ noun->mark);
    MISUSE(function, known ? noun->made((const void *)(uintptr_t)bits[0], MADE_ROOM) : "",
           "the %s is gone: its scope has been left. Open it in a scope that ends after its users", noun->noun);
}

COLD void handle_misuse_foreign_(const struct handle_noun *noun, const uint64_t bits[2], const char *function)
{
    check_foreign(handle_word(noun, bits), bits[1] ^ noun->mark, noun->noun, function);
}

COLD void cb_extra_free(struct extra *extra, bool wipes)
{
    if (extra && wipes)
        arch_wipe(extra + 1, extra->size, 0);
    free(extra);
}

COLD void cb_clear(struct cb *c)
{
    cb_extra_free(c->extra, cb_wipes(c));
    c->extra = NULL;
    cancel_reason_release(atomic_exchange_explicit(&c->cancel_reason, NULL, memory_order_acq_rel)); /* [PB1] */
}

void cb_retire(struct thread *thread, struct cb *c)
{
    if (handle_retire(thread, &c->word)) {
        cb_clear(c);
        cb_put(thread, c);
    }
}

void handle_unref_cb(struct thread *thread, struct cb *c)
{
    if (handle_ref_release(thread, &c->word)) {
        cb_clear(c);
        cb_put(thread, c);
    }
}

struct scope *handle_ref_scope(struct thread *thread, strand_scope handle, const char *function)
{
    struct scope *scope = (struct scope *)(uintptr_t)handle.bits[0];
    if (!arch_in_handles(scope) || handle.bits[1] < 2)
        return NULL;
    if (UNLIKELY(!scope_is_ours(thread, scope))) {
        check_foreign(&scope->block.word, handle.bits[1] >> 1, "scope", function);
        return NULL;
    }
    return handle_ref_take(thread, &scope->block.word, handle.bits[1] >> 1) ? scope : NULL;
}

void handle_unref_scope(struct thread *thread, struct scope *scope)
{
    if (handle_ref_release(thread, &scope->block.word))
        slab_put(&worker_of(thread)->blocks, scope);
}

/* Set the members that every free control block keeps; cancel_reason is zero in it, too. The end of a strand restores
 * them. */
static void construct(struct cb *c)
{
    c->wait.timer.node.index = HEAP_NOWHERE;
    c->wait.node.waiter = c;
    arch_san_release(c);
}

void cb_construct(void *memory)
{
    struct cb *c = cb_in(memory);
    fibre_init(memory, &c->member);
    construct(c);
}

void cb_construct_guest(void *memory)
{
    construct(guest_in(memory));
}

COLD struct cb *cb_new_guest(struct thread *thread, struct shared_fibre *shared)
{
    struct guest *guest = platform_slab_get(thread, &worker_of(thread)->guests);
    if (!guest)
        return NULL;
    struct cb *c = guest_in(guest);
    cb_begin_(c);
    c->guest = true;
    c->member.fibre = &shared->fibre;
    guest->depth = 0;
    guest->wipes = false;
    shared_fibre_keep(shared, SHARED_STRAND | SHARED_KNOWN);
    cb_publish_(c, next_serial(worker_of(thread)));
    return c;
}
