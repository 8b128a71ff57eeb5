/*
 * Hides the differences between compilers, languages and options from the other headers, and includes the standard
 * headers that all of them use. Nothing here is for programs; strand.h includes it.
 */
#ifndef STRAND_COMPILER_H
#define STRAND_COMPILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A section in which nothing may block, as clang's thread-safety analysis sees it. */
#if defined(__clang__)
struct __attribute__((capability("no-suspend section"))) strand_section_ {
    char unused;
};
extern struct strand_section_ strand_no_suspend_; /* stands in attributes only */
#define STRAND_SECTION_EXCLUDES_ __attribute__((locks_excluded(strand_no_suspend_)))
#else
#define STRAND_SECTION_EXCLUDES_
#endif
#if defined(__clang__) && __clang_major__ >= 18 /* earlier ones don't see what a cleanup attribute releases */
#define STRAND_SECTION_ENTERS_ __attribute__((acquire_capability(strand_no_suspend_)))
#define STRAND_SECTION_LEAVES_ __attribute__((release_capability(strand_no_suspend_)))
#else
#define STRAND_SECTION_ENTERS_
#define STRAND_SECTION_LEAVES_
#endif

/* The pointer in that place is kept for later: what it points to need not be set yet. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 11
#define STRAND_KEEPS_(place) __attribute__((access(none, place)))
#else
#define STRAND_KEEPS_(place)
#endif

/* The attribute of a clean-up at the end of a block. Without -fexceptions an exception would skip the clean-up
 * silently, so the macros that need one do not compile there. Types and functions can be used all the same. */
#if defined(__has_feature)
#if __has_feature(safe_stack)
#define STRAND_CLEANUP_(function) _Pragma("GCC error \"libstrand does not support -fsanitize=safe-stack\"")
#elif __has_feature(memory_sanitizer)
#define STRAND_CLEANUP_(function) _Pragma("GCC error \"libstrand does not support -fsanitize=memory\"")
#endif
#endif
#if defined(STRAND_CLEANUP_)
#elif defined(__EXCEPTIONS)
#define STRAND_CLEANUP_(function) __attribute__((cleanup(function), unused))
#else
#define STRAND_CLEANUP_(function)                                                                                      \
    _Pragma("GCC error \"this macro of libstrand needs -fexceptions (pkg-config --cflags strand)\"")
#endif

#ifdef __cplusplus
#define STRAND_STATIC_ASSERT_ static_assert
#else
#define STRAND_STATIC_ASSERT_ _Static_assert
#endif

/* The type of a set of flags, which are the constants of an enum. In C it is that enum, so compilers warn of the flag
 * of another function. In C++ it is a number, because the sum of two constants has no other type there. */
#ifdef __cplusplus
#define STRAND_FLAGS_(type) unsigned
#else
#define STRAND_FLAGS_(type) enum type
#endif

#define STRAND_PASTE2_(a, b) a##b
#define STRAND_PASTE_(a, b) STRAND_PASTE2_(a, b)

/* If a goto or a case skips the line that opens a block, the clean-up of the block runs on a variable that was never
 * set. clang and C++ compilers refuse such a jump. gcc refuses it in C only where it skips a type of computed size,
 * such as this one. */
#if defined(__GNUC__) && !defined(__clang__) && !defined(__cplusplus)
#define STRAND_BLOCK_BEGINS_                                                                                           \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wvla\"")                                         \
        __attribute__((unused)) typedef char STRAND_PASTE_(strand_a_jump_must_not_skip_this_block_,                    \
                                                           __COUNTER__)[((void)0, 1)];                                 \
    _Pragma("GCC diagnostic pop")
#else
#define STRAND_BLOCK_BEGINS_
#endif

/* gcc assumes that every call after a try block may return to the block, so it warns of what a loop frees at its end.
 * It places the warning at the end of the function, so the warning has to be off from the block on. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#define STRAND_TRY_COMES_BACK_ _Pragma("GCC diagnostic ignored \"-Wuse-after-free\"")
#else
#define STRAND_TRY_COMES_BACK_
#endif

#ifdef __cplusplus
struct strand_nothing_ { /* is never thrown */
    char unused;
};
#endif

/* In a noexcept function, as destructors are, gcc omits clean-ups that stand in no try block of C++. So in C++
 * STRAND_TRY stands in one, which catches nothing. */
#ifdef __cplusplus
#define STRAND_TRY_BEGINS_ try
#define STRAND_TRY_ENDS_                                                                                               \
    catch (::strand_nothing_ &) {}
#else
#define STRAND_TRY_BEGINS_
#define STRAND_TRY_ENDS_
#endif

/* C++ code calls strand_join_cxx_ as strand_join: it throws exceptions of C++ with their types. */
#ifdef __cplusplus
#define STRAND_JOIN_SYMBOL_ __asm__("strand_join_cxx_")
#else
#define STRAND_JOIN_SYMBOL_
#endif

/* Conversions without a cast of C in C++, where -Wold-style-cast would name the caller's line. */
#ifdef __cplusplus
#define STRAND_CAST_(type, value) static_cast<type>(value)
#define STRAND_NULL_(type) static_cast<type>(nullptr)
#else
#define STRAND_CAST_(type, value) ((type)(value))
#define STRAND_NULL_(type) ((type)(void *)0)
#endif

/* The address of a record that lives to the end of the enclosing full expression, or block. C++ compilers warn of each
 * member that an initialiser leaves out. The pragmas turn that off: g++ does not warn in macros of system headers, and
 * from here on this file counts as one; clang has a pragma for the warning itself. */
#ifdef __cplusplus
#pragma GCC system_header
#if defined(__clang__)
#define STRAND_RECORD_(type, ...)                                                                                      \
    _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wmissing-field-initializers\"")              \
        type{__VA_ARGS__} _Pragma("clang diagnostic pop")
#else
#define STRAND_RECORD_(type, ...) (type{__VA_ARGS__})
#endif
#define STRAND_SIZED_(type, ...) (&static_cast<const type &>(STRAND_RECORD_(type, .size = sizeof(type), __VA_ARGS__)))
#define STRAND_SIZED_INIT_(type, ...) STRAND_RECORD_(type, .size = sizeof(type), __VA_ARGS__)
#else
#define STRAND_SIZED_(type, ...) (&(const type){.size = sizeof(type), __VA_ARGS__})
#define STRAND_SIZED_INIT_(type, ...)                                                                                  \
    {                                                                                                                  \
        .size = sizeof(type), __VA_ARGS__                                                                              \
    }
#endif

#endif
