/*
 * libstrand: structured concurrency for C. This header is the core: running, strands,
 * scopes, cancelling, exceptions, time. Further headers: strand/pool.h (options and
 * attributes); strand/chan.h, strand/select.h, strand/sync.h, strand/limit.h (waiting for
 * each other); strand/io.h (waiting for the outside); strand/monitor.h, strand/check.h
 * (code that may not wait); strand/debug.h (looking inside).
 *
 * Five rules hold for every function of every header:
 *
 *  1. Results     What a caller expects is a value: >= 0, or a negated errno code.
 *                 What it does not expect is an exception. errno is never used.
 *  2. Blocking    Functions marked STRAND_BLOCKS may suspend the caller. Each is a
 *                 cancellation point: when interrupted it throws, and has done
 *                 nothing unless its description says otherwise. A composite
 *                 operation (strand_write_all) says in the exception how far it came.
 *  3. Ownership   What the library makes belongs to a scope and is gone when the scope
 *                 is left; what the caller embeds (locks, limits) is the caller's memory.
 *                 Handles are values; a stale one is detected, never followed.
 *  4. Memory      A child may use its parent's locals that outlive the scope it is
 *                 anchored to, unless the parent runs on an opened fibre. Arguments
 *                 can be copied in instead.
 *  5. Threads     Any strand may call any function, unless it says "owner only" (the
 *                 strand that opened the scope) or "any thread" (no strand needed).
 *                 A call from a plain thread that is not allowed one is misuse.
 *
 * Misuse is reported with what was done and where the object was made, after the hook
 * of the options has run; then the program ends by abort().
 */
#ifndef STRAND_H
#define STRAND_H

#include "strand/compiler.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The version of the headers. That of the library that runs is strand_version. */
#define STRAND_VERSION_MAJOR 0
#define STRAND_VERSION_MINOR 1
#define STRAND_VERSION_PATCH 0

/** "major.minor.patch" of the library that runs (the macros say what was compiled against). Any thread. */
const char *strand_version(void);

/** Marks a function that does not return. */
#define STRAND_NORETURN __attribute__((noreturn))

/** Marks a function whose result says whether anything was done: the compiler warns of a call that drops it. */
#define STRAND_CHECKED __attribute__((warn_unused_result))
/** Drops the result of such a function on purpose. */
#define STRAND_IGNORE(call) ((void)!(call))

/** Marks a function that may suspend its caller and is a cancellation point: when interrupted it throws, and has done
 *  nothing unless its description says otherwise. Under clang (18 or later) -Wthread-safety a blocking call inside
 *  STRAND_NO_SUSPEND is a compile-time warning. */
#define STRAND_BLOCKS STRAND_SECTION_EXCLUDES_

/** The handle of a strand, a value. */
typedef struct {
    uint64_t bits[2];
} strand; /* {0}: none; safe to keep after the strand's end */

/** The handle of a scope, a value. */
typedef struct {
    uint64_t bits[2];
} strand_scope; /* {0}: none; goes stale when the scope is left */

/** A point in time. */
typedef struct {
    int64_t ns;
} strand_time; /* an instant of the monotonic clock, in nanoseconds; {0}: none */

/** What a strand runs: a function of one argument. */
typedef void *strand_fn(void *arg); /* what it returns, its joiner gets */

typedef struct strand_attr strand_attr;       /* strand/pool.h: name, stack size, drop, pool */
typedef struct strand_options strand_options; /* strand/pool.h: threads, scheduler, seed, hooks */

/* ---- exceptions: a kind, a message, a trace -------------------------------------------------------------- */

/** The kind of an exception. It is told by its address. */
typedef struct strand_kind { /* make your own: static const, with a parent below STRAND_ERROR */
    const char *name;
    const struct strand_kind *parent;
} strand_kind;

