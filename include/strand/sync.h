/*
 * Waiting for each other without values: mutexes, conditions, read-write locks, semaphores, barriers, once, events,
 * groups and latches.
 *
 *     strand_mutex m = {0};
 *
 *     {
 *         STRAND_LOCKED(&m);         until the end of the block, by whatever way
 *         ...
 *     }
 *
 * They are objects of the user's: where he puts them, they are. A zeroed one is ready for use, takes no memory and
 * needs no destroying; it may not be moved or copied while somebody uses it. It may not lie on the stack of an opened
 * fibre (strand/pool.h): a strand of that fibre that does more with it than to take what is free and to give it back
 * while nobody waits is told so, by misuse. Who has seen the last of it (got the lock,
 * the permit, the event that others give) may free it at once. Each serves strands of one run at a time: a static one
 * of a library is wrong as soon as a process has two runs, which share nothing but the system's own locks; it belongs
 * to what the library makes for each run. Where strands of two runs meet at one, waiting, that is misuse. Whoever waits
 * is served first come, first served, and nobody overtakes those who wait; what an object gives is handed straight to
 * the one who waits. (Who wants a mutex that is held waits from when it is queued: strand_mutex_lock.) Who is
 * interrupted while it waits leaves no trace and takes nothing with it.
 *
 * What a strand did before it gave something back (unlock, release, set, count down) is seen by the one that gets it.
 * Giving back never waits and is never interrupted. A deadline is a block: STRAND_DEADLINE. Unless it says otherwise a
 * function takes a few ns where nobody has to wait, and may be called by any strand, not by plain threads. NULL for an
 * object is misuse.
 *
 * What a strand holds of mutexes and read-write locks is noted with the strand. That takes memory with its first one,
 * and when it holds many: if it is refused, locking throws STRAND_SYSTEM, trying too, and nothing is held. Ending while
 * one is held is misuse, also if the object itself is gone by then. Handing one from strand to strand is not possible;
 * permits of a semaphore can be.
 */
#ifndef STRAND_SYNC_H
#define STRAND_SYNC_H

#include "select.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- mutexes --------------------------------------------------------------------------------------------- */

/** A mutex. One strand at a time holds it. {0}: free. */
typedef struct strand_mutex {
    uint64_t bits[6];
} strand_mutex;

/** Lock a mutex; waits until it can be had. Locking one that the caller holds is misuse, and so is ending while one is
 *  held. Interrupted, the caller does not hold it. If its holder runs on another thread at this moment, the caller
 *  looks for some microseconds whether it comes free, and only then queues. Who looks passes nobody in the queue; but
 *  no place is kept for it: one that came later may get the mutex, or queue, before it. */
STRAND_BLOCKS void strand_mutex_lock(strand_mutex *mutex);
/** Lock a mutex without waiting. Returns 0, or -EAGAIN: somebody holds it, perhaps the caller. No cancellation point.
 */
STRAND_CHECKED int strand_mutex_try_lock(strand_mutex *mutex);
/** Unlock a mutex: who has waited longest in its queue holds it then. By a strand that does not hold it: misuse. */
void strand_mutex_unlock(strand_mutex *mutex);
/** Whether the calling strand holds the mutex. */
bool strand_mutex_held(const strand_mutex *mutex);
/** Hold a mutex until the end of the enclosing block. In a clean-up that runs before, it is still held. */
#define STRAND_LOCKED(mutex) STRAND_GUARD_(strand_locked_, strand_mutex_enter_(mutex))

/* ---- conditions ------------------------------------------------------------------------------------------ */

/** A condition, on which strands wait for a change of what a mutex protects. {0} is ready for use. */
typedef struct strand_condition {
    uint64_t bits[3];
} strand_condition;

/**
 * Let go of the mutex, wait for a signal, and hold the mutex again. The caller has to hold it: else misuse. A signal
 * does not say that what is waited for is still so: wait in a loop. Interrupted, it has taken no signal, and holds the
 * mutex when it throws; for that it waits uninterruptibly.
 */
STRAND_BLOCKS void strand_condition_wait(strand_condition *condition, strand_mutex *mutex);
/** Wake the strand that has waited longest, or nobody. A signal is not kept for later. */
void strand_condition_signal(strand_condition *condition);
/** Wake all who wait. O(those). */
void strand_condition_broadcast(strand_condition *condition);

