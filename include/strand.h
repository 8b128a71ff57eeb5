/*
 * libstrand: structured concurrency for C. This header is the core: runs, strands, scopes, cancellation and time.
 *
 *   strand/exception.h                   exceptions: kinds, throwing, catching; this header includes it
 *   strand/pool.h                        options of a run, attributes of a strand, thread pools, shared fibres
 *   strand/chan.h, port.h, select.h      channels, ports, and waiting for the first of several operations
 *   strand/date.h                        waiting for a date, by a clock that may be set
 *   strand/sync.h, strand/limit.h        locks, semaphores, events; concurrency limits and priorities
 *   strand/io.h                          descriptors, sockets, signals, and calls that block their thread
 *   strand/socket.h                      datagrams, addresses, bytes in several buffers
 *   strand/names.h                       names and connecting by name (libstrand-names)
 *   strand/file.h                        files and directories
 *   strand/changes.h                     changes of files and directories
 *   strand/process.h                     processes: other programs as children of scopes
 *   strand/tls.h                         TLS, by the library libstrand-tls over OpenSSL
 *   strand/actor.h                       actors
 *   strand/monitor.h                     code that must not suspend
 *   strand/check.h                       checks for debug builds: mutexes of the C library, arguments of strands
 *   strand/debug.h, strand/sim.h         diagnostics; deterministic simulation
 *   strand/scheduler.h                   user-made schedulers
 *
 * Five rules hold for every function of every header:
 *
 * 1. Results     An expected outcome is a value: >= 0, or a negated errno code. An unexpected one is an exception. The
 *                library never sets errno. If memory runs out, a function throws STRAND_SYSTEM with -ENOMEM. These
 *                return -ENOMEM instead: functions that any thread may call, I/O functions, orders to actors (such as
 *                strand_actor_stop), and functions that can complete partially (docs/errors.md).
 * 2. Blocking    A function marked STRAND_BLOCKS may suspend the calling strand and is a cancellation point: an
 *                interruption makes it throw STRAND_INTERRUPTED. It has then had no effect, unless its description
 *                says otherwise. An interrupted composite operation (strand_write_all) records its progress in the
 *                exception.
 * 3. Ownership   An object that the library makes belongs to a scope and ends when the scope is left. The caller
 *                allocates locks, semaphores and limits. Handles are plain values; the library detects stale ones.
 * 4. Memory      A child may use those locals of its parent that outlive the scope it is anchored to, unless the
 *                parent runs on a shared fibre. Arguments can be copied instead (strand_spawn_with).
 * 5. Threads     Any strand may call any function, unless its description says "only the owner" (the strand that
 *                opened the scope). A plain thread may call a function only if its description says so ("any
 *                thread"); another call by a plain thread is misuse.
 *
 * Which callers:
 *
 *   any thread                 strand_run, strand_now, strand_in, strand_version, strand_self, strand_id
 *   the owner of the scope     strand_join, strand_hand_off, strand_scope_join, strand_scope_join_first,
 *                              strand_scope_failure, strand_scope_wait_next
 *   the same, or any strand    strand_spawn, strand_spawn_with, strand_scope_cancel, strand_scope_count
 *   if the scope is open
 *   any strand                 all other functions
 *   a signal handler           no function
 *
 * Suspension: only functions marked STRAND_BLOCKS and the end of a scope's block suspend the caller, unless a function
 * says otherwise. strand_run blocks its thread.
 *
 * Cost: at most some tens of nanoseconds, and no system call, unless a function says otherwise. A function that
 * suspends adds about 10 ns for the switch to another strand. A function that makes a strand runnable adds a system
 * call if that wakes a thread.
 *
 * A misuse report says what the caller did, which rule that breaks, and where the object was made. The library calls
 * the hook strand_options.on_misuse, prints the report to standard error, and ends the program by abort().
 */
#ifndef STRAND_H
#define STRAND_H

#include "strand/compiler.h"
#include "strand/cxx.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The version of the headers. strand_version returns that of the running library. */
#define STRAND_VERSION_MAJOR 0
#define STRAND_VERSION_MINOR 2
#define STRAND_VERSION_PATCH 0

/** Get the version of the running library, as "major.minor.patch". Any thread may call it. The text is static. Cost: a
 * few ns. */
