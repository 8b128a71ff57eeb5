/*
 * Exceptions: a kind, a message and a trace. strand.h includes this header. docs/errors.md has the rules in one place.
 *
 * Which callers:
 *
 *   any thread with a     strand_exception_text, strand_exception_code, strand_exception_kind, strand_exception_is,
 *   reference             strand_exception_payload, strand_exception_cause, strand_exception_suppressed,
 *                         strand_exception_who, strand_exception_why, strand_exception_progress,
 *                         strand_exception_print, strand_exception_keep, strand_exception_release
 *   any strand            all other functions, STRAND_TRY
 *   a signal handler      no function
 *
 * Suspension: no function suspends by itself or is a cancellation point.
 *
 * Cost: a few nanoseconds, unless a function says otherwise.
 */
#ifndef STRAND_EXCEPTIONS_H
#define STRAND_EXCEPTIONS_H

#include "../strand.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- kinds ------------------------------------------------------------------------------------------------- */

/**
 * The kind of an exception. Its address identifies it. Define your own with a parent at or below STRAND_ERROR: as
 * static const in the only source file that uses it; else declare it in a header and define it in one source file:
 *
 *     extern const strand_kind NO_SUCH_USER;                                      in the header
 *     const strand_kind NO_SUCH_USER = STRAND_KIND("NO_SUCH_USER", &STRAND_ERROR);    in the source file
 *
 * A static one in a header is another kind in each file that includes the header, and no catch block of another file
 * matches it. The report of an uncaught exception says so.
 */
typedef struct strand_kind {
    size_t size;                      /* sizeof(strand_kind) */
    const char *name;                 /* for messages */
    const struct strand_kind *parent; /* the kind above it */
    const void *reserved;             /* NULL */
} strand_kind;

/** Initialise a kind with its name and the address of its parent. */
#define STRAND_KIND(name, parent)                                                                                      \
    {                                                                                                                  \
        sizeof(strand_kind), (name), (parent), NULL                                                                    \
    }

/**
 * The kinds of the library. Indentation shows the tree:
 *
 *     STRAND_ANY                    the root of the tree
 *       STRAND_INTERRUPTED          a source interrupted the strand; not an error, and never thrown by users
 *       STRAND_ERROR                the root of all errors
 *         STRAND_TIMED_OUT          a deadline block was left by its deadline
 *         STRAND_CHILD_CANCELLED    the joined child ended interrupted
 *           STRAND_PRUNED           likewise; a priority semaphore had pruned this child (strand/limit.h)
 *         STRAND_LIVE_STRANDS       a scope was left with a child that its owner had neither joined nor cancelled
 *         STRAND_DEADLOCK           no strand of the run can continue (strand/pool.h: strand_options.out_of_work)
 *         STRAND_FOREIGN            a C++ exception left the function of a strand or an actor (docs/cxx.md)
 *         STRAND_SYSTEM             the system refused a resource; carries a negated errno code
 */
extern const strand_kind STRAND_ANY;
extern const strand_kind STRAND_INTERRUPTED;
extern const strand_kind STRAND_ERROR;
extern const strand_kind STRAND_TIMED_OUT;
extern const strand_kind STRAND_CHILD_CANCELLED;
extern const strand_kind STRAND_PRUNED;
extern const strand_kind STRAND_LIVE_STRANDS;
extern const strand_kind STRAND_DEADLOCK;
extern const strand_kind STRAND_FOREIGN;
extern const strand_kind STRAND_SYSTEM;

/* ---- exceptions -------------------------------------------------------------------------------------------- */

/** An exception: a kind, a message and a trace. It is reference-counted; a caller that owns a reference releases it by
 * strand_exception_release. NULL for an exception is misuse where a function's text does not allow it. */
typedef struct strand_exception strand_exception;

/** Get the message of an exception. It is valid as long as `e` is. */
const char *strand_exception_text(const strand_exception *e);
/** Get the error code of an exception: a negated errno code, or 0 if it has none. It is that of strand_throw_with,
 * strand_must, or of the library's own STRAND_SYSTEM. */
int strand_exception_code(const strand_exception *e);
/** Get the kind of an exception: the address that was given to the function that threw it. It is valid as long as that
 * object, which for a static kind is the life of the program or of its plug-in. */
const strand_kind *strand_exception_kind(const strand_exception *e);
/** Check whether the kind of an exception is `kind` or below it. Returns true if the kind is. Cost: O(depth of the kind
 * in the tree). */
bool strand_exception_is(const strand_exception *e, const strand_kind *kind);
/** Get the payload of an exception (strand_throw_with). Returns NULL if it has none. The exception owns the payload: it
 * is valid as long as `e` is. */
void *strand_exception_payload(const strand_exception *e);
/** Get the cause of an exception. Returns NULL if it has none. `e` owns the reference: the cause is valid as long as
 * `e` is. */
