/*
 * What the unit tests of src/arch share: checks that count, and children for what can only be seen from outside.
 */
#ifndef ARCH_CHECK_H
#define ARCH_CHECK_H

#include "arch/arch.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int failures;

#define CHECK(condition)                                                                                               \
    ((condition) ? (void)0 : (void)(failures++, fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition)))

#define CHECK_EQUAL(a, b) check_equal((long long)(a), (long long)(b), #a " == " #b, __FILE__, __LINE__)

static inline void check_equal(long long a, long long b, const char *what, const char *file, int line)
{
    if (a == b)
        return;
    failures++;
    fprintf(stderr, "%s:%d: %s: %lld, %lld\n", file, line, what, a, b);
}

#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* Runs fn in a child; what it writes to standard error goes to text. Returns its wait status. The child ends by the
 * number of its failures if fn returns. */
static inline int in_child(void (*fn)(void), char *text, size_t size)
{
    int ends[2];
    if (pipe(ends) < 0)
        abort();
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        failures = 0;
        fn();
        fflush(NULL);
        _exit(failures);
    }
    close(ends[1]);
    size_t length = 0;
    for (ssize_t got; (got = read(ends[0], text + length, size - 1 - length)) > 0;)
        length += (size_t)got;
    text[length] = '\0';
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    return status;
}

/* The child has to end by itself, without a failure. */
#define CHECK_CHILD(fn)                                                                                                \
    do {                                                                                                               \
        char text_[4096];                                                                                              \
        int status_ = in_child((fn), text_, sizeof text_);                                                             \
        if (status_ != 0) {                                                                                            \
            failures++;                                                                                                \
            fprintf(stderr, "%s:%d: %s: status %#x\n%s", __FILE__, __LINE__, #fn, (unsigned)status_, text_);           \
        }                                                                                                              \
    } while (0)

#endif
