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
