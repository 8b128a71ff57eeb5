/*
 * A check, to be asked for: no mutex of the system's is held while a strand suspends. Such a mutex belongs to the
 * thread that locked it, which then runs other strands, that may want it: a deadlock; and the strand may go on on
 * another thread, which may not unlock it.
 *
 * A file that includes this header after all others has its calls of pthread_mutex_lock, _trylock, _timedlock,
 * _clocklock and _unlock checked: while a strand holds a mutex, blocking is misuse, as inside of STRAND_NO_SUSPEND, and
 * the report names the place of the lock. So is the end of the strand. Files that do not include it, and strands that
 * hold nothing, pay nothing; calls from plain threads are passed on. With STRAND_CHECK_NOTHING defined the header does
 * nothing.
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

/** The calling strand holds something of its thread's, locked there, and must not suspend until strand_check_unlocked.
 *  For other locks than pthread_mutex_t: any address. From a plain thread without effect. Takes memory; if there is
 *  none, that lock is not checked. */
void strand_check_locked(const void *mutex, const char *file, int line);
/** It holds it no more. What it was not known to hold changes nothing. */
void strand_check_unlocked(const void *mutex);

/* ---- behind the macros ----------------------------------------------------------------------------------- */

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
#endif

#endif
