/*
 * Semaphores. Page: docs/protocols/locks.md; the protocol block is in gate.h.
 *
 * STATE     the gate's value: the number of free permits. `most`: 0, or the bound. The public initialisers set both.
 * INVARIANTS [SM1] the free permits and those that strands have add up to the initial permits and those released: a
 *           claim takes exactly what its waiter wants, and a failed claim takes nothing.
 * TESTED BY tests/models/gate.pml, tests/spec/semaphore.c.
 */
#include "gate.h"

#include "../../include/strand/sync.h"
#include "../strand/escape.h"
#include "../strand/interrupt.h"
#include "../strand/misuse.h"

#include <errno.h>

#define PERMITS_MOST (UINT64_C(1) << 60)

struct semaphore {
    struct gate gate;
    uint64_t most; /* 0: no bound; TOO_MANY: the initialiser was given more than PERMITS_MOST */
};
#define TOO_MANY UINT64_MAX
_Static_assert(sizeof(struct semaphore) <= sizeof(strand_semaphore), "a semaphore is the user's object");
_Static_assert(offsetof(struct semaphore, most) == 3 * sizeof(uint64_t), "as the initialisers have it");

static struct semaphore *semaphore_of(const strand_semaphore *semaphore)
{
    return (struct semaphore *)(uintptr_t)semaphore;
}

static bool admit(uint64_t *value, uintptr_t want)
{
    if (*value < want)
        return false;
    *value -= want; /* [SM1] */
    return true;
}

static const struct gate_rules rules = {admit, 0};

static inline bool take_free(struct thread *thread, struct semaphore *semaphore, uint64_t want)
{
    uint64_t word = atomic_load_explicit(&semaphore->gate.word, memory_order_relaxed);
    while (!(word & GATE_BITS) && word >= want)
        if (LIKELY(gate_pass(thread, &semaphore->gate, &word, word - want)))
            return true;
    return false;
}

/* Report misuse if the semaphore was made with more permits than its bound, or if n exceeds the bound. */
static NOINLINE void check_bound(struct semaphore *semaphore, uint32_t n, const char *function)
{
    uint64_t permits = gate_value(atomic_load_explicit(&semaphore->gate.word, memory_order_relaxed));
    if (UNLIKELY(semaphore->most == TOO_MANY))
        MISUSE_AT(function, "semaphore", (const void *)semaphore, "the semaphore was made with more than %llu permits",
                  (unsigned long long)PERMITS_MOST);
    if (UNLIKELY(permits > semaphore->most))
        MISUSE_AT(function, "semaphore", (const void *)semaphore,
                  "the semaphore was made with %llu permits, more than its bound of %llu", (unsigned long long)permits,
                  (unsigned long long)semaphore->most);
    if (UNLIKELY(n > semaphore->most))
        MISUSE_AT(function, "semaphore", (const void *)semaphore,
                  "%u permits are more than the semaphore can ever have: %llu. Ask for fewer, or raise its bound", n,
                  (unsigned long long)semaphore->most);
}

/* Check a semaphore before n permits are taken. */
static inline void check(struct semaphore *semaphore, uint32_t n, const char *function)
{
    must_be_there(semaphore, "semaphore", function);
    if (UNLIKELY(semaphore->most))
        check_bound(semaphore, n, function);
}

/* ---- taking ---------------------------------------------------------------------------------------------- */

static inline void acquire(strand_semaphore *handle, uint32_t n, const char *function)
{
    struct semaphore *semaphore = semaphore_of(handle);
    struct thread *thread = must_be_strand(function);
    struct cb *me = current_of(thread);
    check(semaphore, n, function);
    may_block(thread, me, function);
    if (UNLIKELY(thread_is_asked_for(thread)) && gate_is_free(&semaphore->gate, n, &rules))
        thread = interrupt_yield_before_taking(thread, me);
    if (LIKELY(!n || take_free(thread, semaphore, n)))
        return;
    must_not_escape_object(thread, semaphore, "semaphore", function);
    gate_enter(thread, me, &semaphore->gate, BLOCKED_SEMAPHORE, n, &rules);
}

void strand_semaphore_acquire(strand_semaphore *semaphore)
{
    acquire(semaphore, 1, "strand_semaphore_acquire");
}

void strand_semaphore_acquire_many(strand_semaphore *semaphore, uint32_t n)
{
    acquire(semaphore, n, "strand_semaphore_acquire_many");
}

