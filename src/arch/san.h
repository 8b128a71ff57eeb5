/*
 * What the library announces to sanitizers and valgrind about stacks, switches and order. It finds out once, before the
 * first run, which tool watches the program (arch_tool_find): the sanitizers' functions are weak symbols, and
 * valgrind answers a request. So one library serves ordinary programs and those that a user builds with a sanitizer.
 * Without a tool each of these calls is one predictable branch.
 *
 * The order at a switch: arch_san_leave on the old stack, the jump, arch_san_arrive on the new one, also when a
 * context is entered for the first time. A struct arch_san may be copied while its stack runs; only one copy is used
 * from then on. Included by arch.h only.
 *
 *   thread      n is the calling thread's own stack; thread_end: it is not used for switches any more
 *   make, end   n is the stack of a new context; that context has ended, and is left already
 *   leave       switch from `from` to `to`; `ends`: `from` is never resumed
 *   suspended   n was left at `context`, for now or for good; resumed: n is about to be resumed. Any thread
 *   throw       an exception is about to unwind frames of the calling context
 *   unwritten   this memory is read before it is written, on purpose
 *   unmap       this memory is about to be unmapped, whatever stacks lie in it
 *   save        n, suspended at `at`, is copied out: `bytes` from there on go to a saved stack of
 *               arch_saved_size(bytes), in which the caller has stored `beside` more bytes right behind them, together
 *               with n. load: it is copied in again, and n is what was saved
 *   start       the frames of a saved stack that stays, for a new context; drop: that saved stack is not used any more
 *   release     this thread's actions so far happen before those after an arch_san_acquire of the same address
 *
 * The tool also decides: arch_san_separate, whether every strand needs a context of its own, so that two which run
 * one after the other on one stack are not considered ordered; arch_san_membarrier, whether arch_membarrier may be
 * used; arch_san_threads, how many threads of its own it has; arch_san_handles, how much address space it leaves
 * for the handle range.
 *
 * A library that is itself compiled with a sanitizer (MODE=asan, MODE=tsan) makes the same calls. All its files must
 * agree on that: otherwise it does not link (ARCH_SAN_VARIANT). ARCH_NOT_INSTRUMENTED hides a function from TSan in
 * such a library. All functions need it that are left by arch_longjmp and so never report their return, or that access,
 * at a switch, data that is ordered only after the switch.
 */
#ifndef ARCH_SAN_H
#define ARCH_SAN_H

#ifdef __has_feature
#define ARCH_HAS_FEATURE_(x) __has_feature(x)
#else
#define ARCH_HAS_FEATURE_(x) 0
#endif

#if defined(__SANITIZE_THREAD__) || ARCH_HAS_FEATURE_(thread_sanitizer) || defined(STRAND_TSAN)
#define ARCH_SAN_VARIANT arch_san_is_tsan_
/* clang reports entries and exits also of functions that are not sanitized. */
#ifdef __clang__
#define ARCH_NOT_INSTRUMENTED __attribute__((disable_sanitizer_instrumentation))
#else
#define ARCH_NOT_INSTRUMENTED __attribute__((no_sanitize("thread")))
#endif
#else
#if defined(__SANITIZE_ADDRESS__) || ARCH_HAS_FEATURE_(address_sanitizer)
#define ARCH_SAN_VARIANT arch_san_is_asan_
#else
#define ARCH_SAN_VARIANT arch_san_is_none_
#endif
#define ARCH_NOT_INSTRUMENTED
#endif

extern const char ARCH_SAN_VARIANT;

/* LSAN: LeakSanitizer alone. MemorySanitizer is not supported: it needs an instrumented library. */
enum arch_tool { ARCH_TOOL_NONE, ARCH_TOOL_ASAN, ARCH_TOOL_LSAN, ARCH_TOOL_TSAN, ARCH_TOOL_VALGRIND };

/* Both are written once, under the process's lock, before the first run. */
extern HIDDEN uint8_t arch_tool;       /* enum arch_tool */
extern HIDDEN bool arch_tool_is_order; /* the tool is TSan, the only one that must know of order */

struct arch_san_stack; /* the tool's record of a stack: san.c */
struct arch_san {
    struct arch_san_stack *of; /* unset without a tool */
};

/* san.c */
void arch_san_thread_(struct arch_san *n);
void arch_san_thread_end_(struct arch_san *n);
void arch_san_make_(struct arch_san *n, char *low, size_t size);
void arch_san_end_(struct arch_san *n);
void arch_san_leave_(struct arch_san *from, struct arch_san *to, bool ends);
void arch_san_arrive_(struct arch_san *to);
void arch_san_suspended_(struct arch_san *n, arch_context context);
void arch_san_resumed_(struct arch_san *n);
void arch_san_throw_(void);
void arch_san_unmap_(void *p, size_t size);
size_t arch_saved_size_(size_t bytes);
void arch_saved_store_(struct arch_san *n, void *saved, const char *at, size_t bytes, size_t beside);
void arch_saved_load_(struct arch_san *n, const void *saved, char *at, size_t bytes, size_t beside);
void arch_saved_start_(struct arch_san *n, const void *saved, char *at, size_t bytes);
void arch_saved_drop_(void *saved, size_t bytes);

static inline bool arch_san_separate(void)
{
    return UNLIKELY(arch_tool_is_order);
}

static inline bool arch_san_membarrier(void)
{
    return arch_tool != ARCH_TOOL_TSAN && arch_tool != ARCH_TOOL_VALGRIND;
}

static inline int arch_san_threads(void)
{
    return arch_tool == ARCH_TOOL_TSAN;
}

/* TSan leaves a program about 1.5 TiB around the shared libraries, at a random address. */
static inline size_t arch_san_handles(void)
{
    return (size_t)1 << (arch_tool == ARCH_TOOL_TSAN ? 36 : 40);
}

