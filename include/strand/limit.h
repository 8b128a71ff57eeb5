/*
 * Concurrency limits: bound how many strands do something at a time.
 *
 *   strand_prio_semaphore   a semaphore that serves its waiters by priority and can prune those of lowest priority
 *   strand_limit            a number of permits, served in FIFO order
 *   STRAND_PRIO_PERMIT      hold one permit of a priority semaphore until a block ends
 *   STRAND_LIMIT_PERMIT     hold one permit of a limit until a block ends
 *   STRAND_LIMIT            apply a limit to all requests of a block and of the strands spawned in it
 *   STRAND_WITHIN_LIMITS    for client libraries: hold a permit of each limit that applies here, for one request
 *   STRAND_DELEGATE         wrap a client of another library so that limits apply to its requests
 *
 * Which callers:
 *
 *   strands of one run                all functions and macros
 *   plain threads, signal handlers    none
 *
 * Suspension: the functions marked STRAND_BLOCKS, and STRAND_PRIO_PERMIT, STRAND_LIMIT_PERMIT and STRAND_WITHIN_LIMITS,
 * may suspend the caller. They are cancellation points: an interrupted call has acquired nothing. All other functions
 * never suspend.
 *
 * Cost: some tens of nanoseconds and O(log waiters), unless a function says otherwise. Waiting adds a switch to another
 * strand and back. Waking a strand on a sleeping thread takes a system call.
 *
 * The caller allocates semaphores and limits and keeps them as long as any strand uses them. They own no memory and
 * need no release. They must not be copied and must not lie on the stack of a shared fibre.
 */
#ifndef STRAND_LIMIT_H
#define STRAND_LIMIT_H

#include "select.h"

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the priority semaphore ------------------------------------------------------------------------------ */

/** A semaphore that serves its waiters by priority. strand_prio_init initialises it. */
typedef struct strand_prio_semaphore {
    uint64_t bits[24];
} strand_prio_semaphore;

/** A priority below all others: the waiter may not get a permit now, even if one is free. */
#define STRAND_NOT_NOW INT64_MIN

/** The policies of a semaphore with max_waiters waiters when one more strand would have to wait. */
enum strand_prio_full {
    STRAND_PRIO_FULL_PRUNE = 0, /* prune the waiter of lowest priority, which may be the new one */
    STRAND_PRIO_FULL_REFUSE = 1 /* refuse the new one: it gets -ENOBUFS */
};

/**
 * The options of a priority semaphore. `size` and `permits` are required; zero is the default of each other field.
 *
 * Set at most one of two functions to order the waiters. `compare` orders keys that do not change while they wait.
 * `priority` is called for each waiter whenever a permit is free. Without either, and among equals, the order is FIFO.
 * The library calls both functions in any strand that uses the semaphore, one call at a time. Blocking, throwing and
 * using the semaphore in them are misuse. Their arguments are keys: pointers that the callers of strand_prio_acquire
 * pass to describe themselves, or numbers cast to pointers.
 */
typedef struct strand_prio_options {
    size_t size;                                             /* sizeof(strand_prio_options) */
    size_t permits;                                          /* the number of permits, at least 1 */
    int (*compare)(const void *a, const void *b, void *arg); /* < 0 if a goes before b; 0 if they are equal */
    int64_t (*priority)(const void *key, void *arg);         /* the greatest goes first; STRAND_NOT_NOW: not yet */
    void *arg;                                               /* passed to both functions */
    size_t max_waiters;                                      /* 0 means no bound */
    enum strand_prio_full on_full;                           /* when max_waiters strands wait and one more comes */
    const char *name;                                        /* diagnostics only; not copied */
} strand_prio_options;

/** Initialise a priority semaphore. The call copies *options. The semaphore owns no memory. Any strand may call it
 * before others use the semaphore or after all have finished; initialising a semaphore that strands wait for is
 * misuse. */
void strand_prio_init(strand_prio_semaphore *sem, const strand_prio_options *options);

/**
 * Acquire a permit of a priority semaphore. The call waits until a permit is free and the key may have it. The choice
 * is made when a permit becomes free, so a late caller of higher priority goes before earlier waiters. A permit once
 * acquired is never taken away. *key must stay valid and keep its position in the order until the call returns, and it
 * must not lie on the stack of a shared fibre. Cost: O(log waiters); a semaphore with a `priority` calls it once.
 *
 * Returns 0, or -ENOBUFS if max_waiters strands wait and this one is refused. An interrupted or pruned call
 * (strand_prio_prune) has acquired nothing. Throws STRAND_SYSTEM if there is no memory.
 */
