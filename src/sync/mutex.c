/*
 * Mutexes. The protocol block is in gate.h, the invariants of a mutex are in mutex.h.
 *
 * A strand that finds the mutex held by a strand running on another thread spins for a moment before it queues: an
 * unlock is likely to come sooner than the two switches of a wait would take. A spinning strand may pass others that
 * spin, but never a queued waiter [G2].
 */
#include "mutex.h"

#include "../strand/escape.h"
#include "../strand/interrupt.h"
#include "../strand/misuse.h"
#include "../strand/print.h"

#include <errno.h>

/* How often a spinning strand tests a mutex, and the pauses between two tests. */
enum { SPINS = 4, PAUSES = 32 };

/* ---- locking --------------------------------------------------------------------------------------------- */

static inline bool take_free(struct thread *thread, struct cb *me, struct mutex *mutex)
{
    uint64_t none = 0;
    return LIKELY(gate_pass(thread, &mutex->gate, &none, (uintptr_t)me));
}

/* A swap that fails takes the cache line from the holder: a strand that has tried once looks before it tries again. */
OWN_INLINE bool is_free(const struct mutex *mutex)
{
    return !atomic_load_explicit(&mutex->gate.word, memory_order_relaxed);
}

/* Whether the strand runs right now. The strand may have ended meanwhile: then the answer means nothing, but control
 * blocks are never unmapped. */
OWN_INLINE bool runs(uint64_t owner)
{
    struct fibre *fibre = plain_load(&((struct cb *)(uintptr_t)owner)->member.fibre, memory_order_relaxed);
    bool shared = fibre && plain_load(&fibre->slow_wake, memory_order_relaxed) & FIBRE_SHARED;
    return fibre && !shared && atomic_load_explicit(&fibre->context, memory_order_relaxed) == NULL;
}

/* Spin for a moment on a mutex that is held. Returns whether the caller has acquired it. */
static bool take_soon(struct thread *thread, struct cb *me, struct mutex *mutex)
{
    for (int spin = 0; spin < SPINS; spin++) {
        uint64_t word = atomic_load_explicit(&mutex->gate.word, memory_order_relaxed);
        if (word & GATE_WAITERS)
            return false;
        if (!word && take_free(thread, me, mutex))
            return true;
        if (gate_value(word) && !runs(gate_value(word)))
            return false;
        for (int pause = 0; pause < PAUSES; pause++)
            platform_relax(thread);
    }
    return false;
}

static const char *made(struct cb *owner, struct mutex *mutex, char *buffer, size_t size)
{
    char where[LOCATION_WORDS];
    print_location_line(plain_load(&mutex->site, memory_order_relaxed), where, sizeof where);
    return lockset_made(owner, LOCK_MUTEX, where, buffer, size);
}

static COLD __attribute__((noreturn)) void own_mutex(struct cb *me, struct mutex *mutex)
{
    misuse("strand_mutex_lock", made(me, mutex, MADE_ROOM),
           "the caller holds the mutex already, and would wait for itself: unlock it first, or do not lock it again");
}

/* Acquire a mutex that was not free. `floor` masks interruptions. Returns false if the caller was interrupted. */
static NOINLINE bool take_slowly(struct thread **thread, struct cb *me, struct mutex *mutex, uint32_t floor)
{
    if (UNLIKELY(mutex_is_held_by(mutex, me)))
        own_mutex(me, mutex);
    must_not_escape_object(*thread, mutex, "mutex", "strand_mutex_lock");
    if ((*thread)->concurrent && take_soon(*thread, me, mutex))
        return true;
    uint64_t owner = gate_lock(*thread, &mutex->gate);
    if (!owner) { /* and there are no waiters [M1] */
        gate_unlock(&mutex->gate, (uintptr_t)me);
        return true;
    }
    gate_check_run(*thread, &mutex->gate, (struct cb *)(uintptr_t)owner, "strand_mutex_lock");
    gate_stand(*thread, me, &mutex->gate, owner, BLOCKED_MUTEX, 0, floor);
    return gate_park(thread, me, &mutex->gate, floor, NULL);
}

/* The slow path. A report about a simulation names the step by this function. */
static NOINLINE void strand_mutex_lock_(struct mutex *mutex, void *site, const char *function)
{
    struct thread *thread = must_be_strand(function);
    struct cb *me = current_of(thread);
    must_be_there(mutex, "mutex", function);
    may_block(thread, me, function);
    if (UNLIKELY(thread_is_asked_for(thread)) && is_free(mutex))
        thread = interrupt_yield_before_taking(thread, me);
    lockset_reserve(thread, me, "a mutex");
    while (UNLIKELY(!(is_free(mutex) && take_free(thread, me, mutex)) &&
                    !take_slowly(&thread, me, mutex, own_of(me)->floor)))
        if (interrupted_here(me))
            interrupt_throw(thread, me, 0);
    mutex_record_owner(me, mutex, site); /* [M2] */
}

/* The fast path: the mutex is free, and the caller holds no other lock. Otherwise returns false, and may have counted
 * the operation. */
OWN_INLINE bool lock_plainly(struct mutex *mutex, void *site)
{
    struct thread *thread = thread_self();
    if (UNLIKELY(!thread || !thread->current || !mutex))
        return false;
    struct own *own = own_on(thread->current);
    if (UNLIKELY(!lockset_is_empty(own->lockset) || !blocks_plainly(thread, own) ||
                 !take_free(thread, current_of(thread), mutex)))
        return false;
    plain_store(&mutex->site, site, memory_order_relaxed); /* as mutex_record_owner [M2] */
    lockset_begin(own->lockset, mutex, LOCK_MUTEX, site);
    return true;
}