const char *strand_version(void);

/** Marks a function that does not return. */
#define STRAND_NORETURN __attribute__((noreturn))

/**
 * Marks a function whose result must not be ignored: the compiler warns about a call that does.
 *
 *     STRAND_CHECKED int queue_push(struct queue *queue, int value);
 */
#define STRAND_CHECKED __attribute__((warn_unused_result))
/** Ignore the result of a function marked STRAND_CHECKED without a warning. */
#define STRAND_IGNORE(call) ((void)!(call))

/** Marks a function that may suspend the calling strand and is a cancellation point: an interruption makes it throw,
 * and it has then had no effect, unless its description says otherwise. clang (18 or later, with -Wthread-safety) warns
 * about such a call inside STRAND_NO_SUSPEND. */
#define STRAND_BLOCKS STRAND_SECTION_EXCLUDES_

/** A handle of a strand: a plain value that may be kept after the strand's end. {0} names no strand. */
typedef struct {
    uint64_t bits[2];
} strand;

/** A handle of a scope: a plain value that goes stale when the scope is left. {0} names no scope. */
typedef struct {
    uint64_t bits[2];
} strand_scope;

/** An instant of the monotonic clock, in nanoseconds. {0} is no instant. */
typedef struct {
    int64_t ns;
} strand_time;

/** The function that a strand runs. strand_join returns its result. */
typedef void *strand_fn(void *arg);

typedef struct strand_attr strand_attr;           /* strand/pool.h: name, stack size, drop, pool */
typedef struct strand_options strand_options;     /* strand/pool.h: threads, scheduler, seed, hooks */
typedef struct strand_exception strand_exception; /* strand/exception.h */

/* ---- scopes: children are anchored to a block of their parent's code ------------------------------------- */

/**
 * Open a scope, which is left with the enclosing block:
 *
 *     STRAND_SCOPE(s);               a scope that is left with the enclosing block, by whatever way
 *     STRAND_SCOPE_OPEN(s);          the same with STRAND_OPEN
 *     STRAND_SCOPE_WITH(s, flags);   the same with flags:
 *       STRAND_OPEN        other strands may spawn into it and hand strands off to it
 *       STRAND_TOGETHER    the first failure of a child also cancels its siblings
 *       STRAND_COLLECT     failures wait to be fetched (strand_scope_failure) and do not interrupt the owner
 *       STRAND_FIRST_WINS  the first child that returns cancels the others (strand_scope_join_first)
 *       STRAND_SERVICE     the library consumes a child that ends without a failure, and the owner does not join it;
 *                          may be combined with each of these flags but STRAND_FIRST_WINS
 *
 * STRAND_TOGETHER, STRAND_COLLECT and STRAND_FIRST_WINS are policies. A scope has one policy at most. Consuming an
 * ended child means taking its result or its failure, and freeing its control block.
 *
 * Leaving a scope cancels the strands that are still anchored to it and waits, uninterruptibly, for their ends. If a
 * child failed and the owner has not seen that, the scope throws the child's exception here. If the owner has left a
 * child without joining or cancelling it, even one that has ended by now, the scope throws STRAND_LIVE_STRANDS, or
 * suppresses it in the exception of a failed child. An exception that leaves the block continues. Entering a scope
 * throws STRAND_SYSTEM if there is no memory. In a no-suspend section or a monitor, leaving a scope with anchored
 * strands is misuse; an empty scope may be left. clang warns of every scope there, because it cannot tell whether the
 * scope is empty.
 *
 * A server that spawns a strand for each connection and joins none opens its scope with STRAND_SERVICE. Without the
 * flag, every ended, unjoined child keeps its control block until the scope is joined or left. With the flag, a child
 * that has ended without a failure (it returned, or was cancelled) is consumed soon after its end:
 *
 *  - It does not count as live, nor in strand_scope_count.
 *  - The owner consumes such children as a part of its calls of strand_spawn, strand_scope_join and
 *    strand_scope_wait_next, in the order of their ends. It runs their drop functions there.
 *  - If the scope is open, another strand that spawns into it consumes a few of them too. It stops before a child that
 *    has a drop function or has failed: only the owner consumes that one.
 *  - The handle of a consumed child is stale. So joining a child of such a scope by itself, or handing it off, is
 *    misuse at any time; strand_wait takes any handle.
 *
 * The library logs one warning when a strand is spawned into a scope that holds 10,000 or more ended, unjoined
 * children. A scope with STRAND_FIRST_WINS is exempt. With STRAND_SERVICE the library warns only when a strand other
 * than the owner spawns and the next child is one that only the owner consumes.
 *
 * Cost: entering and leaving an empty scope takes about 12 ns; leaving another one, O(children).
 */
