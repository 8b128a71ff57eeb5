/*
 * Limits: how many may do something at a time.
 *
 *   strand_prio_semaphore   who waits for a permit is served in an order of the user's; the worst can be pruned
 *   strand_limit            a plain number of permits; first come, first served
 *   STRAND_PRIO_PERMIT, STRAND_LIMIT_PERMIT   one permit of either, until the end of a block
 *   STRAND_LIMIT            a limit that holds for all requests of a block and of the strands spawned in it
 *   STRAND_WITHIN_LIMITS    one request of a client library: a permit of each limit that holds here
 *   STRAND_DELEGATE         a client that is wrapped, so that its requests are limited without its knowing
 *
 * Semaphores and limits are structures of the user's, who keeps them as long as anybody uses them; they own no memory,
 * and nothing is to be given back. They must not lie on the stack of an opened fibre, nor be copied.
 */
#ifndef STRAND_LIMIT_H
#define STRAND_LIMIT_H

#include "select.h"

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the priority semaphore ------------------------------------------------------------------------------ */

/** A semaphore whose waiters are ordered. Initialised by strand_prio_init. */
typedef struct strand_prio_semaphore {
    uint64_t bits[20];
} strand_prio_semaphore;

/** A priority of somebody who may not go, although there is a permit. Lower than all others. */
#define STRAND_NOT_NOW INT64_MIN

/** What becomes of a strand that would wait where max_waiters wait already. */
enum {
    STRAND_FULL_PRUNES = 0, /* the worst of them all is pruned, which may be the one that comes */
    STRAND_FULL_REFUSES = 1 /* the one that comes gets -ENOBUFS */
};

/**
 * What a priority semaphore is told. Zero is the default of each; `size` and `limit` are required.
 *
 * The order is one of: `compare`, for keys that do not change while they wait; `priority`, which is asked of each that
 * waits, every time that a permit is free; or neither: first come, first served. Among equals that holds too. Both
 * functions are called in any strand that uses the semaphore, one call at a time, and may not block, throw, or use the
 * semaphore: all three are misuse. They are given keys, which are the user's: a pointer to what describes the waiter,
 * or a number cast to one.
 */
typedef struct strand_prio_options {
    size_t size;                                             /* sizeof(strand_prio_options) */
    size_t limit;                                            /* how many permits there are; at least 1 */
    int (*compare)(const void *a, const void *b, void *arg); /* < 0: a goes before b; 0: they are equal */
    int64_t (*priority)(const void *key, void *arg);         /* the greatest goes first; STRAND_NOT_NOW: not yet */
    void *arg;                                               /* for both */
    size_t max_waiters;                                      /* 0: any number */
    int on_full;                                             /* STRAND_FULL_PRUNES, STRAND_FULL_REFUSES */
    const char *name;                                        /* for people; kept as a pointer */
} strand_prio_options;

/** Make a semaphore of *sem. Takes no memory. Any strand, before others use it, or when nobody uses it any more: while
 *  strands wait for it that is misuse. */
void strand_prio_init(strand_prio_semaphore *sem, const strand_prio_options *options);

/**
 * Take a permit; wait for one if none is free, or this key may not go yet. Whoever gets a free permit is decided when
 * it becomes free: a late better one goes before those that wait; who has a permit keeps it. *key has to stay, and must
 * not change its place in the order, until the call returns; it must not lie on the stack of an opened fibre. Returns
 * 0, or -ENOBUFS: max_waiters wait, and this one is refused. Interrupted (or pruned, see strand_prio_prune) it has
 * taken none. Throws STRAND_SYSTEM if memory is refused. O(log waiters); a semaphore with a `priority` asks for it
 * once.
 */
STRAND_BLOCKS int strand_prio_acquire(strand_prio_semaphore *sem, const void *key);
/** A permit until the end of the block, however it is left. Blocks, as strand_prio_acquire does; where that returns
 *  -ENOBUFS, this throws STRAND_SYSTEM. */
#define STRAND_PRIO_PERMIT(sem, key) STRAND_GUARD_(strand_prio_permit_, strand_prio_permit_enter_((sem), (key)))
/** The same without waiting: 0, or -EAGAIN. Not a cancellation point. */
STRAND_CHECKED int strand_prio_try_acquire(strand_prio_semaphore *sem, const void *key);
/**
 * Give a permit back: it is handed to the best one that waits. More than were taken is misuse. Any strand, also one
 * that has not taken it. Never interrupted. O(log waiters), with a `priority` O(waiters).
 */
void strand_prio_release(strand_prio_semaphore *sem);
/** Something has changed that priorities depend on: all that wait are asked again, as long as there are free permits.
 *  Never interrupted. O(waiters). */
void strand_prio_reconsider(strand_prio_semaphore *sem);
/** Taking a permit, as a case of a select; *key has to stay until that returns. Its result is 0; -ENOBUFS: it would
 * have had to wait where max_waiters wait, and none of those could be pruned, or all are better; -ENOMEM. */
strand_case strand_on_prio_permit(strand_prio_semaphore *sem, const void *key);

