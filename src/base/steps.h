/*
 * Included before everything else where the library is compiled with STEPS=1, but for src/arch and src/sim: each atomic
 * operation of the runtime is a step of its own then, before which a seeded run may let another thread go on. Only
 * sequentially consistent orders come of that, whatever order an operation asks for.
 */
#ifndef BASE_STEPS_H
#define BASE_STEPS_H

#include <stdatomic.h>

/* Made by src/arch; does nothing outside of seeded runs. */
void arch_step(void);

#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_exchange_explicit
#undef atomic_compare_exchange_strong_explicit
#undef atomic_compare_exchange_weak_explicit
#undef atomic_fetch_add_explicit
#undef atomic_fetch_sub_explicit
#undef atomic_fetch_or_explicit
#undef atomic_flag_test_and_set_explicit
#undef atomic_flag_clear_explicit

/* Each compiler takes these types by builtins of its own only. */
#ifdef __clang__
#define STEP_FLAG_(p) (&(p)->_Value)
#define atomic_load_explicit(p, order) (arch_step(), __c11_atomic_load(p, order))
#define atomic_store_explicit(p, value, order) (arch_step(), __c11_atomic_store(p, value, order))
#define atomic_exchange_explicit(p, value, order) (arch_step(), __c11_atomic_exchange(p, value, order))
#define atomic_compare_exchange_strong_explicit(p, expected, value, order, other)                                      \
    (arch_step(), __c11_atomic_compare_exchange_strong(p, expected, value, order, other))
#define atomic_fetch_add_explicit(p, value, order) (arch_step(), __c11_atomic_fetch_add(p, value, order))
#define atomic_fetch_sub_explicit(p, value, order) (arch_step(), __c11_atomic_fetch_sub(p, value, order))
#define atomic_fetch_or_explicit(p, value, order) (arch_step(), __c11_atomic_fetch_or(p, value, order))
#define atomic_flag_test_and_set_explicit(p, order) (arch_step(), __c11_atomic_exchange(STEP_FLAG_(p), 1, order))
#define atomic_flag_clear_explicit(p, order) (arch_step(), __c11_atomic_store(STEP_FLAG_(p), 0, order))
#else
#define atomic_load_explicit(p, order) (arch_step(), __atomic_load_n(p, order))
#define atomic_store_explicit(p, value, order) (arch_step(), __atomic_store_n(p, value, order))
#define atomic_exchange_explicit(p, value, order) (arch_step(), __atomic_exchange_n(p, value, order))
#define atomic_compare_exchange_strong_explicit(p, expected, value, order, other)                                      \
    (arch_step(), __atomic_compare_exchange_n(p, expected, value, 0, order, other))
#define atomic_fetch_add_explicit(p, value, order) (arch_step(), __atomic_fetch_add(p, value, order))
#define atomic_fetch_sub_explicit(p, value, order) (arch_step(), __atomic_fetch_sub(p, value, order))
#define atomic_fetch_or_explicit(p, value, order) (arch_step(), __atomic_fetch_or(p, value, order))
#define atomic_flag_test_and_set_explicit(p, order) (arch_step(), __atomic_test_and_set(p, order))
#define atomic_flag_clear_explicit(p, order) (arch_step(), __atomic_clear(p, order))
#endif
/* It fails for no other reason than the strong one: the seed alone decides. */
#define atomic_compare_exchange_weak_explicit(p, expected, value, order, other)                                        \
    atomic_compare_exchange_strong_explicit(p, expected, value, order, other)

#endif