/* ---- read-write locks ------------------------------------------------------------------------------------ */

/**
 * A read-write lock: held by any number of readers, or by one writer. {0}: free. Who comes while others wait queues
 * behind them, readers too: so neither side starves. For that reason a strand may not lock it twice: where a writer
 * waits it would wait for that, which waits for it, and that is misuse. Who has locked it, reader or writer, gives it
 * back itself.
 */
typedef struct strand_rwlock {
    uint64_t bits[6];
} strand_rwlock;

/** Lock to read; waits for writers that hold it or have come before. By its writer: misuse, and so is ending as a
 *  reader. Interrupted, the caller does not hold it. */
STRAND_BLOCKS void strand_rwlock_read(strand_rwlock *lock);
/** Lock to write; waits for all that hold it or have come before. By its writer, or one of its readers: misuse, and so
 *  is ending as the writer. Interrupted, the caller does not hold it. */
STRAND_BLOCKS void strand_rwlock_write(strand_rwlock *lock);
/** The same without waiting: 0, or -EAGAIN if that would have been needed. Not cancellation points. */
STRAND_CHECKED int strand_rwlock_try_read(strand_rwlock *lock);
STRAND_CHECKED int strand_rwlock_try_write(strand_rwlock *lock);
/** Give a read lock back. By a strand that holds none of it: misuse. */
void strand_rwlock_read_done(strand_rwlock *lock);
/** Give the write lock back. By another than its writer: misuse. */
void strand_rwlock_write_done(strand_rwlock *lock);
/** Hold it until the end of the enclosing block. */
#define STRAND_READ_LOCKED(lock) STRAND_GUARD_(strand_read_locked_, strand_rwlock_read_enter_(lock))
#define STRAND_WRITE_LOCKED(lock) STRAND_GUARD_(strand_write_locked_, strand_rwlock_write_enter_(lock))

/* ---- semaphores ------------------------------------------------------------------------------------------ */

/** A semaphore: so many permits. {0} has none. */
typedef struct strand_semaphore {
    uint64_t bits[4];
} strand_semaphore;

/** The initialiser of a semaphore of n permits; of one that never has more than `most`, where n is no more than that:
 *  else its first use is misuse, as it is of one of more than 2^60 permits. `most` 0: no bound. n is evaluated twice.
 */
#define STRAND_SEMAPHORE(n) STRAND_SEMAPHORE_BOUNDED(n, 0)
#define STRAND_SEMAPHORE_BOUNDED(n, most)                                                                              \
    {                                                                                                                  \
        {                                                                                                              \
            (uint64_t)(n) * 4, 0, 0, (uint64_t)(n) > UINT64_C(1) << 60 ? UINT64_MAX : (uint64_t)(most)                 \
        }                                                                                                              \
    }

/** Take one permit; waits until there is one. Interrupted, it has taken none. */
STRAND_BLOCKS void strand_semaphore_acquire(strand_semaphore *semaphore);
/** Take n permits at once; waits until there are so many, and meanwhile nobody who comes later gets any. More than a
 *  bounded semaphore can ever have is misuse. Interrupted, it has taken none. */
STRAND_BLOCKS void strand_semaphore_acquire_many(strand_semaphore *semaphore, uint32_t n);
/** The same without waiting: 0, or -EAGAIN if that would have been needed. Not cancellation points. */
STRAND_CHECKED int strand_semaphore_try_acquire(strand_semaphore *semaphore);
STRAND_CHECKED int strand_semaphore_try_acquire_many(strand_semaphore *semaphore, uint32_t n);
/** Give one permit, or n; the caller need not have taken them. More than the bound, or than 2^60, is misuse. */
void strand_semaphore_release(strand_semaphore *semaphore);
void strand_semaphore_release_many(strand_semaphore *semaphore, uint32_t n);
/** How many permits there are now. */
uint64_t strand_semaphore_permits(const strand_semaphore *semaphore);
/** Have one permit until the end of the enclosing block: acquires it here, and releases it there by whatever way the
 *  block is left. */
#define STRAND_PERMIT(semaphore) STRAND_GUARD_(strand_permit_, strand_semaphore_enter_(semaphore))
/** As a case of a select: takes one permit when it happens. */
strand_case strand_on_permit(strand_semaphore *semaphore);

