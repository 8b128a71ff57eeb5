/*
 * Read-write locks. Page: docs/protocols/locks.md; the protocol block is in gate.h.
 *
 * STATE     the gate's value: WRITER, or so many times READER. Who the writer is, its own list of what it holds says.
 * PROTOCOL  one queue for both sides, in order of coming: a reader behind a writer that waits, waits too, so neither
 *           side starves. Who gives back lets the first pass; if that is a reader, all up to the next writer.
 */
#include "gate.h"

#include "../../include/strand/sync.h"
#include "../strand/interrupt.h"
#include "../strand/misuse.h"

#include <errno.h>

enum { WRITER = GATE_ONE, READER = 2 * GATE_ONE };

struct rwlock {
    struct gate gate;
    struct held held; /* the writer's */
};
_Static_assert(sizeof(struct rwlock) <= sizeof(strand_rwlock), "a read-write lock is the user's object");

static struct rwlock *rwlock_of(strand_rwlock *lock)
{
    return (struct rwlock *)lock;
}

static bool admit(uint64_t *value, uintptr_t want)
{
    if (want == WRITER ? *value != 0 : (*value & WRITER) != 0)
        return false;
    *value += want;
    return true;
}

static const struct gate_rules rules = {admit, 0};

static inline bool take_free(struct thread *thread, struct rwlock *lock, uint64_t want)
{
    uint64_t word = atomic_load_explicit(&lock->gate.word, memory_order_relaxed);
    while (!(word & (GATE_BITS | WRITER)) && (want == READER || !word))
        if (LIKELY(gate_pass(thread, &lock->gate, &word, word + want)))
            return true;
    return false;
}

/* By the caller's own list, so this is no race. */
static bool is_writer(struct cb *me, struct rwlock *lock)
{
    for (struct held *held = me->held; held; held = held->next)
        if (held == &lock->held)
            return true;
    return false;
}

/* ---- locking --------------------------------------------------------------------------------------------- */

static NOINLINE void take_slowly(struct thread *thread, struct cb *me, struct rwlock *lock, uint64_t want,
                                 const char *function)
{
    if (UNLIKELY(is_writer(me, lock)))
        misuse(function, held_made(me, &lock->held, (char[256]){0}, 256),
               "the caller holds the lock as its writer, and would wait for itself");
    gate_enter(thread, me, &lock->gate, want == READER ? BLOCKED_READ_LOCK : BLOCKED_WRITE_LOCK, want, &rules);
}

static inline void lock(struct rwlock *lock, uint64_t want, void *site, const char *function)
{
    struct thread *thread = must_be_strand(function);
    struct cb *me = current_of(thread);
    thread = may_block_often(thread, me, function);
    if (UNLIKELY(!take_free(thread, lock, want)))
        take_slowly(thread, me, lock, want, function);
    if (want == WRITER)
        held_add(me, &lock->held, "read-write lock", site);
}

void strand_rwlock_read(strand_rwlock *handle)
{
    lock(rwlock_of(handle), READER, NULL, "strand_rwlock_read");
}

void strand_rwlock_write(strand_rwlock *handle)
{
    lock(rwlock_of(handle), WRITER, __builtin_return_address(0), "strand_rwlock_write");
}

static inline int try(strand_rwlock *handle, uint64_t want, void *site, const char *function)
{
    struct rwlock *lock = rwlock_of(handle);
    struct thread *thread = must_be_strand(function);
    if (!take_free(thread, lock, want) && !gate_try(thread, &lock->gate, want, &rules))
        return -EAGAIN;
    if (want == WRITER)
        held_add(current_of(thread), &lock->held, "read-write lock", site);
    return 0;
}

int strand_rwlock_try_read(strand_rwlock *lock)
{
    return try(lock, READER, NULL, "strand_rwlock_try_read");
}

int strand_rwlock_try_write(strand_rwlock *lock)
{
    return try(lock, WRITER, __builtin_return_address(0), "strand_rwlock_try_write");
}

/* ---- giving back ----------------------------------------------------------------------------------------- */

static inline void read_done(struct rwlock *lock, const char *function)
{
    struct thread *thread = must_be_strand(function);
    uint64_t word = atomic_load_explicit(&lock->gate.word, memory_order_relaxed);
    if (UNLIKELY(gate_value(word) < READER))
        misuse(function, "", "nobody holds the lock as a reader");
    while (!(word & GATE_BITS) && word >= READER)
        if (LIKELY(gate_give(thread, &lock->gate, &word, word - READER)))
            return;
    gate_change(thread, &lock->gate, -(uint64_t)READER, &rules);
}

static inline void write_done(struct rwlock *lock, const char *function)
{
    struct thread *thread = must_be_strand(function);
    struct cb *me = current_of(thread);
    uint64_t word = WRITER;
    if (UNLIKELY(!is_writer(me, lock)))
        misuse(function, "", "the caller does not hold the lock as its writer");
    held_remove(me, &lock->held);
    if (UNLIKELY(!gate_give(thread, &lock->gate, &word, 0)))
        gate_change(thread, &lock->gate, -(uint64_t)WRITER, &rules);
}

void strand_rwlock_read_done(strand_rwlock *lock)
{
    read_done(rwlock_of(lock), "strand_rwlock_read_done");
}

void strand_rwlock_write_done(strand_rwlock *lock)
{
    write_done(rwlock_of(lock), "strand_rwlock_write_done");
}

/* ---- until the end of a block ------------------------------------------------------------------------------ */

static void leave_read(struct strand_guard_ *guard)
{
    read_done((struct rwlock *)(uintptr_t)guard->bits[0], "STRAND_READ_LOCKED");
}

static void leave_write(struct strand_guard_ *guard)
{
    write_done((struct rwlock *)(uintptr_t)guard->bits[0], "STRAND_WRITE_LOCKED");
}

struct strand_guard_ strand_rwlock_read_enter_(strand_rwlock *handle)
{
    lock(rwlock_of(handle), READER, NULL, "STRAND_READ_LOCKED");
    return (struct strand_guard_){{(uint64_t)(uintptr_t)handle, 0, 0}, leave_read};
}

struct strand_guard_ strand_rwlock_write_enter_(strand_rwlock *handle)
{
    lock(rwlock_of(handle), WRITER, __builtin_return_address(0), "STRAND_WRITE_LOCKED");
    return (struct strand_guard_){{(uint64_t)(uintptr_t)handle, 0, 0}, leave_write};
}