static inline void lock(struct mutex *mutex, void *site, const char *function)
{
    if (UNLIKELY(!lock_plainly(mutex, site)))
        strand_mutex_lock_(mutex, site, function);
}

void strand_mutex_lock(strand_mutex *mutex)
{
    lock(mutex_of(mutex), __builtin_return_address(0), "strand_mutex_lock");
}

int strand_mutex_try_lock(strand_mutex *handle)
{
    struct mutex *mutex = mutex_of(handle);
    struct thread *thread = must_be_strand("strand_mutex_try_lock");
    struct cb *me = current_of(thread);
    must_be_there(mutex, "mutex", "strand_mutex_try_lock");
    lockset_reserve(thread, me, "a mutex");
    if (!take_free(thread, me, mutex))
        return -EAGAIN;
    mutex_record_owner(me, mutex, __builtin_return_address(0));
    return 0;
}

void mutex_lock_again(struct thread **thread, struct cb *me, struct mutex *mutex, void *site)
{
    while (!take_free(*thread, me, mutex) && !take_slowly(thread, me, mutex, WAIT_FLOOR_MOST))
        continue;
    mutex_record_owner(me, mutex, site);
}

/* ---- unlocking ------------------------------------------------------------------------------------------- */

/* Hand the mutex to the first waiter. */
static NOINLINE void hand_over(struct thread *thread, struct mutex *mutex)
{
    must_not_escape_object(thread, mutex, "mutex", "strand_mutex_unlock");
    (void)gate_lock(thread, &mutex->gate);
    struct wait_node *next = gate_claim_next(thread, &mutex->gate);
    gate_unlock(&mutex->gate, next ? (uintptr_t)next->waiter : 0);
    if (next)
        thread_ready(thread, &next->waiter->member);
}

/* The mutex's word names the strand as its holder, but the strand has no record of it. */
static COLD __attribute__((noreturn)) void copied(struct cb *me, struct mutex *mutex)
{
    misuse("strand_mutex_unlock", made(me, mutex, MADE_ROOM), "it was moved or copied while it was held");
}

void mutex_release(struct thread *thread, struct cb *me, struct mutex *mutex)
{
    uint64_t word = (uintptr_t)me;
    if (UNLIKELY(!lockset_remove(me, mutex, LOCK_MUTEX)))
        copied(me, mutex);
    if (UNLIKELY(!gate_give(thread, &mutex->gate, &word, 0)))
        hand_over(thread, mutex);
}

COLD void mutex_not_held(struct thread *thread, struct mutex *mutex, const char *function)
{
    char text[256];
    uint64_t owner = gate_lock(thread, &mutex->gate); /* the owner can't change meanwhile */
    misuse_made_at("mutex", mutex, text, sizeof text);
    if (owner)
        made((struct cb *)(uintptr_t)owner, mutex, text, sizeof text);
    gate_unlock(&mutex->gate, owner); /* a misuse hook may read the mutex */
    misuse(function, text,
           owner ? "the caller does not hold the mutex: only the strand that locked it may unlock it"
                 : "the mutex is not locked: lock it first");
}

/* The slow path. */
static NOINLINE void unlock_(struct mutex *mutex, const char *function)
{
    struct thread *thread = must_be_strand(function);
    struct cb *me = current_of(thread);
    must_be_there(mutex, "mutex", function);
    if (UNLIKELY(!mutex_is_held_by(mutex, me)))
        mutex_not_held(thread, mutex, function);
    mutex_release(thread, me, mutex);
}

/* The fast path: the caller locked the mutex first of all that it holds. Returns false if it did nothing. */
OWN_INLINE bool unlock_plainly(struct mutex *mutex)
{
    struct thread *thread = thread_self();
    if (UNLIKELY(!thread || !thread->current || !mutex))
        return false;
    uint64_t me = (uintptr_t)current_of(thread);
    if (UNLIKELY(atomic_load_explicit(&mutex->gate.word, memory_order_relaxed) != me ||
                 !lockset_end(own_on(thread->current)->lockset, mutex, LOCK_MUTEX)))
        return false;
    if (UNLIKELY(!gate_give(thread, &mutex->gate, &me, 0)))
        hand_over(thread, mutex);
    return true;
}

static inline void unlock(struct mutex *mutex, const char *function)
{
    if (UNLIKELY(!unlock_plainly(mutex)))
        unlock_(mutex, function);
}

void strand_mutex_unlock(strand_mutex *mutex)
{
    unlock(mutex_of(mutex), "strand_mutex_unlock");
}

bool strand_mutex_held(const strand_mutex *mutex)
{
    struct thread *thread = must_be_strand("strand_mutex_held");
    must_be_there(mutex, "mutex", "strand_mutex_held");
    return mutex_is_held_by(mutex_of(mutex), current_of(thread));
}

/* ---- until the end of a block ------------------------------------------------------------------------------ */

static void leave(struct strand_guard_ *guard)
{
    unlock((struct mutex *)(uintptr_t)guard->bits[0], "STRAND_LOCKED");
}

struct strand_guard_ strand_mutex_enter_(strand_mutex *mutex)
{
    lock(mutex_of(mutex), __builtin_return_address(0), "STRAND_LOCKED");
    return (struct strand_guard_){{(uint64_t)(uintptr_t)mutex, 0, 0}, leave};
}