const strand_exception *strand_exception_cause(const strand_exception *e);
/** Get the suppressed exception of index `i` (from 0): one that occurred while `e` was in flight. An exception keeps
 * the first 256. Returns NULL past the last one. `e` owns the reference: the result is valid as long as `e` is. Cost:
 * O(i). */
const strand_exception *strand_exception_suppressed(const strand_exception *e, size_t i);
/** Get the name of the strand that cancelled, of a STRAND_INTERRUPTED or STRAND_CHILD_CANCELLED. Returns "" if it is
 * unknown. The name is valid as long as `e` is. */
const char *strand_exception_who(const strand_exception *e);
/** Get the reason of a cancellation: the text that the strand in strand_exception_who gave. Returns "" if it gave none.
 * The text is valid as long as `e` is. */
const char *strand_exception_why(const strand_exception *e);
/** Get the number of bytes that a composite operation had transferred when it was interrupted, also by a deadline
 * (STRAND_TIMED_OUT); or 0 for other exceptions. */
uint64_t strand_exception_progress(const strand_exception *e);
/** Print an exception to a descriptor: kind, message, trace across strands, causes and suppressed exceptions. A long
 * list is cut, and its length is printed. Control characters in texts and names are printed as hexadecimal escapes. The
 * call blocks its thread while the descriptor blocks. Cost: a look-up of each function in the trace, and system
 * calls. */
void strand_exception_print(const strand_exception *e, int fd);
/** Get a reference to an exception that is valid beyond the catch block. The caller releases it by
 * strand_exception_release. Returns `e`. */
strand_exception *strand_exception_keep(strand_exception *e);
/** Release a reference to an exception, from strand_exception_keep, strand_try or strand_scope_failure. NULL has no
 * effect. Cost: for the last reference O(exceptions that it holds). */
void strand_exception_release(strand_exception *e);

/* ---- throwing ---------------------------------------------------------------------------------------------- */

/**
 * Throw a new exception. The message is formatted as by printf and cut at 200 bytes; the trace is taken here. Throwing
 * a kind at or below STRAND_INTERRUPTED is misuse, and so are a kind without its size, name or parent (STRAND_KIND) and
 * throwing on a plain thread. An exception that leaves a clean-up which runs because of another exception ends the
 * program with both traces. Cost: about 100 ns, and 15 to 20 ns for each function that the exception leaves, beside its
 * clean-ups.
 */
