/*
 * A process with a network or files of its own.
 */
#ifndef TEST_NAMESPACES_H
#define TEST_NAMESPACES_H

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

static inline bool put_number(const char *path, const char *format, unsigned value)
{
    FILE *file = fopen(path, "w");
    return file && fprintf(file, format, value) > 0 && fclose(file) == 0;
}

/* Enter new namespaces (CLONE_NEWNET, ...). Without privileges the system may allow it to the root of a namespace of
 * users. */
static inline bool enter_namespaces(int kinds)
{
    unsigned user = getuid(), group = getgid();
    if (unshare(kinds) == 0)
        return true;
    return unshare(CLONE_NEWUSER | kinds) == 0 && put_number("/proc/self/setgroups", "deny%.0u", 0) &&
           put_number("/proc/self/uid_map", "0 %u 1", user) && put_number("/proc/self/gid_map", "0 %u 1", group);
}

#endif