/**
 * The kinds that the library throws. What is further to the right lies below:
 *
 *     STRAND_ANY                    the root of the tree of kinds
 *       STRAND_INTERRUPTED          by a source; not an error, never thrown by hand
 *       STRAND_ERROR                what "catch all errors" means
 *         STRAND_TIMED_OUT          a deadline block was left by its deadline
 *         STRAND_CHILD_CANCELLED    joined a child that ended interrupted
 *           STRAND_PRUNED           the same; a priority semaphore had pruned this very child (strand/limit.h)
 *         STRAND_LIVE_STRANDS       a scope was left with strands still anchored to it
 *         STRAND_DEADLOCK           nothing in the run can go on any more (strand/pool.h: strand_options.out_of_work)
 *         STRAND_FOREIGN              an exception of C++ has left a strand's function or an actor's (docs/cxx.md)
 *         STRAND_SYSTEM             the system refused; carries an errno code
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

/** An exception. Its references are counted: what a function gives to its caller is given back by
 *  strand_exception_release. */
typedef struct strand_exception strand_exception;

/** What happened, in words. Valid as long as e is. */
const char *strand_exception_text(const strand_exception *e);
/** A negated errno code, or 0 if there is none. */
int strand_exception_code(const strand_exception *e);
/** The kind it was thrown with. */
const strand_kind *strand_exception_kind(const strand_exception *e);
/** Whether its kind is `kind` or below it. */
bool strand_exception_is(const strand_exception *e, const strand_kind *kind);
/** The pointer given to strand_throw_with, or NULL. Owned by e. */
void *strand_exception_payload(const strand_exception *e);
/** The exception that led to this one, or NULL. Owned by e. */
const strand_exception *strand_exception_cause(const strand_exception *e);
/** The i-th exception (from 0) that this one pushed aside, or NULL past the last. The first 256 are kept. Owned by e.
 *  Any thread. O(i). */
const strand_exception *strand_exception_suppressed(const strand_exception *e, size_t i);
/** For interrupted and child-cancelled: who asked (a strand's name), and why; "" if nobody said. */
const char *strand_exception_who(const strand_exception *e);
const char *strand_exception_why(const strand_exception *e);
/** How far a composite operation had come when it was interrupted (bytes), else 0. */
uint64_t strand_exception_progress(const strand_exception *e);
/** Print kind, message, trace across strands, causes and suppressed ones to the descriptor; of many the first, and how
 *  many more there are. Any thread. */
void strand_exception_print(const strand_exception *e, int fd);
/** Hold e beyond its catch block; give it back with strand_exception_release. Any thread. O(1). */
strand_exception *strand_exception_keep(strand_exception *e);
/** Give back what strand_exception_keep, strand_try or a fetch gave. NULL is allowed. Any thread. O(what it carries),
 *  if it is the last reference. */
void strand_exception_release(strand_exception *e);

/**
 * Throw a new exception with a printf-formatted message (kept up to 200 bytes), a trace taken here.
 * Throwing kinds of STRAND_INTERRUPTED by hand is misuse; so is throwing outside of a strand. A throw that
 * would leave a clean-up that runs because of another exception ends the program with both traces.
 */