STRAND_BLOCKS int strand_prio_acquire(strand_prio_semaphore *sem, const void *key);
/** Hold a permit of a priority semaphore until the enclosing block ends, however the block ends. It waits and throws
 * like strand_prio_acquire, and throws STRAND_SYSTEM with -ENOBUFS where that function returns it. */
#define STRAND_PRIO_PERMIT(sem, key) STRAND_GUARD_(strand_prio_permit_, strand_prio_permit_enter_((sem), (key)))
/** Acquire a permit of a priority semaphore if that needs no waiting. The call is not a cancellation point. Returns 0,
 * or -EAGAIN if the caller would have to wait. */
STRAND_CHECKED int strand_prio_try_acquire(strand_prio_semaphore *sem, const void *key);
/**
 * Release a permit. The waiter that goes first in the order gets it. Any strand may release a permit, also one that has
 * not acquired it. Releasing more permits than were acquired is misuse. The call never suspends. Cost: O(log waiters),
 * or O(waiters) with a `priority`.
 */
void strand_prio_release(strand_prio_semaphore *sem);
/** Compute the priorities of all waiters again, as long as permits are free. Call it when something has changed that
 * priorities depend on. The call never suspends. Cost: O(waiters) for each free permit, since a permit that is handed
 * over may change the priorities of the others. */
void strand_prio_reconsider(strand_prio_semaphore *sem);
/** Make the case that a priority semaphore has a permit for a key. The select acquires the permit. *key and the
 * semaphore must stay valid until the select returns. The case's result is 0; -ENOBUFS if max_waiters strands wait and
 * this one is refused; or -ENOMEM if there is no memory. */
strand_case strand_on_prio_permit(strand_prio_semaphore *sem, const void *key);

/**
 * Prune waiters until `keep` are left, beginning with the last in the order. To prune a strand is to cancel it with a
 * recorded reason: the strand ends interrupted, and joining it throws STRAND_PRUNED instead of STRAND_CHILD_CANCELLED.
 * A strand that was cancelled before keeps its first reason. Shielded strands and root strands are not pruned. `why`
 * may be NULL; the call copies up to 128 bytes of it. The call never suspends. Cost: O(log waiters) for each pruned
 * strand, or O(waiters log waiters) for the whole call with a `priority`, which is called once for each waiter.
 *
 * Returns the number of pruned strands. Returns 0 if there is no memory to record the reason or the priorities.
 *
 * A pruned child has not failed: neither its owner nor its siblings are interrupted, and the policy COLLECT does not
 * fetch it. An owner that expects STRAND_PRUNED joins its children one by one and may spawn the pruned ones again
 * later. strand_scope_join joins all children and throws STRAND_PRUNED only if no child has failed; otherwise it adds
 * STRAND_PRUNED to the suppressed exceptions of the failure. A pruned child that was not joined counts as live when its
 * scope is left.
 *
 * STRAND_PRUNED always concerns the joined child itself. A STRAND_PRUNED that leaves a child which was not pruned
 * counts as that child's failure: its owner sees STRAND_CHILD_CANCELLED, with the STRAND_PRUNED as its cause.
 */
size_t strand_prio_prune(strand_prio_semaphore *sem, size_t keep, const char *why);

/** Get the number of waiters of a priority semaphore. Other strands may change it at once. Cost: a few ns. */
size_t strand_prio_waiting(const strand_prio_semaphore *sem);
/** Get the number of permits of a priority semaphore that are in use. Other strands may change it at once. Cost: a few
 * ns. */
size_t strand_prio_in_flight(const strand_prio_semaphore *sem);

/* ---- limits ---------------------------------------------------------------------------------------------- */

/** A number of permits, served in FIFO order. strand_limit_init initialises it. */
typedef struct strand_limit {
    strand_prio_semaphore inside;
} strand_limit;

/** Initialise a limit with a number of permits, at least 1. `name` is for diagnostics only and may be NULL; it is not
 * copied, so it must live as long as the limit. Cost: a few ns. */
void strand_limit_init(strand_limit *limit, size_t permits, const char *name);
/** Acquire a permit of a limit. The call waits until one is free, in FIFO order. The caller releases the permit by
 * strand_limit_release. An interrupted call has acquired none. Throws STRAND_SYSTEM if there is no memory to wait.
 * Cost: some tens of ns if a permit is free; else O(log waiters) and the wait. */
STRAND_BLOCKS void strand_limit_acquire(strand_limit *limit);
/** Hold a permit of a limit until the enclosing block ends, however the block ends. It waits and throws like
 * strand_limit_acquire. */
#define STRAND_LIMIT_PERMIT(limit) STRAND_GUARD_(strand_limit_permit_, strand_limit_permit_enter_(limit))
/** Acquire a permit of a limit if one is free. The call is not a cancellation point. Returns 0, or -EAGAIN if the
 * caller would have to wait. */
