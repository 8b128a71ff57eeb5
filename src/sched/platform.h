/*
 * The platform interface: everything that depends on time, chance, sleeping or waking goes through these functions. In
 * a seeded run they call the second platform (src/sim), else the machine. No code may bypass them.
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

/* Returns a counter of constant rate, which is cheaper to read than the time. */
OWN_INLINE uint64_t platform_ticks(const struct thread *thread)
{
    return UNLIKELY(thread->platform != NULL) ? (uint64_t)thread->platform->now(thread->sub) : arch_ticks();
}

/* Returns the rate of platform_ticks. */
OWN_INLINE uint64_t platform_ticks_per_ms(const struct thread *thread)
{
    return UNLIKELY(thread->platform != NULL) ? UINT64_C(1000000) : arch_ticks_per_ms();
}

/* As platform_now, platform_relax and platform_await, for a plain thread, or where the kind of thread is unknown. */
int64_t platform_now_unknown(void);
COLD void platform_relax_unknown(void);
COLD void platform_await_unknown(void);
COLD void platform_await_long(struct thread *thread);

/* Returns whether the run belongs to a parent of this process, which has forked: no thread here continues it. */
OWN_INLINE bool subprocess_is_left(const struct subprocess *sub)
{
    return UNLIKELY(sub->generation != arch_generation);
}

/* Call this where the child of a fork may return: if a user function that the library called here has forked, or a
 * signal handler while the thread waited. The child must not continue the parent's strands: the call ends it. Switches
 * make the call only if SWITCH_CHECK is set, and the handler of forks sets that. */
OWN_INLINE void thread_must_not_be_left(const struct thread *thread)
{
    if (subprocess_is_left(thread->sub))
        thread->sub->ops->orphaned(thread->sub);
}

/* Lets the thread that is waited for continue. Called in a spin loop. */
OWN_INLINE void platform_relax(struct thread *thread)
{
    if (UNLIKELY(!thread))
        platform_relax_unknown();
    else if (UNLIKELY(thread->platform != NULL))
        thread->platform->relax(thread);
    else
        arch_pause();
}

/* Marks a suspension: in a seeded run, any thread may take the next step. */
OWN_INLINE void platform_point(struct thread *thread)
{
    if (UNLIKELY(thread->platform != NULL))
        thread->platform->point(thread);
}

/* Returns a number in [0, n), for a choice that may have any result. An ordinary run chooses at random. In a seeded run
 * the seed chooses, and may prefer one number for a long time. */
OWN_INLINE uint32_t platform_choose(struct thread *thread, uint32_t n)
{
    return UNLIKELY(thread->platform != NULL) ? thread->platform->choose(thread, n) : rng_below(&thread->rng, n);
}

/* As platform_choose, but each number is equally likely. */
OWN_INLINE uint32_t platform_chance(struct thread *thread, uint32_t n)
{
    return UNLIKELY(thread->platform != NULL) ? thread->platform->chance(thread, n) : rng_below(&thread->rng, n);
}

/* Returns whether a request for memory must fail, as if there were none: an option of seeded runs. */
OWN_INLINE bool platform_refuses(struct thread *thread)
{
    return UNLIKELY(thread->platform != NULL) && thread->platform->refuses(thread);
}

OWN_INLINE void *platform_malloc(struct thread *thread, size_t size)
{
    return platform_refuses(thread) ? NULL : malloc(size);
}

/* As platform_malloc, with zeroed memory. */
OWN_INLINE void *platform_calloc(struct thread *thread, size_t n, size_t size)
{
    return platform_refuses(thread) ? NULL : calloc(n, size);
}

OWN_INLINE void *platform_slab_get(struct thread *thread, struct slab_cache *cache)
{
    return platform_refuses(thread) ? NULL : slab_get(cache);
}

/* Pauses in a loop that waits for a few instructions of another thread. The system may have stopped that thread in the
 * middle of them to run this one, so some calls yield the processor. */
OWN_INLINE void platform_await(struct thread *thread)
{
    if (UNLIKELY(!thread))
        platform_await_unknown();
    else if (UNLIKELY(!thread->platform && ++thread->awaits % AWAITS_PER_YIELD == 0))
        platform_await_long(thread);
    else
        platform_relax(thread);
}

/* Takes a spin lock, which is held for a few instructions. thread: the caller's record, or NULL. */
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

/* Takes a lock of data that only threads of the run use. The only thread of a run excludes no other, and needs no
 * atomic operations. */
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

/* Start and join a plain thread; wait on a word, until an instant at the latest, and wake such waiters. As the
 * functions of arch. signalled: it runs functions of the program, so that signals may reach it. */
int platform_thread_start(struct subprocess *sub, struct platform_thread *thread, void *(*fn)(void *), void *arg,
                          const char *name, bool signalled);
/* Waits for the end of a thread that has ended, or is about to. */
void platform_thread_join(struct subprocess *sub, struct platform_thread *thread);
void platform_word_wait(struct subprocess *sub, _Atomic uint32_t *word, uint32_t expected, int64_t deadline);
void platform_word_wake(struct subprocess *sub, _Atomic uint32_t *word, int threads);
/* Called on a plain thread before and after a call that may take long: in a seeded run, any thread may go on first. */
void platform_plain_point(struct subprocess *sub);

#endif