enum strand_scope_flag {
    STRAND_OPEN = 1,
    STRAND_TOGETHER = 2,
    STRAND_COLLECT = 4,
    STRAND_FIRST_WINS = 8,
    STRAND_SERVICE = 16
};
/** A set of flags of a scope: 0, or some of enum strand_scope_flag. */
typedef STRAND_FLAGS_(strand_scope_flag) strand_scope_flags;
#define STRAND_SCOPE(name) STRAND_SCOPE_WITH(name, 0)
#define STRAND_SCOPE_OPEN(name) STRAND_SCOPE_WITH(name, STRAND_OPEN)
#define STRAND_SCOPE_WITH(name, flags)                                                                                 \
    STRAND_BLOCK_BEGINS_ strand_scope name STRAND_CLEANUP_(strand_scope_leave_) =                                      \
        strand_scope_enter_((flags), __FILE__, __LINE__)

/**
 * Wait for all children of a scope and consume them, in the order in which they end. A failure does not end the call
 * early. Results go to the drop functions.
 *
 * Throws the first failure, with further ones suppressed in it. For a child that was cancelled and ended interrupted,
 * the canceller decides:
 *
 *  - If the owner or a policy of the scope cancelled it, the call throws nothing for it.
 *  - If another strand cancelled it, the call throws STRAND_CHILD_CANCELLED.
 *  - If a priority semaphore pruned it (strand/limit.h), the call throws STRAND_PRUNED, unless there is something else
 *    to throw.
 *
 * If a source outside of the scope interrupts the call, it throws that interruption. The failures of the children that
 * it has consumed are suppressed in it, and strand_scope_count returns how many children are left. Only the owner may
 * call it. Cost: O(children).
 */
STRAND_BLOCKS void strand_scope_join(strand_scope scope);
/**
 * Cancel all children of a scope, also those that are spawned later. `why`, the reason for traces, may be NULL; the
 * call copies up to 128 bytes of it. The call does not wait and is never interrupted. Only the owner may call it, or
 * any strand of the run if the scope is open. Cost: O(children).
 */
void strand_scope_cancel(strand_scope scope, const char *why);
/** Wait for the first child that returns a value, in a scope with STRAND_FIRST_WINS. The call cancels the other
 * children, waits for them and consumes all. *winner gets the handle of that child, which is stale then, unless
 * `winner` is NULL. Returns the value, which the caller owns. If no child returned a value, it throws the first
 * failure, with the others suppressed, or STRAND_CHILD_CANCELLED if no child failed. A scope without children is
 * misuse. An interrupted call has consumed none. Only the owner may call it. Cost: O(children). */
STRAND_BLOCKS void *strand_scope_join_first(strand_scope scope, strand *winner);
/**
 * Get the next failure of a child, in a scope with STRAND_COLLECT, in the order in which the children ended. The call
 * consumes the child. *child gets its handle, unless `child` is NULL. The call does not suspend. Only the owner may
 * call it. Returns the exception, which the caller owns, or NULL if there is none now. Cost: O(1) on average.
 */
strand_exception *strand_scope_failure(strand_scope scope, strand *child);
/** Wait for the next child to end, in a scope with STRAND_COLLECT or STRAND_FIRST_WINS. The call does not consume the
 * child: until the owner does (strand_join, strand_scope_failure), it returns the same child again. With STRAND_SERVICE
 * it returns only children that have failed. Returns the handle of the child, in the order in which the children ended,
 * or {0} if no child is left. An interrupted call has no effect. Only the owner may call it. Cost: O(1), and with
 * STRAND_SERVICE O(children that it consumes). */
