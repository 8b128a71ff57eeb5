/*
 * Atomic operations: those of <stdatomic.h> on _Atomic objects, and plain_load, plain_store, plain_fetch_add on fields
 * of other types. Such a field is written by one thread, which may read it without an atomic operation, or under a
 * lock. Other threads access it only by these operations.
 *
 * In a build with STEPS=1 a step of a seeded run precedes each operation: the simulation may let another thread
 * continue there. Seeded runs are sequentially consistent, whatever memory order an operation asks for. src/arch, and
 * src/sim, which simulates the threads, are compiled with STRAND_STEPLESS: their operations are no steps.
 *
 * ORDERING  Three pairings that many protocols use, each with one label in the whole library:
 *           [LK1] taking a lock acquires what its release released: one critical section happens before the next.
 *           [RF1] a decrement of a reference count releases what the holder did. The last one, and a holder that finds
 *           itself alone, acquire what all others did.
 *           [PB1] a store of an address, a length or a mark (release) publishes an object that is complete; a load
 *           (acquire) that finds it finds the object complete. In a list that only grows at its head, by
 *           compare-and-swap, the swaps are one release sequence: the load of the head acquires all of the list, so the
 *           links are read without an order.
 */
#ifndef BASE_ATOMIC_H
#define BASE_ATOMIC_H

#include <stdatomic.h>

/* Does nothing outside of seeded runs. src/arch defines it, because it has the variables of a process and of its
 * threads. It is the only function of a higher layer that base calls, and only in the build with STEPS=1. */
void arch_step(void);

#if defined(STRAND_STEPS) && !defined(STRAND_STEPLESS)
#define ATOMIC_STEP_ arch_step()

#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_exchange_explicit
#undef atomic_compare_exchange_strong_explicit
#undef atomic_compare_exchange_weak_explicit
#undef atomic_fetch_add_explicit
#undef atomic_fetch_sub_explicit
#undef atomic_fetch_or_explicit
#undef atomic_fetch_and_explicit
#undef atomic_flag_test_and_set_explicit
#undef atomic_flag_clear_explicit

/* Each compiler accepts these types only in its own builtins. */
#ifdef __clang__
#define ATOMIC_FLAG_(p) (&(p)->_Value)
#define atomic_load_explicit(p, order) (ATOMIC_STEP_, __c11_atomic_load(p, order))
#define atomic_store_explicit(p, value, order) (ATOMIC_STEP_, __c11_atomic_store(p, value, order))
#define atomic_exchange_explicit(p, value, order) (ATOMIC_STEP_, __c11_atomic_exchange(p, value, order))
#define atomic_compare_exchange_strong_explicit(p, expected, value, order, other)                                      \
    (ATOMIC_STEP_, __c11_atomic_compare_exchange_strong(p, expected, value, order, other))
#define atomic_fetch_add_explicit(p, value, order) (ATOMIC_STEP_, __c11_atomic_fetch_add(p, value, order))
#define atomic_fetch_sub_explicit(p, value, order) (ATOMIC_STEP_, __c11_atomic_fetch_sub(p, value, order))
#define atomic_fetch_or_explicit(p, value, order) (ATOMIC_STEP_, __c11_atomic_fetch_or(p, value, order))
#define atomic_fetch_and_explicit(p, value, order) (ATOMIC_STEP_, __c11_atomic_fetch_and(p, value, order))
#define atomic_flag_test_and_set_explicit(p, order) (ATOMIC_STEP_, __c11_atomic_exchange(ATOMIC_FLAG_(p), 1, order))
#define atomic_flag_clear_explicit(p, order) (ATOMIC_STEP_, __c11_atomic_store(ATOMIC_FLAG_(p), 0, order))
#else
#define atomic_load_explicit(p, order) (ATOMIC_STEP_, __atomic_load_n(p, order))
#define atomic_store_explicit(p, value, order) (ATOMIC_STEP_, __atomic_store_n(p, value, order))
#define atomic_exchange_explicit(p, value, order) (ATOMIC_STEP_, __atomic_exchange_n(p, value, order))
#define atomic_compare_exchange_strong_explicit(p, expected, value, order, other)                                      \
    (ATOMIC_STEP_, __atomic_compare_exchange_n(p, expected, value, 0, order, other))
#define atomic_fetch_add_explicit(p, value, order) (ATOMIC_STEP_, __atomic_fetch_add(p, value, order))
#define atomic_fetch_sub_explicit(p, value, order) (ATOMIC_STEP_, __atomic_fetch_sub(p, value, order))
#define atomic_fetch_or_explicit(p, value, order) (ATOMIC_STEP_, __atomic_fetch_or(p, value, order))
#define atomic_fetch_and_explicit(p, value, order) (ATOMIC_STEP_, __atomic_fetch_and(p, value, order))
#define atomic_flag_test_and_set_explicit(p, order) (ATOMIC_STEP_, __atomic_test_and_set(p, order))
#define atomic_flag_clear_explicit(p, order) (ATOMIC_STEP_, __atomic_clear(p, order))
#endif
/* Never fails spuriously, as the strong operation: the seed alone decides. */
#define atomic_compare_exchange_weak_explicit(p, expected, value, order, other)                                        \
    atomic_compare_exchange_strong_explicit(p, expected, value, order, other)
#else
#define ATOMIC_STEP_ ((void)0)
#endif

#define plain_load(p, order) (ATOMIC_STEP_, __atomic_load_n(p, order))
#define steady_load(p, order) __atomic_load_n(p, order) /* of the process, not of a run: no step */
#define plain_store(p, value, order) (ATOMIC_STEP_, __atomic_store_n(p, value, order))
#define plain_fetch_add(p, value, order) (ATOMIC_STEP_, __atomic_fetch_add(p, value, order))

#endif