/**
 * Prune those that wait, the worst first (of equals the latest), until `keep` are left. To prune a strand is to cancel
 * it, with a note that says so: it ends interrupted, and its owner's join throws STRAND_PRUNED instead of
 * STRAND_CHILD_CANCELLED. The first cancel of a strand counts. Strands in a shield and root strands are not pruned.
 * `why` (may be NULL) is copied, up to 128 bytes. Does not wait. Returns how many it has pruned; none, whatever `keep`
 * is, if memory for the note is refused. With a `priority` O(waiters) for each, else O(log waiters). Never interrupted.
 *
 * What an owner sees of a pruned child: no failure, so neither it nor siblings are interrupted, and COLLECT does not
 * fetch it. strand_join throws STRAND_PRUNED: who expects it joins one by one, and spawns again later what was pruned.
 * strand_scope_join joins all and throws STRAND_PRUNED only if there is nothing worse to throw, in which it stands
 * suppressed otherwise. A scope that is left with a pruned child not joined is left with live strands.
 *
 * STRAND_PRUNED is about the joined child itself, always. A child that was not pruned, and lets the STRAND_PRUNED of a
 * child of its own through, has failed: to its owner that is STRAND_CHILD_CANCELLED, with the other as its cause.
 */
size_t strand_prio_prune(strand_prio_semaphore *sem, size_t keep, const char *why);

/** How many wait, and how many permits are taken. */
size_t strand_prio_waiting(const strand_prio_semaphore *sem);
size_t strand_prio_in_flight(const strand_prio_semaphore *sem);

/* ---- limits ---------------------------------------------------------------------------------------------- */

/** A number of permits; first come, first served. Initialised by strand_limit_init. */
typedef struct strand_limit {
    strand_prio_semaphore inside;
} strand_limit;

/** Make a limit of so many permits, at least 1. `name` (may be NULL) is kept as a pointer. */
void strand_limit_init(strand_limit *limit, size_t permits, const char *name);
/** Take a permit, as soon as there is one. Interrupted it has taken none. */
STRAND_BLOCKS void strand_limit_acquire(strand_limit *limit);
/** A permit until the end of the block, however it is left. Blocks. */
#define STRAND_LIMIT_PERMIT(limit) STRAND_GUARD_(strand_limit_permit_, strand_limit_permit_enter_(limit))
/** The same without waiting: 0, or -EAGAIN. Not a cancellation point. */
STRAND_CHECKED int strand_limit_try_acquire(strand_limit *limit);
/** Give a permit back, to the one that has waited longest. More than were taken is misuse. Never interrupted. */
void strand_limit_release(strand_limit *limit);
/** A permit of the limit, as a case of a select. */
strand_case strand_on_limit(strand_limit *limit);
/** How many permits are taken. */
size_t strand_limit_in_flight(const strand_limit *limit);

/**
 * The limit holds until the end of the block, for requests that are made here and in the strands that are spawned here
 * (and in theirs): it is put on the stack of limits that a strand inherits. It has to live as long as all those. A
 * limit that is on the stack twice counts once. Takes no permit.
 */
#define STRAND_LIMIT(limit) STRAND_GUARD_(strand_limit_bound_, strand_limit_enter_(limit))

/** Permits that were taken together. */
typedef struct strand_held {
    uint64_t bits[8];
} strand_held;

/**
 * Take one permit of each limit that holds here, for one request of a client. All or nothing: interrupted, it gives
 * back what it had. Limits are taken in one total order, whatever the order of the stack, so strands whose limits
 * overlap do not wait for each other for ever; but a strand that takes them again before it has given them back
 * may wait for itself. Throws STRAND_SYSTEM if memory is refused, and has taken none. O(limits^2).
 */
STRAND_BLOCKS void strand_limits_acquire(strand_held *held);
/** The same without waiting: 0; -EAGAIN: of one of them there is no permit; -ENOMEM. Holds nothing then, and may be
 *  released all the same. Not a cancellation point. */
STRAND_CHECKED int strand_limits_try_acquire(strand_held *held);
/** Give back what strand_limits_acquire has taken, also if other limits hold by now. Never interrupted. */
void strand_limits_release(strand_held *held);
/** A permit of each limit that holds here, until the end of the block. Blocks. */
#define STRAND_WITHIN_LIMITS                                                                                           \
    strand_held STRAND_PASTE_(strand_within_, __COUNTER__) STRAND_CLEANUP_(strand_limits_release) =                    \
        strand_limits_enter_()

/* ---- wrapping a client ----------------------------------------------------------------------------------- */

/**
 * Wrap a client that is reached through a table of operations, to change some of them, and delegate the others to an
 * instance that somebody else has made. From
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
 * (an operation that returns a `value`, one that returns `nothing`; the first parameter is called self, and the first
 * argument inner; the list names every member of the table, which has no others than operations: one that is forgotten
 * does not compile) the first line makes
 *
 *     struct kv_wrapper { struct kv base; struct kv *inner; };
 *     struct kv_ops kv_delegated(void);                         a table that delegates everything, to be changed
 *     struct kv_wrapper kv_wrap(struct kv *inner, const struct kv_ops *ops);   &wrapper.base is the client
 *     struct kv *kv_inner(struct kv *self);                     for operations of one's own: the wrapped one
 *
 * Operations work on the wrapped one. The wrapper's own fields of struct kv, but ops, are copies of those that it had
 * when it was wrapped, for who reads them there; what one of the two changes later the other does not see.
 *
 * and the second a table whose operations all run within the limits that hold where they are called:
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
        return ((struct type##_wrapper *)(void *)self)->inner;                                                         \
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

#ifdef __cplusplus
#define STRAND_STATIC_ASSERT_ static_assert
#else
#define STRAND_STATIC_ASSERT_ _Static_assert
#endif
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
