/*
 * Fatal ends of the program: a failed assertion, and a refused system call that has no replacement.
 */
#include "state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void base_bug(const char *file, int line, const char *what)
{
    char text[512];
    int length = snprintf(text, sizeof text, "strand: internal error: %s:%d: %s\n", file, line, what);
    if (length > 0)
        (void)arch_write(STDERR_FILENO, text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
    abort();
}

void arch_refused(const char *call, int error)
{
    char text[256];
    const char *name = strerrorname_np(error);
    int length =
        snprintf(text, sizeof text,
                 "libstrand: the system refuses %s (%s), which it allowed when the run began. A sandbox that is "
                 "entered during a run has to allow it; or enter it before strand_run\n",
                 call, name ? name : "?");
    (void)arch_write(STDERR_FILENO, text, (size_t)length);
    abort();
}
