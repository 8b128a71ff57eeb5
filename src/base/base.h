/*
 * The base of every file: assertions, attributes, the cast from a member to its container. C only, no system.
 */
#ifndef BASE_BASE_H
#define BASE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define NOINLINE __attribute__((noinline))
#define COLD __attribute__((noinline, cold))
/* For inline functions on data that belongs to a thread, not to the strand that runs on it. TSan does not instrument
 * them: strands follow each other there without an order that it could see. Where there is an order, it is annotated
 * explicitly. */
#if !defined(STRAND_TSAN)
#define OWN_INLINE static inline
#define OWN_INLINE_ALWAYS static inline __attribute__((always_inline))
#elif defined(__clang__)
#define OWN_INLINE static __attribute__((noinline, unused, disable_sanitizer_instrumentation))
#define OWN_INLINE_ALWAYS OWN_INLINE
#else
#define OWN_INLINE static __attribute__((noinline, unused, no_sanitize("thread")))
#define OWN_INLINE_ALWAYS OWN_INLINE
#endif
#define HIDDEN __attribute__((visibility("hidden"))) /* for data: accessed without the global offset table */
#define CACHE_LINE 64
#define CONTAINER(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* A bug in the library; checked in all builds. src/arch/process.c sets the handler once; it prints and aborts. */
__attribute__((noreturn)) void base_bug(const char *file, int line, const char *what);

#define ASSERT(condition) ((condition) ? (void)0 : base_bug(__FILE__, __LINE__, #condition))
#ifdef STRAND_DEBUG_BUILD
#define ASSERT_SLOW(condition) ASSERT(condition)
#else
#define ASSERT_SLOW(condition) ((void)0)
#endif
#define UNREACHABLE() base_bug(__FILE__, __LINE__, "unreachable")

#endif