STRAND_CHECKED int strand_limit_try_acquire(strand_limit *limit);
/** Release a permit of a limit. The first waiter gets it. Releasing more permits than were acquired is misuse. The call
 * never suspends. */
void strand_limit_release(strand_limit *limit);
/** Make the case that a limit has a permit. The select acquires the permit. The limit must stay valid until the select
 * returns. The case's result is 0, or -ENOMEM if there is no memory to wait. */
strand_case strand_on_limit(strand_limit *limit);
/** Get the number of permits of a limit that are in use. Other strands may change it at once. Cost: a few ns. */
size_t strand_limit_in_flight(const strand_limit *limit);

/**
 * Apply a limit until the enclosing block ends. The limit applies to requests (STRAND_WITHIN_LIMITS) of this block, of
 * the strands spawned in the block, and of their descendants. It must live as long as all of them. A limit that applies
 * twice counts once. The macro acquires no permit.
 */
#define STRAND_LIMIT(limit) STRAND_GUARD_(strand_limit_bound_, strand_limit_enter_(limit))

/** Permits that were acquired together. The caller allocates the struct and need not initialise it. */
typedef struct strand_held {
    uint64_t bits[10];
} strand_held;

/**
 * Acquire one permit of each limit that applies here, for one request of a client library. The call records the permits
 * in *held, which the caller owns and keeps until it passes it to strand_limits_release. The call acquires all permits
 * or none: an interrupted call releases those that it had. It acquires the limits in one total order, so strands whose
 * limits overlap cannot deadlock. A strand that calls it again before it has released the permits may wait for itself.
 * Throws STRAND_SYSTEM if there is no memory; it has acquired none then. Cost: O(limits log limits).
 */
STRAND_BLOCKS void strand_limits_acquire(strand_held *held);
/** Acquire one permit of each limit that applies here if that needs no waiting. The call is not a cancellation point.
 * *held is as for strand_limits_acquire. Returns 0, or -EAGAIN if a limit has no free permit. Throws STRAND_SYSTEM if
 * there is no memory. After an error or an exception *held holds nothing; releasing it has no effect. Cost: O(limits
 * log limits). */
STRAND_CHECKED int strand_limits_try_acquire(strand_held *held);
/** Release the permits in *held, even if other limits apply by now. *held may be used again or dropped afterwards.
 * Cost: O(limits log waiters). */
void strand_limits_release(strand_held *held);
/** Hold a permit of each limit that applies here until the enclosing block ends, however the block ends. It waits like
 * strand_limits_acquire. */
#define STRAND_WITHIN_LIMITS                                                                                           \
    STRAND_BLOCK_BEGINS_ strand_held STRAND_PASTE_(strand_within_, __COUNTER__)                                        \
        STRAND_CLEANUP_(strand_limits_release) = strand_limits_enter_()

/* ---- wrapping a client ----------------------------------------------------------------------------------- */

/**
 * Wrap a client that is reached through a table of operations: change some operations and delegate the others to an
 * existing instance. For example:
 *
 *     struct kv { const struct kv_ops *ops; };
 *     struct kv_ops { int (*get)(struct kv *self, int key, int *value); void (*flush)(struct kv *self); };
 *
 *     #define KV_OPERATIONS(value, nothing)                                                       \
 *         value(kv, int, get, (struct kv *self, int key, int *value), (inner, key, value))        \
 *         nothing(kv, flush, (struct kv *self), (inner))
 *     STRAND_DELEGATE(kv, KV_OPERATIONS)
 *     STRAND_DELEGATE_LIMITED(kv, KV_OPERATIONS)
 *
 * The list names an operation that returns a value with `value` and one that returns nothing with `nothing`. The first
 * parameter is called self and the first argument inner. The table must have no members but operations, and the list
 * must name all of them, else the program does not compile. STRAND_DELEGATE defines:
 *
 *     struct kv_wrapper { struct kv base; struct kv *inner; };
 *     struct kv_ops kv_delegated(void);                         a table that delegates every operation
 *     struct kv_wrapper kv_wrap(struct kv *inner, const struct kv_ops *ops);   &wrapper.base is the client
 *     struct kv *kv_inner(struct kv *self);                     the wrapped instance, for operations of your own
 *
 * Delegated operations work on the wrapped instance. The wrapper copies the fields of struct kv except `ops` when it is
 * made; later changes of one side are not visible to the other. STRAND_DELEGATE_LIMITED defines a table whose
 * operations all run within the limits that apply where they are called:
 *
 *     struct kv_ops kv_limited(void);
 */
