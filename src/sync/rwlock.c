/*
 * Read-write locks. Page: docs/protocols/locks.md; the protocol block is in gate.h.
 *
 * STATE     the gate's value: WRITER, or READER times the number of readers. The lock records of the strands themselves
 *           (lockset.h) say which strands these are: reading one's own is no race.
 * PROTOCOL  one FIFO queue for both sides: a reader behind a waiting writer waits too, so neither side starves. A
 *           release admits the first waiter; if it is a reader, also all readers up to the next writer.
 */
#include "gate.h"

#include "../../include/strand/sync.h"
#include "../strand/escape.h"
#include "../strand/interrupt.h"
#include "../strand/lockset.h"
#include "../strand/misuse.h"
#include "../strand/print.h"

#include <errno.h>

enum { WRITER = 1, READER = 2 };

struct rwlock {
    struct gate gate;
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

static inline enum lock_type type_of(uint64_t want)
{
    return want == WRITER ? LOCK_WRITE : LOCK_READ;
}

static inline bool take_free(struct thread *thread, struct rwlock *lock, uint64_t want)
{
    uint64_t word = atomic_load_explicit(&lock->gate.word, memory_order_relaxed);
    while (!(word & (GATE_BITS | WRITER)) && (want == READER || !word))
        if (LIKELY(gate_pass(thread, &lock->gate, &word, word + want)))
            return true;
    return false;
}

/* Release with the help of the queue: there are waiters, or another strand has the lock bit. */
static void give_slowly(struct thread *thread, struct rwlock *lock, uint64_t want, const char *function)
{
    must_not_escape_object(thread, lock, "lock", function);
    gate_change(thread, &lock->gate, -want, &rules);
}

/* ---- locking --------------------------------------------------------------------------------------------- */

static void refuse_own(struct cb *me, struct rwlock *lock, enum lock_type type, const char *as, const char *function)
{
    struct lockset_entry entry = lockset_find(me, lock, type);
    if (UNLIKELY(entry.what != 0))
        misuse(function,
               lockset_made(me, type, print_location_line(entry.site, (char[LOCATION_WORDS]){0}, LOCATION_WORDS),
                            MADE_ROOM),
               "the caller holds the lock as %s, and would wait for itself: release it first", as);
}

static NOINLINE void take_slowly(struct thread *thread, struct cb *me, struct rwlock *lock, uint64_t want,
                                 const char *function)
{
    must_not_escape_object(thread, lock, "lock", function);
    refuse_own(me, lock, LOCK_WRITE, "its writer", function);
    if (want == READER && UNLIKELY(lockset_find(me, lock, LOCK_READ).what != 0) &&
        gate_try(thread, &lock->gate, want, &rules))
        return; /* no writer waits: only then would the strand wait for itself */
    refuse_own(me, lock, LOCK_READ, "a reader", function);
    gate_enter(thread, me, &lock->gate, want == READER ? BLOCKED_READ_LOCK : BLOCKED_WRITE_LOCK, want, &rules);
}

static inline void lock(struct rwlock *lock, uint64_t want, void *site, const char *function)
{
    struct thread *thread = must_be_strand(function);
    struct cb *me = current_of(thread);
    must_be_there(lock, "lock", function);
    may_block(thread, me, function);
    if (UNLIKELY(thread_is_asked_for(thread)) && gate_is_free(&lock->gate, want, &rules))
        thread = interrupt_yield_before_taking(thread, me);
    lockset_reserve(thread, me, "a read-write lock");
    if (UNLIKELY(!take_free(thread, lock, want)))
        take_slowly(thread, me, lock, want, function);
    lockset_add(me, lock, type_of(want), site);
}

void strand_rwlock_read(strand_rwlock *handle)
{
    lock(rwlock_of(handle), READER, __builtin_return_address(0), "strand_rwlock_read");
}

void strand_rwlock_write(strand_rwlock *handle)
{
    lock(rwlock_of(handle), WRITER, __builtin_return_address(0), "strand_rwlock_write");
}

static inline int try(strand_rwlock *handle, uint64_t want, void *site, const char *function)
{
    struct rwlock *lock = rwlock_of(handle);
    struct thread *thread = must_be_strand(function);
    struct cb *me = current_of(thread);
    must_be_there(lock, "lock", function);
    lockset_reserve(thread, me, "a read-write lock");
    if (!take_free(thread, lock, want)) {
        must_not_escape_object(thread, lock, "lock", function);
        if (!gate_try(thread, &lock->gate, want, &rules))
            return -EAGAIN;
    }
    lockset_add(me, lock, type_of(want), site);
    return 0;
}

int strand_rwlock_try_read(strand_rwlock *lock)
{
    return try(lock, READER, __builtin_return_address(0), "strand_rwlock_try_read");
}

int strand_rwlock_try_write(strand_rwlock *lock)
{
    return try(lock, WRITER, __builtin_return_address(0), "strand_rwlock_try_write");
}

/* ---- giving back ----------------------------------------------------------------------------------------- */

static inline void read_done(struct rwlock *lock, const char *function)
{
    struct thread *thread = must_be_strand(function);
    must_be_there(lock, "lock", function);
    if (UNLIKELY(!lockset_remove(current_of(thread), lock, LOCK_READ)))
        MISUSE_AT(function, "lock", (const void *)lock, "the caller does not hold the lock as a reader");
    uint64_t word = atomic_load_explicit(&lock->gate.word, memory_order_relaxed);
    while (!(word & GATE_BITS) && word >= READER)
        if (LIKELY(gate_give(thread, &lock->gate, &word, word - READER)))
            return;
    give_slowly(thread, lock, READER, function);
}

static inline void write_done(struct rwlock *lock, const char *function)
{
    struct thread *thread = must_be_strand(function);
    uint64_t word = WRITER;
    must_be_there(lock, "lock", function);
    if (UNLIKELY(!lockset_remove(current_of(thread), lock, LOCK_WRITE)))
        MISUSE_AT(function, "lock", (const void *)lock, "the caller does not hold the lock as its writer");
    if (UNLIKELY(!gate_give(thread, &lock->gate, &word, 0)))
        give_slowly(thread, lock, WRITER, function);
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
    lock(rwlock_of(handle), READER, __builtin_return_address(0), "STRAND_READ_LOCKED");
    return (struct strand_guard_){{(uint64_t)(uintptr_t)handle, 0, 0}, leave_read};
}

struct strand_guard_ strand_rwlock_write_enter_(strand_rwlock *handle)
{
    lock(rwlock_of(handle), WRITER, __builtin_return_address(0), "STRAND_WRITE_LOCKED");
    return (struct strand_guard_){{(uint64_t)(uintptr_t)handle, 0, 0}, leave_write};
}
