/*
 * Synchronisation: mutexes, conditions, read-write locks, semaphores, barriers, once, events, wait groups and latches.
 *
 *     strand_mutex m = STRAND_MUTEX_INIT;
 *
 *     {
 *         STRAND_LOCKED(&m);         holds the mutex until the block ends, however it ends
 *         ...
 *     }
 *
 * Which callers:
 *
 *   strands of one run at a time      all functions and macros
 *   plain threads, signal handlers    none
 *
 * Suspension: the functions marked STRAND_BLOCKS, and STRAND_LOCKED, STRAND_READ_LOCKED, STRAND_WRITE_LOCKED and
 * STRAND_PERMIT, may suspend the caller. They are cancellation points: an interrupted call has acquired nothing, and
 * has consumed no signal. All other functions never suspend.
 *
 * Cost: about 10 ns if the caller need not wait, unless a function says otherwise. Waiting adds a switch to another
 * strand and back. Waking a strand on a sleeping thread takes a system call.
 *
 * NULL for an object is misuse.
 *
 * Memory. The caller allocates these objects; the library never moves or copies them. An object owns no memory and
 * needs no release. Initialise it by its macro (STRAND_MUTEX_INIT, STRAND_SEMAPHORE_INIT(n), ...) or by zeroes, as
 * calloc and static storage do; a zeroed barrier is not ready for use, because it needs a number. The words of an
 * object belong to the library, and some are reserved. The caller must not move or copy an object in use. An object
 * must not lie on the stack of a shared fibre (strand/pool.h): contending for it from a strand of that fibre is
 * reported as misuse, and uncontended use is not detected. A strand that has acquired what others release to it may
 * free the object at once.
 *
 * Runs. An object serves one run at a time, because runs share nothing. So a library with a static object is wrong as
 * soon as a process has two runs; allocate such objects per run. If strands of two runs wait at one object, that is
 * misuse.
 *
 * Order. Waiters are served in FIFO order and nobody overtakes them: a release hands the object to the first waiter. A
 * contended mutex takes its FIFO position when it is enqueued (strand_mutex_lock). An interrupted waiter leaves the
 * queue and has acquired nothing. A release (unlock, release, set, count down) happens before the acquisition that it
 * allows. A release never suspends. To wait for a limited time, wait inside a STRAND_DEADLINE block.
 *
 * Locks have owners. The library records the mutexes and read-write locks that each strand holds. The record needs
 * memory for a strand's first lock and when a strand holds many; without it, locking (and trying to lock) throws
 * STRAND_SYSTEM and nothing is held. A strand that ends while it holds a lock is misuse, even if the lock's memory is
 * gone. A lock cannot be handed to another strand; permits of a semaphore can.
 */
#ifndef STRAND_SYNC_H
#define STRAND_SYNC_H

#include "select.h"