STRAND_NORETURN void strand_throw(const strand_kind *kind, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** What strand_throw_with adds to an exception. */
struct strand_throw_info {
    int code;                     /* negated errno code, or 0 */
    void *payload;                /* for the catcher, not in the stack of an opened fibre; or NULL */
    void (*payload_free)(void *); /* called with payload when the exception is gone, on any thread; it neither blocks
                                     nor throws; or NULL */
    strand_exception *cause;      /* a reference that the new exception takes over; or NULL */
};
/** strand_throw with more to say. */
STRAND_NORETURN void strand_throw_with(const strand_kind *kind, const struct strand_throw_info *info,
                                       const char *format, ...) __attribute__((format(printf, 3, 4)));
/** Throw e again; takes the caller's reference over. In a catch block: rethrow(keep(e)), as the block's own reference
 * is none of the caller's; giving that away is misuse. */
STRAND_NORETURN void strand_rethrow(strand_exception *e);
/** Attach e to the exception in flight (from a clean-up that may not throw); takes the reference over.
 *  With none in flight it goes to the log hook. */
void strand_suppress(strand_exception *e);
/** Whether an exception is in flight, that is, whether a clean-up that asks runs because of one. */
bool strand_unwinding(void);

/** A result >= 0 is returned as it is; a negated errno code becomes a STRAND_SYSTEM exception. */
int64_t strand_must(int64_t result);

/**
 * Run fn(arg). Returns NULL and stores what fn returned in *result (which may be NULL), or returns the
 * exception that left fn, which the caller owns (strand_exception_release, or strand_rethrow).
 * Works with every compiler, in C and in C++. Does not block by itself. A few ns without an exception.
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
 * Run a block, and catch the exceptions that leave it:
 *
 *     STRAND_TRY { ... } STRAND_CATCH(&STRAND_ERROR, e) { ... } STRAND_END
 *
 * The first matching block runs; what no block catches goes on. Blocks may be left by break, continue,
 * return and goto. The exception belongs to the catch block and is released at its end. As with setjmp, a
 * local that is written in the first block and read after it is volatile.
 */
#define STRAND_TRY                                                                                                     \
    STRAND_TRY_BEGINS_                                                                                                 \
    {                                                                                                                  \
        STRAND_TRY_COMES_BACK_ _Pragma("GCC diagnostic push") _Pragma(                                                 \
            "GCC diagnostic ignored \"-Wshadow\"") struct strand_try_ strand_f_ STRAND_CLEANUP_(strand_try_leave_);    \
        _Pragma("GCC diagnostic pop") strand_try_enter_(&strand_f_, STRAND_TRY_FORM_);                                 \
        if (STRAND_TRY_SETJMP_(strand_f_) == 0) {
#define STRAND_CATCH(kind, e)                                                                                          \
    }                                                                                                                  \
    else if (strand_catches_(&strand_f_, (kind)))                                                                      \
    {                                                                                                                  \
        strand_exception *e __attribute__((unused)) = strand_caught_(&strand_f_);
#define STRAND_END                                                                                                     \
    }                                                                                                                  \
    }                                                                                                                  \
    STRAND_TRY_ENDS_

/* ---- scopes: children are anchored to a block of their parent's code ------------------------------------- */

/**
 * Open a scope, which is left with the enclosing block:
 *
 *     STRAND_SCOPE(s);               a scope that is left with the enclosing block, by whatever way
 *     STRAND_SCOPE_OPEN(s);          the same with STRAND_OPEN
 *     STRAND_SCOPE_WITH(s, flags);   the same with flags:
 *       STRAND_OPEN        others may spawn into it and hand strands off to it
 *       STRAND_TOGETHER    the first failure of a child also cancels its siblings
 *       STRAND_COLLECT     failures wait to be fetched (strand_scope_failure) and interrupt nobody
 *       STRAND_FIRST_WINS  the first child that returns cancels the others (strand_scope_first)
 *       STRAND_SERVICE     children that end without a failure are consumed by themselves; with STRAND_COLLECT or none
 *                          of the policies, or STRAND_TOGETHER
 *
 * Leaving a scope cancels what is still anchored to it and waits, uninterruptibly, for its end. If children
 * were left that the owner had neither joined nor cancelled, STRAND_LIVE_STRANDS is thrown, unless another
 * exception is already on its way. A failure of a child that nobody has seen is thrown here at the latest.
 * Where nothing may suspend (STRAND_NO_SUSPEND, a monitor) a scope can be left that nobody is anchored to; else that is
 * misuse. clang, which does not know who is anchored, warns of every scope there.
 *
 * A server that spawns a strand for each connection and joins none opens its scope with STRAND_SERVICE: else what is
 * left of each takes memory until the scope is joined or left. Children that have returned, or were cancelled and have
 * ended, do not count as live then, nor in strand_scope_count. They are consumed in the order of their ends: when the
 * owner spawns into the scope, or is in strand_scope_join or strand_scope_next; drop functions run there. So their
 * handles go stale, and joining one of them by itself, or handing it off, is misuse; strand_wait takes any handle.
 */
enum { STRAND_OPEN = 1, STRAND_TOGETHER = 2, STRAND_COLLECT = 4, STRAND_FIRST_WINS = 8, STRAND_SERVICE = 16 };
#define STRAND_SCOPE(name) STRAND_SCOPE_WITH(name, 0)
#define STRAND_SCOPE_OPEN(name) STRAND_SCOPE_WITH(name, STRAND_OPEN)
#define STRAND_SCOPE_WITH(name, flags)                                                                                 \
    strand_scope name STRAND_CLEANUP_(strand_scope_leave_) = strand_scope_enter_((flags), __FILE__, __LINE__)

/**
 * Wait for all children, also after one has failed, and consume them; results go to the drop functions. The first
 * failure is thrown, further ones suppressed in it. Children cancelled by the owner or by a policy are expected to end
 * interrupted; one cancelled by anybody else throws STRAND_CHILD_CANCELLED, one that was pruned STRAND_PRUNED, unless
 * there is something else to throw. Interrupted from outside of the scope, it has consumed some of them, and what it
 * would have thrown of those is suppressed in the interruption: strand_scope_count tells how many are left. Owner only.
 * O(children).
 */
STRAND_BLOCKS void strand_scope_join(strand_scope scope);
/**
 * Cancel all children, those spawned later too; does not wait. `why` (may be NULL) is copied, up to 128 bytes.
 * Owner only, unless the scope is open. Never interrupted. O(children).
 */
void strand_scope_cancel(strand_scope scope, const char *why);
/**
 * STRAND_FIRST_WINS: wait for the first child that returns a value, cancel the others, wait for them and consume
 * them all. Returns the value; *winner (may be NULL) says whose. If all failed, the first failure is thrown with
 * the others suppressed. With no children at all: misuse. Owner only.
 */
STRAND_BLOCKS void *strand_scope_first(strand_scope scope, strand *winner);
/**
 * STRAND_COLLECT: the next failure of a child, consumed with that child, in order of their ends; NULL if there is
 * none now. The caller owns it. *child (may be NULL) gets the handle of the child it was. Does not block. Owner only.
 * O(1) on average.
 */
strand_exception *strand_scope_failure(strand_scope scope, strand *child);
/**
 * STRAND_COLLECT and STRAND_FIRST_WINS: wait until some child that is still anchored has ended and return its handle,
 * in order of their ends, without consuming it; {0} when no child is left. With STRAND_SERVICE it returns only children
 * that have failed. Owner only.
 */
STRAND_BLOCKS strand strand_scope_next(strand_scope scope);
/** How many children are anchored to the scope now (ended ones that are not consumed included). Owner only, or open. */
size_t strand_scope_count(strand_scope scope);

/**
 * What holds until the end of the enclosing block:
 *
 *     STRAND_SHIELD;           puts off every source of interruption outside of the block, none inside
 *     STRAND_DEADLINE(when);   interrupts the block at `when`; left by that, the block throws STRAND_TIMED_OUT
 *     STRAND_NO_SUSPEND;       blocking in the block is misuse, reported with both places
 *     STRAND_LOCAL(key, p);    strand_local(key) is p here, and in the children spawned here
 */
#define STRAND_SHIELD STRAND_GUARD_(strand_shield_, strand_shield_enter_())
#define STRAND_DEADLINE(when) STRAND_GUARD_(strand_deadline_, strand_deadline_enter_((when), __FILE__, __LINE__))
#define STRAND_NO_SUSPEND                                                                                              \
    struct strand_guard_ STRAND_PASTE_(strand_nosuspend_, __COUNTER__) STRAND_CLEANUP_(strand_section_leave_) =        \
        strand_section_enter_(__FILE__, __LINE__)
#define STRAND_LOCAL(key, value) STRAND_GUARD_(strand_local_, strand_local_enter_((key), (value)))

/* ---- strands --------------------------------------------------------------------------------------------- */

/**
 * Run fn(arg) as the root strand of a new sub-process and wait for its end. Returns what fn returned. An exception
 * that leaves it is printed and ends the program (exit status 1), unless the options ask to get it. `options` may be
 * NULL: one pool of one thread, which is the calling thread. Any thread, but not inside a strand, unless the options
 * ask for threads of its own. If the sub-process cannot be made, that too is an exception that leaves it.
 *
 * fork(2) may be called by any thread, strands included. In the child the runs of the parent are dead: whatever is of
 * one of them, a function, the end of a block, the return from a strand's function, is misuse that says so, and what
 * any thread may call finds nothing there. What they had, memory and descriptors that close on exec, stays until the
 * child ends. exec, exit and _exit work as ever, and so does strand_run; on the stack of a strand of the parent it has
 * threads of its own, asked for or not. vfork(2), and a fork behind the C library's back, are not seen.
 */
void *strand_run(const strand_options *options, strand_fn *fn, void *arg);

/**
 * Start fn(arg) as a child of scope. The child runs when a thread has time for it, in parallel with the caller if
 * there are more threads. attr may be NULL. Does not block. Throws STRAND_SYSTEM if memory is refused or
 * options.max_strands is reached, and then nothing was started. A stack is taken when the child first runs: if none can
 * be had, the child ends by STRAND_SYSTEM without having run. Owner only, unless the scope is open. O(1).
 * The environment of floating point (rounding, masks; fesetenv) that a strand sets is its own, across suspensions too.
 * A strand may begin with that of one which has ended before on the same stack: who changes it sets it back before it
 * ends, and who needs a certain one sets it.
 */
strand strand_spawn(strand_scope scope, strand_fn *fn, void *arg);
/** Start a child as strand_spawn does, with attributes. size bytes of `args` are copied, and fn gets the address of the
 *  copy, which lives as long as the strand. With size 0, fn gets `args` itself. */
strand strand_spawn_with(strand_scope scope, const strand_attr *attr, strand_fn *fn, const void *args, size_t size);

/**
 * Wait for the end of a child and consume it. Returns its value, or throws: the exception that it ended by, or
 * STRAND_CHILD_CANCELLED if it was cancelled and ended interrupted. Owner of the child's scope only; once: a second
 * join is misuse. A child that has not started may be run by the joiner's thread right here.
 */
STRAND_BLOCKS void *strand_join(strand child) STRAND_JOIN_SYMBOL_;
/** Wait until a strand has ended, without consuming it. Anyone but itself, any number of times; returns at once if it
 *  is gone. {0} is misuse. */
STRAND_BLOCKS void strand_wait(strand other);
/** Whether a strand has ended. Does not block. */
bool strand_ended(strand other);
/**
 * Interrupt a strand, lastingly. `why` (may be NULL) is copied, up to 128 bytes. Does not wait; does not
 * disturb a strand that has ended, and ignores {0}; a second cancel changes nothing. The owner's counts as its own also
 * after the end: the child may then be left unjoined. Never interrupted.
 */
void strand_cancel(strand child, const char *why);
/**
 * Anchor a child to an open scope instead; one that has ended goes along with its result or its failure, and one that
 * comes into a cancelled scope is cancelled. Returns 0; -EINVAL if the scope is stale or not open (the anchor stays as
 * it was). Into a scope of the child itself or of a strand below it: misuse. Owner of the child's present scope only.
 */
STRAND_CHECKED int strand_hand_off(strand child, strand_scope to);
/** The calling strand; {0} outside of strands. Any thread. */
strand strand_self(void);
/** A number that no other strand of this process ever had; 0 for {0}. Any thread. */
uint64_t strand_id(strand s);
/** The name of the calling strand (its attribute, else "root" or "strand"; in the turn of an actor, and as long as that
 *  lasts: the actor's, else its class'). */
const char *strand_name(void);
/** Let others run: a cancellation point that always gives way. */
STRAND_BLOCKS void strand_yield(void);
/** A cancellation point that never gives way: throws if the caller is interrupted, else returns. A few ns. */
STRAND_BLOCKS void strand_checkpoint(void);

/* ---- strand-local values --------------------------------------------------------------------------------- */

/** The key of a strand-local value. */
typedef struct strand_key { /* make your own: static; its address is the key */
    const char *name;
} strand_key;
/** The innermost value bound to key by STRAND_LOCAL, here or in the spawner of the strand at the time of the spawn; or
 *  NULL. What the pointer points to has to live as long as the strands that can read it. O(bindings). */
void *strand_local(const strand_key *key);

/* ---- time ------------------------------------------------------------------------------------------------ */

/** Units of time, in nanoseconds. */
#define STRAND_US INT64_C(1000)
#define STRAND_MS (1000 * STRAND_US)
#define STRAND_S (1000 * STRAND_MS)

/** The monotonic clock now; inside a seeded run, its virtual time. Any thread. */
strand_time strand_now(void);
/** now + ns, saturating at the ends. Any thread. */
strand_time strand_in(int64_t ns);
/** Sleep for ns nanoseconds; 0 and less: a yield. */
STRAND_BLOCKS void strand_sleep(int64_t ns);
/** Sleep until an instant; one that has passed: a yield. */
STRAND_BLOCKS void strand_sleep_until(strand_time when);

/* ---- behind the macros ----------------------------------------------------------------------------------- */

/* strand_throw without a frame of its own, which would be one more to unwind. */
struct strand_flight_;
struct strand_flight_ *strand_throwing_(const strand_kind *kind, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
STRAND_NORETURN void strand_unwind_(struct strand_flight_ *flight);
#if defined(__GNUC__) && !defined(__clang__) && !defined(STRAND_OUT_OF_LINE_)
extern inline __attribute__((gnu_inline, always_inline, artificial)) void strand_throw(const strand_kind *kind,
                                                                                       const char *format, ...)
{
    strand_unwind_(strand_throwing_(kind, format, __builtin_va_arg_pack()));
}
#endif

struct strand_try_ {
    void *jump[8];
    struct strand_try_ *outer;
    void *in_flight;
    strand_exception *caught;
    uint32_t state, form, floor, depth, uncaught, unused;
};
struct strand_guard_ {
    uint64_t bits[3];
    void (*leave)(struct strand_guard_ *guard);
};

#ifndef __cplusplus
void *strand_join_cxx_(strand child); /* what C++ code calls as strand_join */
#endif
int strand_setjmp_(void **jump) __attribute__((returns_twice));
void strand_try_enter_(struct strand_try_ *frame, uint32_t form);
void strand_try_leave_(struct strand_try_ *frame);
bool strand_catches_(struct strand_try_ *frame, const strand_kind *kind);
strand_exception *strand_caught_(struct strand_try_ *frame);
strand_scope strand_scope_enter_(unsigned flags, const char *file, int line);
void strand_scope_leave_(strand_scope *scope) STRAND_SECTION_EXCLUDES_;
struct strand_guard_ strand_shield_enter_(void);
struct strand_guard_ strand_deadline_enter_(strand_time when, const char *file, int line);
struct strand_guard_ strand_section_enter_(const char *file, int line) STRAND_SECTION_ENTERS_;
void strand_section_leave_(struct strand_guard_ *guard) STRAND_SECTION_LEAVES_;
struct strand_guard_ strand_local_enter_(const strand_key *key, void *value);
void strand_guard_leave_(struct strand_guard_ *guard);

#define STRAND_GUARD_(name, enter)                                                                                     \
    struct strand_guard_ STRAND_PASTE_(name, __COUNTER__) STRAND_CLEANUP_(strand_guard_leave_) = enter

#ifdef __cplusplus
}
#endif
#endif