STRAND_BLOCKS strand strand_scope_wait_next(strand_scope scope);
/** Get the number of children that are anchored to a scope now, ended ones that are not consumed included. Returns 0 if
 * the scope is open and has been left. Only the owner may call it, or any strand of the run if the scope is open. Cost:
 * a few ns. */
size_t strand_scope_count(strand_scope scope);

/**
 * Change the rules until the enclosing block ends:
 *
 *     STRAND_SHIELD;           defers every source of interruption outside the block; sources inside still interrupt
 *     STRAND_DEADLINE(when);   interrupts the block at the instant `when`; the block then throws STRAND_TIMED_OUT
 *     STRAND_DEADLINE_AS(name, when);   the same with a name, by which strand_deadline_move moves it
 *     STRAND_NO_SUSPEND;       makes suspending in the block misuse, reported with both locations
 *     STRAND_LOCAL(key, p);    binds strand_local(key) to p in the block and in the children spawned there
 *
 * A block that is left because of its deadline throws STRAND_TIMED_OUT. Entering a block with a deadline or a local
 * value throws STRAND_SYSTEM if there is no memory. Entering and leaving do not suspend. Cost: O(log timers of the
 * pool) each for a block with a deadline.
 */
#define STRAND_SHIELD STRAND_GUARD_(strand_shield_, strand_shield_enter_())
#define STRAND_DEADLINE(when) STRAND_GUARD_(strand_deadline_, strand_deadline_enter_((when), __FILE__, __LINE__))
#define STRAND_DEADLINE_AS(name, when)                                                                                 \
    STRAND_BLOCK_BEGINS_ struct strand_guard_ name STRAND_CLEANUP_(strand_guard_leave_) =                              \
        strand_deadline_enter_((when), __FILE__, __LINE__)
#define STRAND_NO_SUSPEND                                                                                              \
    STRAND_BLOCK_BEGINS_ struct strand_guard_ STRAND_PASTE_(strand_nosuspend_, __COUNTER__)                            \
        STRAND_CLEANUP_(strand_section_leave_) = strand_section_enter_(__FILE__, __LINE__)
#define STRAND_LOCAL(key, value) STRAND_GUARD_(strand_local_, strand_local_enter_((key), (value)))

/* ---- strands --------------------------------------------------------------------------------------------- */

/**
 * Start a run: execute fn(arg) as its root strand, and return when all its strands have ended. `options` may be NULL:
 * one pool of one thread, which is the calling thread. The call blocks its thread. Any thread may call it; a strand
 * only with options->own_threads or options->cpus. Cost: less than a millisecond, and about 50 us for each thread that
 * it starts.
 *
 * Returns the result of fn. An exception that leaves fn is printed and ends the program with exit status 1, unless
 * options->uncaught is set. If the run cannot be made, the call reports STRAND_SYSTEM in the same way.
 *
 * Any thread may call fork(2), strands included. In the child the runs of the parent are dead. It is misuse there to
 * use an object of a parent's run, to leave a block that was opened in one, or to return from a strand's function.
 * Functions that any thread may call behave as if no run existed. The child keeps the memory of the parent's runs, and
 * their descriptors until exec. exec, exit and _exit work as usual, and so does strand_run, which uses threads of its
 * own if it is called on the stack of a parent's strand. The library does not notice vfork(2) and a fork that bypasses
 * the C library.
 */
void *strand_run(const strand_options *options, strand_fn *fn, void *arg);

/**
 * Spawn fn(arg) as a child that is anchored to a scope. The child runs when a thread is free, in parallel with the
 * caller if there are several threads. The call does not suspend. Only the owner of the scope may call it, or any
 * strand of the run if the scope is open. Cost: O(1); with running and joining an empty child about 35 ns.
 *
 * Returns the handle of the child. Throws STRAND_SYSTEM if there is no memory (-ENOMEM), strand_options.max_strands is
 * reached (-EAGAIN) or the scope is open and has been left (-ECANCELED); no child was spawned then. The child gets its
 * stack when it first runs; if there is no memory for it, the child ends by STRAND_SYSTEM and has not run.
 *
 * The floating-point environment (rounding mode, exception masks; fesetenv) belongs to a strand across suspensions. A
 * strand may begin with the environment of an ended strand: a strand that changes it must restore it before it ends,
 * and one that depends on it must set it.
 */