static inline int try(strand_semaphore *handle, uint32_t n, const char *function)
{
    struct semaphore *semaphore = semaphore_of(handle);
    struct thread *thread = must_be_strand(function);
    check(semaphore, n, function);
    if (!n || take_free(thread, semaphore, n))
        return 0;
    must_not_escape_object(thread, semaphore, "semaphore", function);
    return gate_try(thread, &semaphore->gate, n, &rules) ? 0 : -EAGAIN;
}

int strand_semaphore_try_acquire(strand_semaphore *semaphore)
{
    return try(semaphore, 1, "strand_semaphore_try_acquire");
}

int strand_semaphore_try_acquire_many(strand_semaphore *semaphore, uint32_t n)
{
    return try(semaphore, n, "strand_semaphore_try_acquire_many");
}

/* ---- giving ---------------------------------------------------------------------------------------------- */

static uint64_t most_of(const struct semaphore *semaphore)
{
    return semaphore->most ? semaphore->most : PERMITS_MOST;
}

static inline bool is_too_many(const struct semaphore *semaphore, uint64_t word, uint32_t n)
{
    return UNLIKELY(n > most_of(semaphore) || word > most_of(semaphore) - n);
}

static COLD void too_many(const struct semaphore *semaphore, uint64_t word, uint32_t n, const char *function)
{
    MISUSE_AT(function, "semaphore", (const void *)semaphore,
              "releasing %u would exceed the semaphore's bound of %llu permits: %llu are free", n,
              (unsigned long long)most_of(semaphore), (unsigned long long)word);
}

static NOINLINE void release_slowly(struct thread *thread, struct semaphore *semaphore, uint32_t n,
                                    const char *function)
{
    struct batch batch;
    must_not_escape_object(thread, semaphore, "semaphore", function);
    batch_init(&batch);
    uint64_t value = gate_lock(thread, &semaphore->gate);
    if (is_too_many(semaphore, value, n)) {
        gate_unlock(&semaphore->gate, value); /* a misuse hook may read the semaphore */
        too_many(semaphore, value, n, function);
    }
    value += n;
    gate_unlock(&semaphore->gate, gate_settle(thread, &semaphore->gate, value, &rules, &batch));
    batch_deliver(thread, &batch);
}

static inline void release(strand_semaphore *handle, uint32_t n, const char *function)
{
    struct semaphore *semaphore = semaphore_of(handle);
    struct thread *thread = must_be_strand(function);
    check(semaphore, 0, function);
    uint64_t word = atomic_load_explicit(&semaphore->gate.word, memory_order_relaxed);
    while (!(word & GATE_BITS)) {
        if (is_too_many(semaphore, word, n))
            too_many(semaphore, word, n, function);
        if (LIKELY(gate_give(thread, &semaphore->gate, &word, word + n)))
            return;
    }
    release_slowly(thread, semaphore, n, function);
}

void strand_semaphore_release(strand_semaphore *semaphore)
{
    release(semaphore, 1, "strand_semaphore_release");
}

void strand_semaphore_release_many(strand_semaphore *semaphore, uint32_t n)
{
    release(semaphore, n, "strand_semaphore_release_many");
}

uint64_t strand_semaphore_permits(const strand_semaphore *semaphore)
{
    (void)must_be_strand("strand_semaphore_permits");
    check(semaphore_of(semaphore), 0, "strand_semaphore_permits");
    return gate_value(gate_read(&semaphore_of(semaphore)->gate));
}

/* ---- as a case of a select ------------------------------------------------------------------------------- */

static enum answer permit_stand(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node)
{
    return gate_stand_case(thread, me, c, node, 1, &rules);
}

static enum answer permit_over(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node, bool won)
{
    (void)me;
    return gate_over_case(thread, c, node, won, &rules);
}

static const struct strand_source_ source_permit = {
    .stand = permit_stand, .over = permit_over, .blocked = BLOCKED_SEMAPHORE};

strand_case strand_on_permit(strand_semaphore *semaphore)
{
    check(semaphore_of(semaphore), 1, "strand_on_permit");
    return (strand_case){.source = &source_permit, .object = {(uint64_t)(uintptr_t)semaphore}};
}

/* ---- until the end of a block ------------------------------------------------------------------------------ */

static void leave(struct strand_guard_ *guard)
{
    release((strand_semaphore *)(uintptr_t)guard->bits[0], 1, "STRAND_PERMIT");
}

struct strand_guard_ strand_semaphore_enter_(strand_semaphore *semaphore)
{
    acquire(semaphore, 1, "STRAND_PERMIT");
    return (struct strand_guard_){{(uint64_t)(uintptr_t)semaphore, 0, 0}, leave};
}
