/*
 * The door: everything that depends on time, chance, sleeping or waking goes through these functions, which ask the
 * second driver if there is one (src/sim) and else the machine. Nothing may bypass it.
 */
#ifndef SCHED_DRIVER_H
#define SCHED_DRIVER_H

#include "../base/slab.h"
#include "driver_type.h"
#include "subprocess.h"
#include "thread_type.h"

#include <stdlib.h>

enum { AWAITS_PER_YIELD = 256 };

OWN_INLINE int64_t driver_now(struct subprocess *sub)
{
    return UNLIKELY(sub->driver != NULL) ? sub->driver->now(sub) : arch_clock_ns();
}

/* A counter of constant rate that is cheaper to read than the time, and its rate. */
OWN_INLINE uint64_t driver_ticks(const struct thread *thread)
{
    return UNLIKELY(thread->driver != NULL) ? (uint64_t)thread->driver->now(thread->sub) : arch_ticks();
}

OWN_INLINE uint64_t driver_ticks_per_ms(const struct thread *thread)
{
    return UNLIKELY(thread->driver != NULL) ? UINT64_C(1000000) : arch_ticks_per_ms();
}

/* From a plain thread, or where it is not known on what thread. */
int64_t driver_now_unknown(void);
COLD void driver_relax_unknown(void);
COLD void driver_await_unknown(void);

/* In a spin loop: let whoever is waited for go on. */
OWN_INLINE void driver_relax(struct thread *thread)
{
    if (UNLIKELY(!thread))
        driver_relax_unknown();
    else if (UNLIKELY(thread->driver != NULL))
        thread->driver->relax(thread);
    else
        arch_pause();
}

/* A suspension: under a seed, any thread may be the next to take a step. */
OWN_INLINE void driver_point(struct thread *thread)
{
    if (UNLIKELY(thread->driver != NULL))
        thread->driver->point(thread);
}

/* A number in [0, n), for a choice that may fall as it likes: chance in an ordinary run; in a seeded one the seed's,
 * which may prefer one for long. */
OWN_INLINE uint32_t driver_choose(struct thread *thread, uint32_t n)
{
    return UNLIKELY(thread->driver != NULL) ? thread->driver->choose(thread, n) : rng_below(&thread->rng, n);
}

/* The same where each number must be equally likely. */
OWN_INLINE uint32_t driver_chance(struct thread *thread, uint32_t n)
{
    return UNLIKELY(thread->driver != NULL) ? thread->driver->chance(thread, n) : rng_below(&thread->rng, n);
}

/* Whether a request for memory has to fail, as if there were none: an option of seeded runs. */
OWN_INLINE bool driver_refuses(struct thread *thread)
{
    return UNLIKELY(thread->driver != NULL) && thread->driver->refuses(thread);
}

OWN_INLINE void *driver_malloc(struct thread *thread, size_t size)
{
    return driver_refuses(thread) ? NULL : malloc(size);
}

/* The same as zeros. */
OWN_INLINE void *driver_calloc(struct thread *thread, size_t n, size_t size)
{
    return driver_refuses(thread) ? NULL : calloc(n, size);
}

OWN_INLINE void *driver_slab_get(struct thread *thread, struct slab_cache *cache)
{
    return driver_refuses(thread) ? NULL : slab_get(cache);
}

/* In a loop that waits for a few instructions of another thread. The machine may have stopped that one in the middle of
 * them to run this one: so now and then it is offered its processor. */
OWN_INLINE void driver_await(struct thread *thread)
{
    if (UNLIKELY(!thread))
        driver_await_unknown();
    else if (UNLIKELY(!thread->driver && ++thread->awaits % AWAITS_PER_YIELD == 0))
        arch_thread_yield();
    else
        driver_relax(thread);
}

/* Locks that are held for a few instructions. */
/* A spin lock, for critical sections of a few instructions. */
OWN_INLINE void spin_lock(atomic_flag *lock, struct thread *thread)
{
    while (atomic_flag_test_and_set_explicit(lock, memory_order_acquire)) /* [LK1] */
        driver_await(thread);
    arch_san_acquire(lock);
}

OWN_INLINE void spin_unlock(atomic_flag *lock)
{
    arch_san_release(lock);
    atomic_flag_clear_explicit(lock, memory_order_release); /* [LK1] */
}

/* For data that only threads of the run use: the only thread of a run has nobody to lock out, and needs no atomic
 * operations. */
OWN_INLINE void spin_lock_if_concurrent(atomic_flag *lock, struct thread *thread)
{
    if (thread->concurrent)
        spin_lock(lock, thread);
}

OWN_INLINE void spin_unlock_if_concurrent(atomic_flag *lock, struct thread *thread)
{
    if (thread->concurrent)
        spin_unlock(lock);
}

/* A plain thread, and what it may sleep on, until an instant at the latest: as of arch. */
int driver_thread_start(struct subprocess *sub, struct driver_thread *thread, void *(*fn)(void *), void *arg,
                        const char *name);
/* For a thread that has ended, or is about to. */
void driver_thread_join(struct subprocess *sub, struct driver_thread *thread);
void driver_word_wait(struct subprocess *sub, _Atomic uint32_t *word, uint32_t expected, int64_t deadline);
void driver_word_wake(struct subprocess *sub, _Atomic uint32_t *word, int threads);
/* On a plain thread: something begins, or is over, that takes its time elsewhere than here. */
void driver_plain_point(struct subprocess *sub);

#endif
