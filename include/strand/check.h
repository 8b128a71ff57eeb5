/*
 * Optional checks for debug builds. The header checks the calls that come after it in the file; in C, include it after
 * all other headers. Files that do not include it pay nothing.
 *
 * No strand suspends while it holds a lock of the C library. Such a lock belongs to the thread that took it. While the
 * strand is suspended the thread runs other strands, which may need the lock: a deadlock. The strand may also continue
 * on another thread, which must not release the lock. The header checks the file's calls that lock and unlock a
 * pthread_mutex_t, a pthread_rwlock_t or a pthread_spinlock_t, and pthread_once, which holds a lock while its function
 * runs: suspending or ending while a strand holds a lock is misuse, and the report names the location where it was
 * taken. In C++ it checks std::mutex, std::shared_mutex and std::call_once too, if it comes before the headers of C++,
 * as -include has it: they call these functions. Strands that hold no lock pay nothing. Calls by plain threads are not
 * checked.
 *
 * The argument of a child outlives the child's scope. The header checks the file's calls of strand_spawn and
 * strand_spawn_with: an argument in the stack of the caller is misuse if
 *
 *   - the memory was taken after the owner had opened the scope: a variable of a function that was called since, or a
 *     variable-length array; an exception may leave the function while the child lives, even if it waits for the child;
 *   - the function of the variable has returned;
 *   - the scope is another strand's: the caller may end before the child.
 *
 * The first of these needs this header in the file that opens the scope, too. Variables of inner blocks of the owner's
 * function, and addresses inside of what is passed, are not checked (docs/misuse.md). Write `(strand_spawn)(scope, fn,
 * arg)` to spawn without the check, for an argument that the child has copied before the caller goes on.
 *
 * The header does nothing if STRAND_CHECK_NOTHING is defined.
 *
 * Which callers:
 *
 *   any thread          strand_check_locked, strand_check_unlocked; on a plain thread they have no effect
 *   a signal handler    no function
 *
 * Suspension: no function suspends or is a cancellation point.
 *
 * Cost: some tens of nanoseconds for each checked call, unless a function says otherwise.
 *
 *     cc -include strand/check.h ...          checks all files of a program
 *     cc -D_GNU_SOURCE= -include strand/check.h ...
 *
 * Use the second form for C files that define _GNU_SOURCE (as nothing) by themselves. The first system header of a file
 * decides which features the file has. This header includes <pthread.h> before the file's own definition, which then
 * has no effect. If files define other such macros (_POSIX_C_SOURCE, _FILE_OFFSET_BITS), define these on the command
 * line too, with the same value. C++ compilers define _GNU_SOURCE anyway.
 */
#ifndef STRAND_CHECK_H
#define STRAND_CHECK_H

#include "../strand.h"

#include <errno.h> /* for the codes; errno itself is read in src/arch alone: tools/check-system.sh */
#include <pthread.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Record that the calling strand holds a lock of its thread, so that it must not suspend until strand_check_unlocked.
 * `mutex` is any address, for locks that are not a pthread_mutex_t; file and line name the location in reports. On a
 * plain thread it has no effect. The record needs memory; without it this lock is not checked.
 *
 *     spin_lock(&lock);
 *     strand_check_locked(&lock, __FILE__, __LINE__);
 *     ...
 *     strand_check_unlocked(&lock);
 *     spin_unlock(&lock);
 */
void strand_check_locked(const void *mutex, const char *file, int line);
/**
 * Record that the calling strand holds the lock no more. An address that was not recorded has no effect.
 *
 *     strand_check_unlocked(&lock);
 *     spin_unlock(&lock);
 */
void strand_check_unlocked(const void *mutex);

/* ---- behind the macros ----------------------------------------------------------------------------------- */

strand_scope strand_check_scope_enter_(strand_scope_flags flags, const char *file, int line);
void strand_check_argument_(strand_scope scope, const void *arg, const char *function);

/* Without frames of their own: a report names the caller. */
#define STRAND_CHECK_INLINE_ static inline __attribute__((always_inline, artificial))
STRAND_CHECK_INLINE_ strand strand_check_spawn_(strand_scope scope, strand_fn *fn, void *arg)
{
    strand_check_argument_(scope, arg, "strand_spawn");
    return strand_spawn(scope, fn, arg);
}
STRAND_CHECK_INLINE_ strand strand_check_spawn_with_(strand_scope scope, const strand_attr *attr, strand_fn *fn,
                                                     const void *args, size_t size)
{
    if (!size)
        strand_check_argument_(scope, args, "strand_spawn_with");
    return strand_spawn_with(scope, attr, fn, args, size);
}

/* The functions of the system's are arguments: not all of them are declared in every mode of a compiler. */
static inline int strand_check_result_(int result, const void *lock, const char *file, int line)
{
    if (result == 0 || result == EOWNERDEAD)
        strand_check_locked(lock, file, line);
    return result;
}
#define STRAND_CHECK_LOCKS_(kind, type)                                                                                \
    static inline int strand_check_##kind##_lock_(int (*lock)(type *), type *it, const char *file, int line)           \
    {                                                                                                                  \
        return strand_check_result_(lock(it), (const void *)it, file, line);                                           \
    }                                                                                                                  \
    static inline int strand_check_##kind##_unlock_(int (*unlock)(type *), type *it)                                   \
    {                                                                                                                  \
        strand_check_unlocked((const void *)it);                                                                       \
        return unlock(it);                                                                                             \
    }
