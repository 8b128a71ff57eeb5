/*
 * Mutexes, as far as conditions have to know them. Page: docs/protocols/locks.md.
 *
 * STATE     the gate's value is the control block of the strand that holds it, 0: nobody.
 * INVARIANTS [M1] while strands wait it is held by somebody: who unlocks hands it over [G1]. [M2] it is in the
 *           records of what its holder holds (held.h), from when that strand runs on until it unlocks.
 */
#ifndef SYNC_MUTEX_H
#define SYNC_MUTEX_H

#include "../../include/strand/sync.h"
#include "../strand/held.h"
#include "gate.h"

struct mutex {
    struct gate gate;
    void *site; /* where it was locked: for reports about others than its holder */
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

/* It is the caller's now, who has room for the record. */
static inline void mutex_note(struct cb *me, struct mutex *mutex, void *site)
{
    plain_store(&mutex->site, site, memory_order_relaxed);
    held_add(me, mutex, HELD_MUTEX, site);
}

/* Lock it again after a wait for a condition; not interrupted by anything. */
void mutex_lock_again(struct thread **thread, struct cb *me, struct mutex *mutex, void *site);
/* The caller holds it. */
void mutex_release(struct thread *thread, struct cb *me, struct mutex *mutex);
/* Misuse: the caller does not hold it. */
__attribute__((noreturn)) void mutex_not_held(struct thread *thread, struct mutex *mutex, const char *function);

#endif
