/*
 * The platform interface: everything that depends on time, chance, sleeping or waking goes through these functions,
 * which ask the second platform (src/sim) in a seeded run, and else the machine. Nothing may bypass them.
 */
#ifndef SCHED_PLATFORM_H
#define SCHED_PLATFORM_H

#include "../base/slab.h"
#include "platform_type.h"
#include "subprocess.h"
#include "thread_type.h"

#include <stdlib.h>

enum { AWAITS_PER_YIELD = 256 };

OWN_INLINE int64_t platform_now(struct subprocess *sub)
{
    return UNLIKELY(sub->platform != NULL) ? sub->platform->now(sub) : arch_clock_ns();
}

/* A counter of constant rate that is cheaper to read than the time, and its rate. */
OWN_INLINE uint64_t platform_ticks(const struct thread *thread)
{
    return UNLIKELY(thread->platform != NULL) ? (uint64_t)thread->platform->now(thread->sub) : arch_ticks();
}

OWN_INLINE uint64_t platform_ticks_per_ms(const struct thread *thread)
{
    return UNLIKELY(thread->platform != NULL) ? UINT64_C(1000000) : arch_ticks_per_ms();
}

/* From a plain thread, or where it is not known on what thread. */
int64_t platform_now_unknown(void);
COLD void platform_relax_unknown(void);
COLD void platform_await_unknown(void);

/* In a spin loop: let whoever is waited for go on. */
OWN_INLINE void platform_relax(struct thread *thread)
{
    if (UNLIKELY(!thread))
        platform_relax_unknown();
    else if (UNLIKELY(thread->platform != NULL))
        thread->platform->relax(thread);
    else
        arch_pause();
}

/* A suspension: under a seed, any thread may be the next to take a step. */
OWN_INLINE void platform_point(struct thread *thread)
{
    if (UNLIKELY(thread->platform != NULL))
        thread->platform->point(thread);
}

/* A number in [0, n), for a choice that may fall as it likes: chance in an ordinary run; in a seeded one the seed's,
 * which may prefer one for long. */
OWN_INLINE uint32_t platform_choose(struct thread *thread, uint32_t n)
{
    return UNLIKELY(thread->platform != NULL) ? thread->platform->choose(thread, n) : rng_below(&thread->rng, n);
}

/* The same where each number must be equally likely. */
OWN_INLINE uint32_t platform_chance(struct thread *thread, uint32_t n)
{
    return UNLIKELY(thread->platform != NULL) ? thread->platform->chance(thread, n) : rng_below(&thread->rng, n);
}

/* Whether a request for memory has to fail, as if there were none: an option of seeded runs. */
OWN_INLINE bool platform_refuses(struct thread *thread)
{
    return UNLIKELY(thread->platform != NULL) && thread->platform->refuses(thread);
}

OWN_INLINE void *platform_malloc(struct thread *thread, size_t size)
{
    return platform_refuses(thread) ? NULL : malloc(size);
}

/* The same as zeros. */
OWN_INLINE void *platform_calloc(struct thread *thread, size_t n, size_t size)
{
    return platform_refuses(thread) ? NULL : calloc(n, size);
}

OWN_INLINE void *platform_slab_get(struct thread *thread, struct slab_cache *cache)
{
    return platform_refuses(thread) ? NULL : slab_get(cache);
}

/* In a loop that waits for a few instructions of another thread. The machine may have stopped that one in the middle of
 * them to run this one: so now and then it is offered its processor. */
OWN_INLINE void platform_await(struct thread *thread)
{
    if (UNLIKELY(!thread))
        platform_await_unknown();
    else if (UNLIKELY(!thread->platform && ++thread->awaits % AWAITS_PER_YIELD == 0))
        arch_thread_yield();
    else
        platform_relax(thread);
}

/* Locks that are held for a few instructions. */
/* A spin lock, for critical sections of a few instructions. */
OWN_INLINE void spin_lock(atomic_flag *lock, struct thread *thread)
{
    while (atomic_flag_test_and_set_explicit(lock, memory_order_acquire)) /* [LK1] */
        platform_await(thread);
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
int platform_thread_start(struct subprocess *sub, struct platform_thread *thread, void *(*fn)(void *), void *arg,
                          const char *name);
/* For a thread that has ended, or is about to. */
void platform_thread_join(struct subprocess *sub, struct platform_thread *thread);
void platform_word_wait(struct subprocess *sub, _Atomic uint32_t *word, uint32_t expected, int64_t deadline);
void platform_word_wake(struct subprocess *sub, _Atomic uint32_t *word, int threads);
/* On a plain thread: something begins, or is over, that takes its time elsewhere than here. */
void platform_plain_point(struct subprocess *sub);

#endif