#define STRAND_CHECK_TIMED_LOCKS_(kind, type)                                                                          \
    STRAND_CHECK_LOCKS_(kind, type)                                                                                    \
    static inline int strand_check_##kind##_timedlock_(int (*lock)(type *, const struct timespec *), type *it,         \
                                                       const struct timespec *until, const char *file, int line)       \
    {                                                                                                                  \
        return strand_check_result_(lock(it, until), it, file, line);                                                  \
    }                                                                                                                  \
    static inline int strand_check_##kind##_clocklock_(int (*lock)(type *, int, const struct timespec *), type *it,    \
                                                       int clock, const struct timespec *until, const char *file,      \
                                                       int line)                                                       \
    {                                                                                                                  \
        return strand_check_result_(lock(it, clock, until), it, file, line);                                           \
    }
STRAND_CHECK_TIMED_LOCKS_(mutex, pthread_mutex_t)
#ifdef PTHREAD_BARRIER_SERIAL_THREAD /* since POSIX 2001, as these types */
STRAND_CHECK_TIMED_LOCKS_(rwlock, pthread_rwlock_t)
STRAND_CHECK_LOCKS_(spin, pthread_spinlock_t)
#endif

/* An exception may leave the function. */
static inline void strand_check_once_leave_(const void **once)
{
    strand_check_unlocked(*once);
}
static inline int strand_check_once_(int (*run)(pthread_once_t *, void (*)(void)), pthread_once_t *once,
                                     void (*function)(void), const char *file, int line)
{
    const void *held __attribute__((cleanup(strand_check_once_leave_), unused)) = once;
    strand_check_locked(once, file, line);
    return run(once, function);
}

#ifdef __cplusplus
}
#endif

#if !defined(STRAND_CHECK_NOTHING) && !defined(STRAND_OUT_OF_LINE_)
/* With any number of arguments: a compound literal may have commas. */
#define STRAND_CHECK_LOCK_(type, way, ...) strand_check_##type##_##way##_(__VA_ARGS__, __FILE__, __LINE__)
#define pthread_mutex_lock(...) STRAND_CHECK_LOCK_(mutex, lock, pthread_mutex_lock, __VA_ARGS__)
#define pthread_mutex_trylock(...) STRAND_CHECK_LOCK_(mutex, lock, pthread_mutex_trylock, __VA_ARGS__)
#define pthread_mutex_timedlock(...) STRAND_CHECK_LOCK_(mutex, timedlock, pthread_mutex_timedlock, __VA_ARGS__)
#define pthread_mutex_clocklock(...) STRAND_CHECK_LOCK_(mutex, clocklock, pthread_mutex_clocklock, __VA_ARGS__)
#define pthread_mutex_unlock(...) strand_check_mutex_unlock_(pthread_mutex_unlock, __VA_ARGS__)
#define pthread_rwlock_rdlock(...) STRAND_CHECK_LOCK_(rwlock, lock, pthread_rwlock_rdlock, __VA_ARGS__)
#define pthread_rwlock_tryrdlock(...) STRAND_CHECK_LOCK_(rwlock, lock, pthread_rwlock_tryrdlock, __VA_ARGS__)
#define pthread_rwlock_timedrdlock(...) STRAND_CHECK_LOCK_(rwlock, timedlock, pthread_rwlock_timedrdlock, __VA_ARGS__)
#define pthread_rwlock_clockrdlock(...) STRAND_CHECK_LOCK_(rwlock, clocklock, pthread_rwlock_clockrdlock, __VA_ARGS__)
#define pthread_rwlock_wrlock(...) STRAND_CHECK_LOCK_(rwlock, lock, pthread_rwlock_wrlock, __VA_ARGS__)
#define pthread_rwlock_trywrlock(...) STRAND_CHECK_LOCK_(rwlock, lock, pthread_rwlock_trywrlock, __VA_ARGS__)
#define pthread_rwlock_timedwrlock(...) STRAND_CHECK_LOCK_(rwlock, timedlock, pthread_rwlock_timedwrlock, __VA_ARGS__)
#define pthread_rwlock_clockwrlock(...) STRAND_CHECK_LOCK_(rwlock, clocklock, pthread_rwlock_clockwrlock, __VA_ARGS__)
#define pthread_rwlock_unlock(...) strand_check_rwlock_unlock_(pthread_rwlock_unlock, __VA_ARGS__)
#define pthread_spin_lock(...) STRAND_CHECK_LOCK_(spin, lock, pthread_spin_lock, __VA_ARGS__)
#define pthread_spin_trylock(...) STRAND_CHECK_LOCK_(spin, lock, pthread_spin_trylock, __VA_ARGS__)
#define pthread_spin_unlock(...) strand_check_spin_unlock_(pthread_spin_unlock, __VA_ARGS__)
#define pthread_once(...) strand_check_once_(pthread_once, __VA_ARGS__, __FILE__, __LINE__)
#define strand_spawn(...) strand_check_spawn_(__VA_ARGS__)
#define strand_spawn_with(...) strand_check_spawn_with_(__VA_ARGS__)
#undef STRAND_SCOPE_WITH
#define STRAND_SCOPE_WITH(name, flags)                                                                                 \
    STRAND_BLOCK_BEGINS_ strand_scope name STRAND_CLEANUP_(strand_scope_leave_) =                                      \
        strand_check_scope_enter_((flags), __FILE__, __LINE__)
#endif

#endif
