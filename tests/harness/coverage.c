/*
 * The ways out of a process by which the counters of a coverage build would be lost: abort, _exit, and a signal that is
 * given back to the system. The counters are written first. It is linked into programs of that mode only, whose own
 * definitions stand before those of the C library.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

void __gcov_dump(void);
void __gcov_reset(void);

static void (*real_abort)(void) __attribute__((noreturn));
static void (*real_exit)(int) __attribute__((noreturn));
static int (*real_raise)(int);
static int (*real_sigaction)(int, const struct sigaction *, struct sigaction *);

/* Before the constructors of tests. */
__attribute__((constructor(101))) static void find_the_real_ones(void)
{
    *(void **)&real_abort = dlsym(RTLD_NEXT, "abort");
    *(void **)&real_exit = dlsym(RTLD_NEXT, "_exit");
    *(void **)&real_raise = dlsym(RTLD_NEXT, "raise");
    *(void **)&real_sigaction = dlsym(RTLD_NEXT, "sigaction");
}

/* What is written counts from zero again, since the process may live on. */
static void write_counters(void)
{
    __gcov_dump();
    __gcov_reset();
}

void abort(void)
{
    write_counters();
    real_abort();
}

void _exit(int status)
{
    write_counters();
    real_exit(status);
}

/* A signal that was given back to the system as well. */
int raise(int signal)
{
    struct sigaction now;

    if (real_sigaction(signal, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL)
        write_counters();
    return real_raise(signal);
}

/* Weak: a test may have one of its own. A handler of a fault, on its own stack, that sets the default again is about to
 * let it end the process. */
__attribute__((weak)) int sigaction(int signal, const struct sigaction *action, struct sigaction *before)
{
    stack_t stack;

    if (action != NULL && !(action->sa_flags & SA_SIGINFO) && action->sa_handler == SIG_DFL &&
        sigaltstack(NULL, &stack) == 0 && stack.ss_flags & SS_ONSTACK)
        write_counters();
    return real_sigaction(signal, action, before);
}