#define STRAND_DELEGATE(type, operations)                                                                              \
    struct type##_wrapper {                                                                                            \
        struct type base;                                                                                              \
        struct type *inner;                                                                                            \
    };                                                                                                                 \
    __attribute__((unused)) static inline struct type *type##_inner(struct type *self)                                 \
    {                                                                                                                  \
        return STRAND_CAST_(struct type##_wrapper *, STRAND_CAST_(void *, self))->inner;                               \
    }                                                                                                                  \
    __attribute__((unused)) static inline struct type##_wrapper type##_wrap(struct type *inner,                        \
                                                                            const struct type##_ops *ops)              \
    {                                                                                                                  \
        struct type##_wrapper wrapper = {*inner, inner};                                                               \
        wrapper.base.ops = ops;                                                                                        \
        return wrapper;                                                                                                \
    }                                                                                                                  \
    operations(STRAND_DELEGATE_VALUE_, STRAND_DELEGATE_NOTHING_)                                                       \
        __attribute__((unused)) static inline struct type##_ops type##_delegated(void)                                 \
    {                                                                                                                  \
        struct type##_ops ops;                                                                                         \
        STRAND_DELEGATE_CHECK_(type, operations);                                                                      \
        memset(&ops, 0, sizeof ops);                                                                                   \
        operations(STRAND_DELEGATED_VALUE_, STRAND_DELEGATED_NOTHING_) return ops;                                     \
    }
#define STRAND_DELEGATE_LIMITED(type, operations)                                                                      \
    operations(STRAND_LIMIT_VALUE_, STRAND_LIMIT_NOTHING_)                                                             \
        __attribute__((unused)) static inline struct type##_ops type##_limited(void)                                   \
    {                                                                                                                  \
        struct type##_ops ops;                                                                                         \
        STRAND_DELEGATE_CHECK_(type, operations);                                                                      \
        memset(&ops, 0, sizeof ops);                                                                                   \
        operations(STRAND_LIMITED_VALUE_, STRAND_LIMITED_NOTHING_) return ops;                                         \
    }

/* ---- behind the macros ----------------------------------------------------------------------------------- */

#define STRAND_DELEGATE_CHECK_(type, operations)                                                                       \
    STRAND_STATIC_ASSERT_(sizeof(struct type##_ops) == 0 operations(STRAND_DELEGATE_SIZE_, STRAND_DELEGATE_SIZE_),     \
                          "the list names every operation of the table")
#define STRAND_DELEGATE_SIZE_(...) +sizeof(void (*)(void))
#define STRAND_DELEGATE_VALUE_(type, result, name, parameters, arguments)                                              \
    __attribute__((unused)) static result type##_delegate_##name parameters                                            \
    {                                                                                                                  \
        struct type *inner = type##_inner(self);                                                                       \
        return inner->ops->name arguments;                                                                             \
    }
#define STRAND_DELEGATE_NOTHING_(type, name, parameters, arguments)                                                    \
    __attribute__((unused)) static void type##_delegate_##name parameters                                              \
    {                                                                                                                  \
        struct type *inner = type##_inner(self);                                                                       \
        inner->ops->name arguments;                                                                                    \
    }
#define STRAND_DELEGATED_VALUE_(type, result, name, parameters, arguments) ops.name = type##_delegate_##name;
#define STRAND_DELEGATED_NOTHING_(type, name, parameters, arguments) ops.name = type##_delegate_##name;
#define STRAND_LIMIT_VALUE_(type, result, name, parameters, arguments)                                                 \
    __attribute__((unused)) static result type##_limit_##name parameters                                               \
    {                                                                                                                  \
        struct type *inner = type##_inner(self);                                                                       \
        STRAND_WITHIN_LIMITS;                                                                                          \
        return inner->ops->name arguments;                                                                             \
    }
#define STRAND_LIMIT_NOTHING_(type, name, parameters, arguments)                                                       \
    __attribute__((unused)) static void type##_limit_##name parameters                                                 \
    {                                                                                                                  \
        struct type *inner = type##_inner(self);                                                                       \
        STRAND_WITHIN_LIMITS;                                                                                          \
        inner->ops->name arguments;                                                                                    \
    }
#define STRAND_LIMITED_VALUE_(type, result, name, parameters, arguments) ops.name = type##_limit_##name;
#define STRAND_LIMITED_NOTHING_(type, name, parameters, arguments) ops.name = type##_limit_##name;

struct strand_guard_ strand_limit_enter_(strand_limit *limit);
STRAND_BLOCKS struct strand_guard_ strand_limit_permit_enter_(strand_limit *limit);
STRAND_BLOCKS struct strand_guard_ strand_prio_permit_enter_(strand_prio_semaphore *sem, const void *key);
STRAND_BLOCKS strand_held strand_limits_enter_(void);

#ifdef __cplusplus
}
#endif
#endif