static inline void arch_san_thread(struct arch_san *n)
{
    (void)*(const volatile char *)&ARCH_SAN_VARIANT;
    if (UNLIKELY(arch_tool))
        arch_san_thread_(n);
}

ARCH_NOT_INSTRUMENTED static inline void arch_san_make(struct arch_san *n, char *low, size_t size)
{
    if (UNLIKELY(arch_tool))
        arch_san_make_(n, low, size);
}

ARCH_NOT_INSTRUMENTED static inline void arch_san_end(struct arch_san *n)
{
    if (UNLIKELY(arch_tool))
        arch_san_end_(n);
}

static inline void arch_san_thread_end(struct arch_san *n)
{
    if (UNLIKELY(arch_tool))
        arch_san_thread_end_(n);
}

ARCH_NOT_INSTRUMENTED static inline void arch_san_leave(struct arch_san *from, struct arch_san *to, bool ends)
{
    if (UNLIKELY(arch_tool))
        arch_san_leave_(from, to, ends);
}

ARCH_NOT_INSTRUMENTED static inline void arch_san_arrive(struct arch_san *to)
{
    if (UNLIKELY(arch_tool))
        arch_san_arrive_(to);
}

ARCH_NOT_INSTRUMENTED static inline void arch_san_suspended(struct arch_san *n, arch_context context)
{
    if (UNLIKELY(arch_tool))
        arch_san_suspended_(n, context);
}

ARCH_NOT_INSTRUMENTED static inline void arch_san_resumed(struct arch_san *n)
{
    if (UNLIKELY(arch_tool))
        arch_san_resumed_(n);
}

static inline void arch_san_throw(void)
{
    if (UNLIKELY(arch_tool))
        arch_san_throw_();
}

static inline void arch_san_unmap(void *p, size_t size)
{
    if (UNLIKELY(arch_tool))
        arch_san_unmap_(p, size);
}

/* Calls that preserve the general registers, so that an announcement of order costs the compiler none. The library is
 * compiled with -mno-red-zone. */
#define ARCH_ORDER_(call, p) __asm__ volatile("call " call : : "D"(p) : ARCH_VECTORS_, "cc")

ARCH_NOT_INSTRUMENTED __attribute__((always_inline)) static inline void arch_san_release(const volatile void *p)
{
    if (UNLIKELY(arch_tool_is_order))
        ARCH_ORDER_("arch_san_release_", p);
}

ARCH_NOT_INSTRUMENTED __attribute__((always_inline)) static inline void arch_san_acquire(const volatile void *p)
{
    if (UNLIKELY(arch_tool_is_order))
        ARCH_ORDER_("arch_san_acquire_", p);
}

ARCH_NOT_INSTRUMENTED static inline size_t arch_saved_size(size_t bytes)
{
    return UNLIKELY(arch_tool) ? arch_saved_size_(bytes) : bytes;
}

ARCH_NOT_INSTRUMENTED static inline void arch_saved_store(struct arch_san *n, void *saved, const char *at, size_t bytes,
                                                          size_t beside)
{
    if (UNLIKELY(arch_tool))
        arch_saved_store_(n, saved, at, bytes, beside);
    else
        __builtin_memcpy(saved, at, bytes);
}

ARCH_NOT_INSTRUMENTED static inline void arch_saved_load(struct arch_san *n, const void *saved, char *at, size_t bytes,
                                                         size_t beside)
{
    if (UNLIKELY(arch_tool))
        arch_saved_load_(n, saved, at, bytes, beside);
    else
        __builtin_memcpy(at, saved, bytes);
}

ARCH_NOT_INSTRUMENTED static inline void arch_saved_start(struct arch_san *n, const void *saved, char *at, size_t bytes)
{
    if (UNLIKELY(arch_tool))
        arch_saved_start_(n, saved, at, bytes);
    else
        __builtin_memcpy(at, saved, bytes);
}

static inline void arch_saved_drop(void *saved, size_t bytes)
{
    if (UNLIKELY(arch_tool))
        arch_saved_drop_(saved, bytes);
}

/* ---- valgrind's requests ----------------------------------------------------------------------------------- */

enum arch_valgrind {
    ARCH_VALGRIND_RUNS = 0x1001,             /* () */
    ARCH_VALGRIND_STACK_REGISTER = 0x1501,   /* (low, top): an id */
    ARCH_VALGRIND_STACK_DEREGISTER = 0x1502, /* (id) */
    ARCH_MEMCHECK_NOACCESS = 0x4d430000,     /* (at, size), as the two below */
    ARCH_MEMCHECK_UNDEFINED = 0x4d430001,
    ARCH_MEMCHECK_DEFINED = 0x4d430002,
};

/* Instructions without effect that valgrind recognises (its manual, "The client request mechanism"): 0 without it. */
__attribute__((always_inline)) static inline uint64_t arch_valgrind(enum arch_valgrind request, uintptr_t a,
                                                                    uintptr_t b)
{
    volatile uint64_t question[6] = {request, a, b, 0, 0, 0};
    uint64_t answer;
    __asm__ volatile("rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\trolq $51, %%rdi\n\txchgq %%rbx, %%rbx"
                     : "=d"(answer)
                     : "a"(&question[0]), "0"(0)
                     : "cc", "memory");
    return answer;
}

/* Not a call: its return would invalidate again what lies below the caller's frame. */
__attribute__((always_inline)) static inline void arch_san_unwritten(void *p, size_t size)
{
    if (UNLIKELY(arch_tool == ARCH_TOOL_VALGRIND))
        (void)arch_valgrind(ARCH_MEMCHECK_DEFINED, (uintptr_t)p, size);
}

#endif
