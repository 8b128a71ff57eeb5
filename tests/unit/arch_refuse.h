/*
 * System calls that fail on purpose. A program that includes this has its own definitions of them, which take
 * precedence over those of the C library. They fail as set by refuse(), and otherwise do the same as those.
 */
#ifndef ARCH_REFUSE_H
#define ARCH_REFUSE_H

#include "arch_check.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>

static struct {
    const char *name;
    int skip, times, error, met;
} refusal;

/* The calls of that name are refused: after the first `skip` of them, so many times. */
static inline void refuse(const char *name, int skip, int times, int error)
{
    refusal.name = name;
    refusal.skip = skip;
    refusal.times = times;
    refusal.error = error;
    refusal.met = 0;
}

enum { ALWAYS = 1 << 30 };

/* From here on nothing is refused any more. True if something was. */
static inline bool was_refused(void)
{
    refusal.name = NULL;
    return refusal.met > 0;
}

/* Not static: the headers of the C library make inline functions of some of those that call it. */
bool refused(const char *name);
bool refused(const char *name)
{
    if (!refusal.name || strcmp(refusal.name, name) != 0 || refusal.skip-- > 0 || refusal.met >= refusal.times)
        return false;
    refusal.met++;
    errno = refusal.error;
    return true;
}

/* `instead` is what a refused call returns. */
#define DOOR(type, name, parameters, arguments, instead)                                                               \
    type name parameters                                                                                               \
    {                                                                                                                  \
        static __typeof__(&name) real;                                                                                 \
        if (refused(#name))                                                                                            \
            return instead;                                                                                            \
        if (!real)                                                                                                     \
            *(void **)&real = dlsym(RTLD_NEXT, #name);                                                                 \
        return real arguments;                                                                                         \
    }
#endif