/* ---- barriers -------------------------------------------------------------------------------------------- */

/** A barrier, where strands wait until so many of them have come; then it is ready for the next round. */
typedef struct strand_barrier {
    uint64_t bits[4];
} strand_barrier;

/** The initialiser of a barrier for n strands, 1 at least. */
#define STRAND_BARRIER(n)                                                                                              \
    {                                                                                                                  \
        {                                                                                                              \
            0, 0, 0, (uint64_t)(n)                                                                                     \
        }                                                                                                              \
    }

/** Wait until n strands have come. Returns true in the one that came last. Interrupted, it has not come: the others
 *  wait for another one. The last one's cost: O(n). */
STRAND_BLOCKS bool strand_barrier_wait(strand_barrier *barrier);

/* ---- once ------------------------------------------------------------------------------------------------ */

/** What is done once. {0}: not done yet. */
typedef struct strand_once {
    uint64_t bits[4];
} strand_once;

/**
 * Run fn(arg) unless that has been done; waits while another strand runs it. Returns what the one run that returned
 * gave; it stays the caller's. A run that is left by an exception, an interruption too, does not count: the exception
 * goes to its caller, and the next of those who wait runs its own. From inside fn: misuse.
 */
STRAND_BLOCKS void *strand_once_run(strand_once *once, strand_fn *fn, void *arg);
/** Whether it has been done. What was done is seen by a caller that gets true. */
bool strand_once_done(const strand_once *once);

/* ---- events ---------------------------------------------------------------------------------------------- */

/** An event: set or not. {0}: not set. */
typedef struct strand_event {
    uint64_t bits[3];
} strand_event;

/** Wait until the event is set. */
STRAND_BLOCKS void strand_event_wait(strand_event *event);
/** Set the event: all who wait go on, even if it is cleared before they run. O(those). */
void strand_event_set(strand_event *event);
/** Clear the event: from now on it is waited for again. */
void strand_event_clear(strand_event *event);
/** Whether the event is set. What was done before is seen by a caller that gets true. */
bool strand_event_is_set(const strand_event *event);
/** As a case of a select. */
strand_case strand_on_event(strand_event *event);

/* ---- wait groups and latches ----------------------------------------------------------------------------- */

/** A wait group: counts what is under way. {0}: nothing is. */
typedef struct strand_group {
    uint64_t bits[3];
} strand_group;

/** n more are under way. */
void strand_group_add(strand_group *group, uint32_t n);
/** One is done; with the last, all who wait go on. More than were added is misuse. O(those who wait) for the last. */
void strand_group_done(strand_group *group);
/** Wait until nothing is under way. */
STRAND_BLOCKS void strand_group_wait(strand_group *group);
/** How many are under way now. 0: what was done before is seen by the caller. */
uint64_t strand_group_count(const strand_group *group);
/** As a case of a select: nothing is under way. */
strand_case strand_on_group(strand_group *group);

/** A latch: counts down to 0, once. {0} is there already. */
typedef struct strand_latch {
    uint64_t bits[3];
} strand_latch;

/** The initialiser of a latch that opens when it was counted down n times. */
#define STRAND_LATCH(n)                                                                                                \
    {                                                                                                                  \
        {                                                                                                              \
            (uint64_t)(n) * 4, 0, 0                                                                                    \
        }                                                                                                              \
    }

/** Count down by n; at 0 all who wait go on, and later ones don't have to. Below 0 is misuse. O(those who wait) then.
 */
void strand_latch_count_down(strand_latch *latch, uint32_t n);
/** Wait until it is at 0. */
STRAND_BLOCKS void strand_latch_wait(strand_latch *latch);
/** As a case of a select: it is at 0. */
strand_case strand_on_latch(strand_latch *latch);

/* ---- behind the macros ----------------------------------------------------------------------------------- */

STRAND_BLOCKS struct strand_guard_ strand_mutex_enter_(strand_mutex *mutex);
STRAND_BLOCKS struct strand_guard_ strand_rwlock_read_enter_(strand_rwlock *lock);
STRAND_BLOCKS struct strand_guard_ strand_rwlock_write_enter_(strand_rwlock *lock);
STRAND_BLOCKS struct strand_guard_ strand_semaphore_enter_(strand_semaphore *semaphore);

#ifdef __cplusplus
}
#endif

#endif
