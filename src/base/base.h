/*
 * What every file uses: assertions, attributes, containers' cast. C only, no system.
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
/* Inline functions on data that belongs to a thread, not to the strand that runs on it: TSan does not look into them,
 * since strands follow each other there without an order that it could see. What order there is, is announced by hand.
 */
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
#define HIDDEN __attribute__((visibility("hidden"))) /* for data: reached without a table of addresses */
#define CACHE_LINE 64
#define CONTAINER(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* A bug of ours: in all builds. The handler is set once by src/arch/process.c; it prints and aborts. */
__attribute__((noreturn)) void base_bug(const char *file, int line, const char *what);

#define ASSERT(condition) ((condition) ? (void)0 : base_bug(__FILE__, __LINE__, #condition))
#ifdef STRAND_DEBUG_BUILD
#define ASSERT_SLOW(condition) ASSERT(condition)
#else
#define ASSERT_SLOW(condition) ((void)0)
#endif
#define UNREACHABLE() base_bug(__FILE__, __LINE__, "unreachable")

#endif