STRAND_NORETURN void strand_throw(const strand_kind *kind, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** The optional parts of an exception, for strand_throw_with. Zero is the default of each field but `size`. */
typedef struct strand_throw_info {
    size_t size;                  /* sizeof(strand_throw_info); required */
    int code;                     /* a negated errno code, or 0 */
    void *payload;                /* a pointer for the catcher, not into a shared stack; or NULL */
    void (*payload_free)(void *); /* releases the payload with the exception's last reference, on any thread; blocking
                                     and throwing in it are misuse; or NULL */
    strand_exception *cause;      /* a reference that the new exception takes over; or NULL */
} strand_throw_info;

/** Write the parts as an argument, with `size` filled in: strand_throw_with(&IO_ERROR, STRAND_THROW_INFO(.code = -EIO),
 * "cannot read"). C++ requires the order of the fields. */
#define STRAND_THROW_INFO(...) STRAND_SIZED_(strand_throw_info, __VA_ARGS__)

/** Throw a new exception, like strand_throw, with a code, a payload or a cause. `info` may be NULL. The call copies
 * *info; the exception owns the payload and the cause from now on. Cost: that of strand_throw. */
STRAND_NORETURN void strand_throw_with(const strand_kind *kind, const strand_throw_info *info, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** Throw an existing exception again. The call takes over the caller's reference. The reference of a catch block does
 * not belong to the caller, so write strand_rethrow(strand_exception_keep(e)) there; giving that reference away is
 * misuse. Cost: that of strand_throw. */
STRAND_NORETURN void strand_rethrow(strand_exception *e);
/** Add an exception to the suppressed ones of the exception in flight, from a clean-up that must not throw. The call
 * takes over the caller's reference. Without an exception in flight it goes to the log hook. Cost: O(1). */
void strand_suppress(strand_exception *e);
/** Check whether an exception is in flight, that is, whether the calling clean-up runs because of one. Returns true if
 * an exception is in flight. Cost: a few ns. */
bool strand_unwinding(void);

/** Check a result. Returns a result >= 0 unchanged, and throws a negated errno code as STRAND_SYSTEM. The message
 * begins with the call, as the source has it, if the argument is one: "strand_listen_tcp(host, port): Address already
 * in use". A call of more than 80 bytes is cut. Any thread may call it with a result >= 0. Cost: a few ns, or that of
 * strand_throw. */
int64_t strand_must(int64_t result);

/* ---- catching ---------------------------------------------------------------------------------------------- */

/**
 * Call fn(arg) and catch what it throws. The result of fn is stored in *result, unless `result` is NULL. The function
 * works with every compiler, in C and in C++. It does not suspend by itself. Cost: a few ns without an exception.
 *
 * It catches interruptions too, so fn is interrupted in the clean-up of a cancelled strand. If fn has to happen there,
 * put STRAND_SHIELD before the call, or use STRAND_TRY with STRAND_CATCH(&STRAND_ERROR, e). Returns NULL, or the
 * exception that left fn, which the caller owns (strand_exception_release, strand_rethrow).
 */
STRAND_CHECKED strand_exception *strand_try(strand_fn *fn, void *arg, void **result);

#if defined(__clang__) || !defined(__x86_64__) || defined(STRAND_SETJMP)
#define STRAND_TRY_SETJMP_(f) strand_setjmp_((f).jump)
#define STRAND_TRY_FORM_ 1
#else
#define STRAND_TRY_SETJMP_(f) __builtin_setjmp((f).jump)
#define STRAND_TRY_FORM_ 0
#endif

/**
 * Run a block and catch the exceptions that leave it:
 *
 *     STRAND_TRY { ... } STRAND_CATCH(&STRAND_ERROR, e) { ... } STRAND_END
 *
 * The first catch block whose kind matches runs; an exception that no block catches propagates. break, continue, return
 * and goto may leave the blocks. The exception belongs to the catch block, which releases it at its end. As with
 * setjmp, a local that is written in the first block and read after it must be volatile.
 *
 * In a clean-up that runs because of an exception, and in a noexcept function of C++, the first block is interrupted
 * only if a catch block takes STRAND_INTERRUPTED. The kinds of the catch blocks are evaluated before the first block
 * there, and everywhere in a program with C++.
 */
#define STRAND_TRY                                                                                                     \
    STRAND_TRY_BEGINS_                                                                                                 \
    {                                                                                                                  \
        STRAND_TRY_COMES_BACK_ _Pragma("GCC diagnostic push") _Pragma(                                                 \
            "GCC diagnostic ignored \"-Wshadow\"") struct strand_try_ strand_f_ STRAND_CLEANUP_(strand_try_leave_);    \
        _Pragma("GCC diagnostic pop") strand_try_enter_(&strand_f_, STRAND_TRY_FORM_);                                 \
        (void)STRAND_TRY_SETJMP_(strand_f_);                                                                           \
        if (strand_f_.state == 0) {
#define STRAND_CATCH(kind, e)                                                                                          \
    }                                                                                                                  \
    else if (strand_catches_(&strand_f_, (kind)))                                                                      \
    {                                                                                                                  \
        strand_exception *e __attribute__((unused)) = strand_caught_(&strand_f_);
#define STRAND_END                                                                                                     \
    }                                                                                                                  \
    }                                                                                                                  \
    STRAND_TRY_ENDS_

/* ---- behind the macros ------------------------------------------------------------------------------------- */

/* strand_throw without a frame of its own, which would be one more to unwind. */
struct strand_flight_;
struct strand_flight_ *strand_throwing_(const strand_kind *kind, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
STRAND_NORETURN void strand_unwind_(struct strand_flight_ *flight);
#if defined(__GNUC__) && !defined(__clang__) && !defined(STRAND_OUT_OF_LINE_)
#pragma GCC diagnostic push /* the caller's format is checked at strand_throw */
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
extern inline __attribute__((gnu_inline, always_inline, artificial)) void strand_throw(const strand_kind *kind,
                                                                                       const char *format, ...)
{
    strand_unwind_(strand_throwing_(kind, format, __builtin_va_arg_pack()));
}
#pragma GCC diagnostic pop
#endif

/* The clean-ups of a C file go on by the library's unwinder, which is faster than libgcc's: their calls of
 * _Unwind_Resume become calls of this. So a file with clean-ups must be linked with the library. Exceptions of others
 * go on by _Unwind_Resume. */
struct _Unwind_Exception;
STRAND_NORETURN void strand_resume_(struct _Unwind_Exception *exception);
#if !defined(__cplusplus) && defined(__x86_64__) && !defined(STRAND_OUT_OF_LINE_)
__asm__(".set _Unwind_Resume, strand_resume_");
#endif

/* strand_must with the text of its argument. */
int64_t strand_must_(int64_t result, const char *argument);
#if !defined(STRAND_OUT_OF_LINE_)
#define strand_must(...) strand_must_((__VA_ARGS__), #__VA_ARGS__)
#endif

struct strand_try_ {
    void *jump[8];
    struct strand_try_ *outer;
    void *in_flight;
    strand_exception *caught;
    uint32_t state, form, floor, depth, uncaught, refuses;
};

int strand_setjmp_(void **jump) __attribute__((returns_twice));
void strand_try_enter_(struct strand_try_ *frame, uint32_t form);
void strand_try_leave_(struct strand_try_ *frame);
bool strand_catches_(struct strand_try_ *frame, const strand_kind *kind);
strand_exception *strand_caught_(struct strand_try_ *frame);

#ifdef __cplusplus
}
#endif
#endif