#ifdef __cplusplus
extern "C" {
#endif

#define STRAND_ZEROED_                                                                                                 \
    {                                                                                                                  \
        {                                                                                                              \
            0                                                                                                          \
        }                                                                                                              \
    }

/* ---- mutexes --------------------------------------------------------------------------------------------- */

/** A mutex: at most one strand holds it. {0} is an unlocked mutex. */
typedef struct strand_mutex {
    uint64_t bits[8];
} strand_mutex;
/** Initialise a mutex. */
#define STRAND_MUTEX_INIT STRAND_ZEROED_

/**
 * Lock a mutex. The call waits until the mutex is free. If its holder runs on another thread, the caller first spins
 * for some microseconds and then enqueues. A spinning caller never overtakes queued waiters, but it has no reserved
 * position: a later caller may acquire the mutex or enqueue first. Cost: about 10 ns for a lock and an unlock of a free
 * mutex.
 *
 * Locking a mutex that the caller holds is misuse, and so is ending while it is held. An interrupted call does not hold
 * the mutex. Throws STRAND_SYSTEM if there is no memory to record the lock.
 */
STRAND_BLOCKS void strand_mutex_lock(strand_mutex *mutex);
/** Lock a mutex if it is free. The call does not wait and is not a cancellation point. Returns 0, or -EAGAIN if a
 * strand holds the mutex, which may be the caller. Throws STRAND_SYSTEM if there is no memory to record the lock. */
STRAND_CHECKED int strand_mutex_try_lock(strand_mutex *mutex);
/** Unlock a mutex. If strands wait for it, the first of them holds it then. Unlocking a mutex that the caller does not
 * hold is misuse. */
void strand_mutex_unlock(strand_mutex *mutex);
/** Check whether the calling strand holds a mutex. Returns true if the caller holds it. */
bool strand_mutex_held(const strand_mutex *mutex);
/** Lock a mutex until the enclosing block ends, however the block ends. Clean-ups declared later in the block run while
 * the mutex is held. It waits and throws like strand_mutex_lock. */
#define STRAND_LOCKED(mutex) STRAND_GUARD_(strand_locked_, strand_mutex_enter_(mutex))

/* ---- conditions ------------------------------------------------------------------------------------------ */

/** A condition variable: strands wait on it for a change of the state that a mutex protects. {0} is ready for use. */
typedef struct strand_condition {
    uint64_t bits[6];
} strand_condition;
/** Initialise a condition variable. */
#define STRAND_CONDITION_INIT STRAND_ZEROED_

/**
 * Wait on a condition variable. The call unlocks the mutex, waits for a signal, and locks the mutex again. The state
 * may have changed between the signal and the lock, so call it in a loop that tests the state. Not holding the mutex is
 * misuse. An interrupted call has consumed no signal; it locks the mutex, uninterruptibly, before it throws.
 */
STRAND_BLOCKS void strand_condition_wait(strand_condition *condition, strand_mutex *mutex);
/** Wake the first waiter of a condition variable. A signal has no effect if nobody waits; it is not stored. The caller
 * need not hold the mutex, but has to change the state under it. */
void strand_condition_signal(strand_condition *condition);
/** Wake all waiters of a condition variable, like strand_condition_signal. Cost: O(waiters). */
void strand_condition_broadcast(strand_condition *condition);

/* ---- read-write locks ------------------------------------------------------------------------------------ */

/**
 * A read-write lock: any number of readers or one writer hold it. {0} is an unlocked lock. A strand that arrives while
 * others wait queues behind them, readers included, so neither side starves. For this reason a strand must not lock it
 * twice: the second read lock would wait for a writer that waits for the first. That is misuse. The strand that locked
 * it must unlock it.
 */
typedef struct strand_rwlock {
    uint64_t bits[8];
} strand_rwlock;
/** Initialise a read-write lock. */
#define STRAND_RWLOCK_INIT STRAND_ZEROED_

/** Lock a read-write lock for reading. The call waits for a writer that holds the lock and for strands that queued
 * earlier. A call by the writer is misuse, and so is ending while the lock is held. An interrupted call does not hold
 * the lock. Throws STRAND_SYSTEM if there is no memory to record the lock. */
STRAND_BLOCKS void strand_rwlock_read(strand_rwlock *lock);
/** Lock a read-write lock for writing. The call waits for all strands that hold the lock or queued earlier. A call by
 * the writer or by a reader is misuse, and so is ending while the lock is held. An interrupted call does not hold the
 * lock. Throws STRAND_SYSTEM if there is no memory to record the lock. */
STRAND_BLOCKS void strand_rwlock_write(strand_rwlock *lock);
/** Lock a read-write lock for reading if that needs no waiting. Returns 0, or -EAGAIN if the caller would have to wait.
 * Throws STRAND_SYSTEM if there is no memory to record the lock. */
STRAND_CHECKED int strand_rwlock_try_read(strand_rwlock *lock);
/** Lock a read-write lock for writing if that needs no waiting. Returns 0, or -EAGAIN if the caller would have to wait.
 * Throws STRAND_SYSTEM if there is no memory to record the lock. */
STRAND_CHECKED int strand_rwlock_try_write(strand_rwlock *lock);
/** Unlock a read-write lock that the caller holds for reading. A call by another strand is misuse. */
void strand_rwlock_read_done(strand_rwlock *lock);
/** Unlock a read-write lock that the caller holds for writing. If readers are first in the queue, all of them that no
 * writer precedes hold it then. A call by another strand is misuse. Cost: O(readers that it wakes). */
void strand_rwlock_write_done(strand_rwlock *lock);
/** Lock a read-write lock until the enclosing block ends, however the block ends. They wait and throw like
 * strand_rwlock_read and strand_rwlock_write. */
#define STRAND_READ_LOCKED(lock) STRAND_GUARD_(strand_read_locked_, strand_rwlock_read_enter_(lock))
#define STRAND_WRITE_LOCKED(lock) STRAND_GUARD_(strand_write_locked_, strand_rwlock_write_enter_(lock))

/* ---- semaphores ------------------------------------------------------------------------------------------ */

/** A semaphore: a number of permits. {0} has none. */
typedef struct strand_semaphore {
    uint64_t bits[6];
} strand_semaphore;

/** Initialise a semaphore with n permits. The bounded form never has more than `max` permits; 0 means no bound. The
 * first use of a semaphore is misuse if n exceeds `max` or 2^60. The macros evaluate n more than once. */
#define STRAND_SEMAPHORE_INIT(n) STRAND_SEMAPHORE_INIT_BOUNDED(n, 0)
#define STRAND_SEMAPHORE_INIT_BOUNDED(n, max)                                                                          \
    {                                                                                                                  \
        {                                                                                                              \
            STRAND_TOO_MANY_(n) ? 0 : (uint64_t)(n), 0, 0, STRAND_TOO_MANY_(n) ? UINT64_MAX : (uint64_t)(max), 0, 0    \
        }                                                                                                              \
    }

/** Acquire one permit of a semaphore. The call waits until a permit is available. An interrupted call has acquired
 * none. */
STRAND_BLOCKS void strand_semaphore_acquire(strand_semaphore *semaphore);
/** Acquire n permits of a semaphore at once. The call waits until n permits are available; later callers get none
 * meanwhile. Asking a bounded semaphore for more than its bound is misuse. An interrupted call has acquired none. */
STRAND_BLOCKS void strand_semaphore_acquire_many(strand_semaphore *semaphore, uint32_t n);
/** Acquire one permit of a semaphore if that needs no waiting. Returns 0, or -EAGAIN if the caller would have to
 * wait. */
STRAND_CHECKED int strand_semaphore_try_acquire(strand_semaphore *semaphore);
/** Acquire n permits of a semaphore at once if that needs no waiting. Returns 0, or -EAGAIN if the caller would have to
 * wait; it has acquired none then. */
STRAND_CHECKED int strand_semaphore_try_acquire_many(strand_semaphore *semaphore, uint32_t n);
/** Release one permit to a semaphore. The caller need not have acquired it. Exceeding the bound, or 2^60 permits, is
 * misuse. */
void strand_semaphore_release(strand_semaphore *semaphore);
/** Release n permits to a semaphore at once. The caller need not have acquired them. Exceeding the bound, or 2^60
 * permits, is misuse. Cost: O(waiters that it wakes). */
void strand_semaphore_release_many(strand_semaphore *semaphore, uint32_t n);
/** Get the number of permits that are available now. */
uint64_t strand_semaphore_permits(const strand_semaphore *semaphore);
/** Acquire one permit here and release it when the enclosing block ends, however the block ends. It waits and throws
 * like strand_semaphore_acquire. */
#define STRAND_PERMIT(semaphore) STRAND_GUARD_(strand_permit_, strand_semaphore_enter_(semaphore))
/** Make the case that a semaphore has a permit. The select acquires one permit. The semaphore must stay valid until the
 * select returns. The case's result is 0. */
strand_case strand_on_permit(strand_semaphore *semaphore);

/* ---- barriers -------------------------------------------------------------------------------------------- */

/** A barrier: strands wait at it until n of them have arrived. It is then ready for the next round. */
typedef struct strand_barrier {
    uint64_t bits[6];
} strand_barrier;

/** Initialise a barrier for n strands, at least 1. */
#define STRAND_BARRIER_INIT(n)                                                                                         \
    {                                                                                                                  \
        {                                                                                                              \
            0, 0, 0, (uint64_t)(n), 0, 0                                                                               \
        }                                                                                                              \
    }

/** Wait at a barrier until n strands have arrived. Returns true in the strand that arrived last, else false. An
 * interrupted call does not count as an arrival. Cost: O(n) for the last strand. */
STRAND_BLOCKS bool strand_barrier_wait(strand_barrier *barrier);

/* ---- once ------------------------------------------------------------------------------------------------ */

/** A function call that takes place once. {0} means that it has not taken place. */
typedef struct strand_once {
    uint64_t bits[6];
} strand_once;
/** Initialise a once. */
#define STRAND_ONCE_INIT STRAND_ZEROED_

/**
 * Call fn(arg), unless a call has returned already. The caller waits while another strand runs its call. A call that
 * throws, by an interruption too, does not count: its caller gets the exception, and the next waiter runs its own call.
 * Calling strand_once_run from inside fn is misuse.
 *
 * Returns the value that the one call returned; the caller owns that value.
 */
STRAND_BLOCKS void *strand_once_run(strand_once *once, strand_fn *fn, void *arg);
/** Check whether the call has taken place. Returns true if the call has returned; it happens before this result. Cost:
 * a few ns. */
bool strand_once_done(const strand_once *once);

/* ---- events ---------------------------------------------------------------------------------------------- */

/** An event: it is set or not set. {0} is not set. */
typedef struct strand_event {
    uint64_t bits[6];
} strand_event;
/** Initialise an event. */
#define STRAND_EVENT_INIT STRAND_ZEROED_

/** Wait until an event is set. The call returns at once if it is set. An interrupted call has no effect. The event must
 * stay valid until the call returns. */
STRAND_BLOCKS void strand_event_wait(strand_event *event);
/** Set an event. All waiters continue, even if the event is cleared before they run. Cost: O(waiters). */
void strand_event_set(strand_event *event);
/** Clear an event. Later waits wait until it is set again. */
void strand_event_clear(strand_event *event);
/** Check whether an event is set. Returns true if the event is set; the call that set it happens before this result. */
bool strand_event_is_set(const strand_event *event);
/** Make the case that an event is set. The event must stay valid until the select returns. The case's result is 0. */
strand_case strand_on_event(strand_event *event);

/* ---- wait groups and latches ----------------------------------------------------------------------------- */

/** A wait group: counts operations in progress. {0} counts none. */
typedef struct strand_group {
    uint64_t bits[6];
} strand_group;
/** Initialise a wait group. */
#define STRAND_GROUP_INIT STRAND_ZEROED_

/**
 * Add n operations to a wait group; 0 adds none. Call it before the operations begin: a strand_group_wait that finds no
 * operation in progress returns at once. Any strand of the run that uses the group may call it, also while others wait
 * for the group. The call does not suspend. Cost: one atomic operation while no strand waits for the group.
 *
 * A call that finds more than 2^60 operations in progress is misuse, and so is a call by a thread that runs no strand.
 */
void strand_group_add(strand_group *group, uint32_t n);
/** Report that one operation of a wait group is done. The last one wakes all waiters. More calls than operations were
 * added is misuse. Cost: O(waiters) for the last call. */
void strand_group_done(strand_group *group);
/** Wait until no operation of a wait group is in progress. The call returns at once if there is none. An interrupted
 * call has no effect. All strand_group_done calls happen before the return. */
STRAND_BLOCKS void strand_group_wait(strand_group *group);
/** Get the number of operations in progress. Returns 0 if none is; all strand_group_done calls happen before that
 * result. */
uint64_t strand_group_count(const strand_group *group);
/** Make the case that no operation of a wait group is in progress. The group must stay valid until the select returns.
 * The case's result is 0. */
strand_case strand_on_group(strand_group *group);

/** A latch: counts down to 0 and stays there. {0} has counted down already. */
typedef struct strand_latch {
    uint64_t bits[6];
} strand_latch;

/** Initialise a latch with the count n. */
#define STRAND_LATCH_INIT(n)                                                                                           \
    {                                                                                                                  \
        {                                                                                                              \
            (uint64_t)(n), 0, 0, 0, 0, 0                                                                               \
        }                                                                                                              \
    }

/** Decrease the count of a latch by n. At 0 all waiters continue. Counting below 0 is misuse. Cost: O(waiters) for the
 * call that reaches 0. */
void strand_latch_count_down(strand_latch *latch, uint32_t n);
/** Wait until the count of a latch is 0. The call returns at once if it is. An interrupted call has no effect. All
 * calls that counted down happen before the return. */
STRAND_BLOCKS void strand_latch_wait(strand_latch *latch);
/** Make the case that the count of a latch is 0. The latch must stay valid until the select returns. The case's result
 * is 0. */
strand_case strand_on_latch(strand_latch *latch);

/* ---- behind the macros ----------------------------------------------------------------------------------- */

#define STRAND_TOO_MANY_(n) ((uint64_t)(n) > UINT64_C(1) << 60)
STRAND_BLOCKS struct strand_guard_ strand_mutex_enter_(strand_mutex *mutex);
STRAND_BLOCKS struct strand_guard_ strand_rwlock_read_enter_(strand_rwlock *lock);
STRAND_BLOCKS struct strand_guard_ strand_rwlock_write_enter_(strand_rwlock *lock);
STRAND_BLOCKS struct strand_guard_ strand_semaphore_enter_(strand_semaphore *semaphore);

#ifdef __cplusplus
}
#endif

#endif
