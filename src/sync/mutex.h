/*
 * Mutexes: the part that conditions need. Page: docs/protocols/locks.md.
 *
 * STATE     the gate's value is the control block of the strand that holds the mutex, or 0 if it is free.
 * INVARIANTS [M1] while strands wait, the mutex is held: unlocking hands it over [G1]. [M2] the holder's lock records
 *           (lockset.h) contain the mutex from when the holder runs on until it unlocks.
 */
#ifndef SYNC_MUTEX_H
#define SYNC_MUTEX_H

#include "../../include/strand/sync.h"
#include "../strand/lockset.h"
#include "gate.h"

struct mutex {
    struct gate gate;
    void *site; /* where it was locked: for reports about strands other than its holder */
};
_Static_assert(sizeof(struct mutex) <= sizeof(strand_mutex), "a mutex is the user's object");

static inline struct mutex *mutex_of(const strand_mutex *mutex)
{
    return (struct mutex *)(uintptr_t)mutex;
}

static inline bool mutex_is_held_by(struct mutex *mutex, struct cb *me)
{
    return gate_value(atomic_load_explicit(&mutex->gate.word, memory_order_relaxed)) == (uintptr_t)me;
}

/* Record that the caller now holds the mutex. The caller has reserved room for the record. */
static inline void mutex_record_owner(struct cb *me, struct mutex *mutex, void *site)
{
    plain_store(&mutex->site, site, memory_order_relaxed);
    lockset_add(me, mutex, LOCK_MUTEX, site);
}

/* Lock the mutex again after waiting for a condition. Not interruptible. */
void mutex_lock_again(struct thread **thread, struct cb *me, struct mutex *mutex, void *site);
/* Unlock the mutex, which the caller holds. */
void mutex_release(struct thread *thread, struct cb *me, struct mutex *mutex);
/* Report misuse: the caller does not hold the mutex. */
__attribute__((noreturn)) void mutex_not_held(struct thread *thread, struct mutex *mutex, const char *function);

#endif
