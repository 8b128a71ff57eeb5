/*
 * Optional checks for debug builds. Include this header after all others: it checks the calls of the file. Files that
 * do not include it pay nothing.
 *
 * No strand suspends while it holds a pthread mutex. Such a mutex belongs to the thread that locked it. While the
 * strand is suspended the thread runs other strands, which may need the mutex: a deadlock. The strand may also continue
 * on another thread, which must not unlock the mutex. The header checks the file's calls of pthread_mutex_lock,
 * _trylock, _timedlock, _clocklock and _unlock: suspending or ending while a strand holds a mutex is misuse, and the
 * report names the place of the lock. Strands that hold no mutex pay nothing. Calls by plain threads are not checked.
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
 * function, and addresses inside of what is passed, are not checked (docs/misuse.md). `(strand_spawn)(scope, fn, arg)`
 * is not checked: for an argument that the child has copied before the caller goes on.
 *
 * The header does nothing if STRAND_CHECK_NOTHING is defined.
 *
 *     cc -include strand/check.h ...          checks all files of a program
 *     cc -D_GNU_SOURCE= -include strand/check.h ...
 *
 * The second is for C files that define _GNU_SOURCE (as nothing) by themselves: a header of the system's that comes
 * before such a line, and this one includes <pthread.h>, decides for the whole file, so the line comes too late. What
 * other such macros files define (_POSIX_C_SOURCE, _FILE_OFFSET_BITS) belongs there too, with the same value. C++
 * compilers define _GNU_SOURCE anyway.
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
 * `mutex` is any address, for locks that are not a pthread_mutex_t; file and line name the place in reports. On a plain
 * thread it has no effect. The record needs memory; without it this lock is not checked.
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
static inline int strand_check_result_(int result, const void *mutex, const char *file, int line)
{
    if (result == 0 || result == EOWNERDEAD)
        strand_check_locked(mutex, file, line);
    return result;
}
static inline int strand_check_lock_(int (*lock)(pthread_mutex_t *), pthread_mutex_t *mutex, const char *file, int line)
{
    return strand_check_result_(lock(mutex), mutex, file, line);
}
static inline int strand_check_timedlock_(int (*lock)(pthread_mutex_t *, const struct timespec *),
                                          pthread_mutex_t *mutex, const struct timespec *until, const char *file,
                                          int line)
{
    return strand_check_result_(lock(mutex, until), mutex, file, line);
}
static inline int strand_check_clocklock_(int (*lock)(pthread_mutex_t *, int, const struct timespec *),
                                          pthread_mutex_t *mutex, int clock, const struct timespec *until,
                                          const char *file, int line)
{
    return strand_check_result_(lock(mutex, clock, until), mutex, file, line);
}
static inline int strand_check_unlock_(int (*unlock)(pthread_mutex_t *), pthread_mutex_t *mutex)
{
    strand_check_unlocked(mutex);
    return unlock(mutex);
}

#ifdef __cplusplus
}
#endif

#if !defined(STRAND_CHECK_NOTHING) && !defined(STRAND_OUT_OF_LINE_)
#define pthread_mutex_lock(mutex) strand_check_lock_(pthread_mutex_lock, (mutex), __FILE__, __LINE__)
#define pthread_mutex_trylock(mutex) strand_check_lock_(pthread_mutex_trylock, (mutex), __FILE__, __LINE__)
#define pthread_mutex_timedlock(mutex, until)                                                                          \
    strand_check_timedlock_(pthread_mutex_timedlock, (mutex), (until), __FILE__, __LINE__)
#define pthread_mutex_clocklock(mutex, clock, until)                                                                   \
    strand_check_clocklock_(pthread_mutex_clocklock, (mutex), (clock), (until), __FILE__, __LINE__)
#define pthread_mutex_unlock(mutex) strand_check_unlock_(pthread_mutex_unlock, (mutex))
/* With any number of arguments: a compound literal may have commas. */
#define strand_spawn(...) strand_check_spawn_(__VA_ARGS__)
#define strand_spawn_with(...) strand_check_spawn_with_(__VA_ARGS__)
#undef STRAND_SCOPE_WITH
#define STRAND_SCOPE_WITH(name, flags)                                                                                 \
    STRAND_BLOCK_BEGINS_ strand_scope name STRAND_CLEANUP_(strand_scope_leave_) =                                      \
        strand_check_scope_enter_((flags), __FILE__, __LINE__)
#endif

#endif