strand strand_spawn(strand_scope scope, strand_fn *fn, void *arg);
/** Spawn a child with attributes and copied arguments, like strand_spawn. `attr` may be NULL; attributes need
 * strand/pool.h, which defines them and the macro STRAND_ATTR. The call copies `size` bytes of `args` and passes the
 * address of the copy to fn; the copy lives as long as the strand. With size 0 fn gets `args` itself. Returns the
 * handle of the child. Throws what strand_spawn throws, and STRAND_SYSTEM with -ESHUTDOWN (onto another pool that is
 * closing) or -ENXIO (the pool has no thread attr.pin). Cost: that of strand_spawn, and O(size) for the copy. */
strand strand_spawn_with(strand_scope scope, const strand_attr *attr, strand_fn *fn, const void *args, size_t size);

/** Wait for the end of a child and consume it. Only the owner of the child's scope may join it, and only once: a second
 * join is misuse. If the child has not started, the joiner's thread may run it at once. Returns the child's result,
 * which the caller owns, or throws the exception that ended it, or STRAND_CHILD_CANCELLED if it was cancelled and ended
 * interrupted. The result has no type: a child with a typed result writes it into a struct that it gets as its
 * argument, and the caller reads it after the join (docs/interface.md says why). An interrupted call has not consumed
 * the child. Cost: O(1). */
STRAND_BLOCKS void *strand_join(strand child) STRAND_JOIN_SYMBOL_;
/** Wait until a strand has ended, without consuming it. Any strand but itself may wait, any number of times. A stale
 * handle counts as ended. Waiting for {0}, or for oneself, is misuse. Cost: O(1), and O(waiters) at the end of that
 * strand. */
STRAND_BLOCKS void strand_wait(strand other);
/** Check whether a strand has ended. The call does not suspend. Returns true if it has ended or the handle is stale.
 * Cost: a few ns. */
bool strand_ended(strand other);
/**
 * Cancel a strand, any strand of the run: interrupt it from now on until it ends. `why`, the reason for traces, may be
 * NULL; the call copies up to 128 bytes of it. The call does not wait and is never interrupted. Cancelling {0} has no
 * effect. Cancelling a strand that has ended, or one that is cancelled already, interrupts nothing. An owner that has
 * cancelled a child, even an ended one, may leave the child unjoined. Cost: O(1), with an allocation for the reason.
 */
void strand_cancel(strand s, const char *why);
/**
 * Hand a child off: anchor it to an open scope instead. A child that has ended takes its result or failure along; a
 * child that comes into a cancelled scope is cancelled. Only the owner of the child's present scope may call it.
 * Handing a child to a scope of itself, or of a strand below it, is misuse. Returns 0, or -EINVAL if the scope is stale
 * or not open; the anchor is unchanged then. The call does not suspend. Cost: O(depth of the scope's owner in the
 * tree).
 */
STRAND_CHECKED int strand_hand_off(strand child, strand_scope to);
/** Get the calling strand, or {0} on a plain thread. Any thread may call it. Cost: a few ns. */
strand strand_self(void);
/** Get the id of a strand: a number that no other strand of this process ever has, or 0 for {0}. Any thread may call
 * it. Cost: a few ns. */
uint64_t strand_id(strand s);
/** Get the name of the calling strand: that of its attributes, else "root" or "strand". In a turn of an actor it is the
 * name of the actor, or else of its class. It is valid while the strand lives; in a turn, until the turn ends. The
 * library owns the text. Cost: a few ns. */
const char *strand_name(void);
/** Yield: let other runnable strands run first. It returns at once if there is none. Cost: a few ns, or a switch. */
STRAND_BLOCKS void strand_yield(void);
/** Throw if the caller is interrupted, else return without yielding. It does not suspend. Cost: a few ns. */
STRAND_BLOCKS void strand_checkpoint(void);
/** Check whether a source interrupts the caller: a cancel, a deadline that has passed, or a scope with a failed child.
 * A source outside a shield does not count. The call does not suspend. Returns true if strand_checkpoint would throw.
 * Cost: a few ns. */
bool strand_interrupted(void);

/* ---- strand-local values --------------------------------------------------------------------------------- */

/** The key of a strand-local value. Its address identifies it. Define your own as static const in the only source file
 * that uses it; else declare it as extern in a header and define it in one source file, like a strand_kind. */
