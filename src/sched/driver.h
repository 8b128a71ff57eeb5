/*
 * The door: everything that depends on time, chance, sleeping or waking goes through these functions, which ask the
 * second driver if there is one (src/sim) and else the machine. Nothing may bypass it.
 */
#ifndef SCHED_DRIVER_H
#define SCHED_DRIVER_H

#include "sched.h"

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

/* In a spin loop: let whoever is waited for go on. */
OWN_INLINE void driver_relax(struct thread *thread)
{
    if (UNLIKELY(thread && thread->driver))
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

/* A number in [0, n): chance in an ordinary run, the seed's choice in a seeded one. */
OWN_INLINE uint32_t driver_choose(struct thread *thread, uint32_t n)
{
    return UNLIKELY(thread->driver != NULL) ? thread->driver->choose(thread, n) : rng_below(&thread->rng, n);
}

/* Sleep until somebody calls driver_wake for this thread, or until the instant deadline. Early returns are allowed. */
void driver_sleep(struct thread *thread, int64_t deadline);
void driver_wake(struct thread *thread);

/* In a loop that waits for a few instructions of another thread. The machine may have stopped that one in the middle of
 * them to run this one: so now and then it is offered its processor. */
OWN_INLINE void driver_await(struct thread *thread)
{
    if (UNLIKELY(thread && !thread->driver && ++thread->awaits % AWAITS_PER_YIELD == 0))
        arch_thread_yield();
    else
        driver_relax(thread);
}

/* Locks that are held for a few instructions. */
OWN_INLINE void spin_lock(atomic_flag *lock, struct thread *thread)
{
    while (atomic_flag_test_and_set_explicit(lock, memory_order_acquire))
        driver_await(thread);
    arch_note_acquire(lock);
}

OWN_INLINE void spin_unlock(atomic_flag *lock)
{
    arch_note_release(lock);
    atomic_flag_clear_explicit(lock, memory_order_release);
}

/* The seeker's wait: as driver_sleep, but for descriptors too: returns how many events there are. driver_unpoll ends
 * it. */
int driver_poll(struct thread *thread, struct arch_event *events, int most, int64_t deadline);
void driver_unpoll(struct pool *pool, struct thread *seeker);

/* The second driver is made by src/sim, which nothing includes. It is put into the sub-process before its pool is made;
 * closing does nothing if there is none. Returns 0 or a negated errno code. */
int driver_second_open(struct subprocess *sub, uint64_t seed);
void driver_second_close(struct subprocess *sub);

#endif