typedef struct strand_key {
    size_t size;      /* sizeof(strand_key) */
    const char *name; /* diagnostics only */
} strand_key;

/** Initialise a key with its name: static const strand_key USER = STRAND_KEY("user"). */
#define STRAND_KEY(name)                                                                                               \
    {                                                                                                                  \
        sizeof(strand_key), (name)                                                                                     \
    }

/** Get the value that STRAND_LOCAL bound to a key, innermost first: in the calling strand, or in its spawner at the
 * time of the spawn. Returns NULL if the key is not bound. The memory behind the value must live as long as the strands
 * that can read it. Cost: O(bindings). */
void *strand_local(const strand_key *key);

/* ---- time ------------------------------------------------------------------------------------------------ */

struct strand_guard_; /* the record that STRAND_DEADLINE and its like put into a block */

/** Units of time, in nanoseconds. */
#define STRAND_US INT64_C(1000)
#define STRAND_MS (1000 * STRAND_US)
#define STRAND_S (1000 * STRAND_MS)

/** Get the time of the monotonic clock, or the virtual time in a seeded run. Any thread may call it. Cost: reading the
 * clock, some tens of ns. */
strand_time strand_now(void);
/** Get the instant `ns` nanoseconds from now. The sum saturates at INT64_MAX, and it is at least 1. Any thread may call
 * it. Cost: that of strand_now. */
strand_time strand_in(int64_t ns);
/** Sleep for `ns` nanoseconds. With 0 or less the call yields. Throws STRAND_SYSTEM if there is no memory for a timer.
 * Cost: O(log timers of the pool). */
STRAND_BLOCKS void strand_sleep(int64_t ns);
/** Sleep until an instant. If the instant has passed, or is {0}, the call yields. Throws STRAND_SYSTEM if there is no
 * memory for a timer. Cost: O(log timers of the pool). */
STRAND_BLOCKS void strand_sleep_until(strand_time when);
/** Get the earliest instant at which a deadline interrupts the caller. Deadlines outside a shield do not count. The
 * time that is left is strand_deadline().ns - strand_now().ns. Returns an instant of INT64_MAX ns if there is no
 * deadline. Cost: O(open blocks). */
strand_time strand_deadline(void);
/**
 * Move the deadline of a block that the caller has opened by STRAND_DEADLINE_AS(name, ...) and has not left. `deadline`
 * is &name. `when` is the new instant: {0} means no deadline, and one that has passed interrupts the block at once. The
 * call does not suspend. Cost: O(log timers of the pool).
 *
 * Returns true if the deadline has moved. Returns false if the old one had passed: it stays, and interrupts the block.
 * Throws STRAND_SYSTEM if there is no memory; only moving from "no deadline" to an instant needs any.
 */
bool strand_deadline_move(struct strand_guard_ *deadline, strand_time when);

/* ---- behind the macros ----------------------------------------------------------------------------------- */

struct strand_guard_ {
    uint64_t bits[3];
    void (*leave)(struct strand_guard_ *guard);
};

#ifndef __cplusplus
void *strand_join_cxx_(strand child); /* the function that C++ code calls by the name strand_join */
#endif
strand_scope strand_scope_enter_(strand_scope_flags flags, const char *file, int line);
void strand_scope_leave_(strand_scope *scope) STRAND_SECTION_EXCLUDES_;
struct strand_guard_ strand_shield_enter_(void);
struct strand_guard_ strand_deadline_enter_(strand_time when, const char *file, int line);
struct strand_guard_ strand_section_enter_(const char *file, int line) STRAND_SECTION_ENTERS_;
void strand_section_leave_(struct strand_guard_ *guard) STRAND_SECTION_LEAVES_;
struct strand_guard_ strand_local_enter_(const strand_key *key, void *value);
void strand_guard_leave_(struct strand_guard_ *guard);

#define STRAND_GUARD_(name, enter)                                                                                     \
    STRAND_BLOCK_BEGINS_ struct strand_guard_ STRAND_PASTE_(name, __COUNTER__) STRAND_CLEANUP_(strand_guard_leave_) =  \
        enter

#ifdef __cplusplus
}
#endif
#include "strand/exception.h"
#endif
