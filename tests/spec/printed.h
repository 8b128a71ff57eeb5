/*
 * What a function of strand/debug.h prints to a descriptor. Include test.h before.
 */
#ifndef SPEC_PRINTED_H
#define SPEC_PRINTED_H

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

/** Prints to a descriptor; returns 0 or an error code. */
typedef int printer(int fd);

struct printing {
    printer *print;
    int fd;
    _Atomic int result; /* 1: not yet */
};

static inline struct printing print_begin(printer *print)
{
    struct printing printing = {.print = print, .fd = memfd_create("printed", MFD_CLOEXEC), .result = 1};
    CHECK(printing.fd >= 0);
    return printing;
}

/* All that was printed, which the next call overwrites. */
static inline const char *print_end(const struct printing *printing)
{
    static char text[1 << 20];
    CHECK_EQ(printing->result, 0);
    ssize_t length = pread(printing->fd, text, sizeof text - 1, 0);
    CHECK(length > 0);
    text[length] = 0;
    close(printing->fd);
    return text;
}

/** What it prints now, which the next call overwrites. */
static inline const char *printed(printer *print)
{
    struct printing printing = print_begin(print);
    printing.result = print(printing.fd);
    return print_end(&printing);
}

/** The same as soon as there is this in it. By a strand. */
static inline const char *printed_with(printer *print, const char *words)
{
    const char *text = printed(print);
    while (!strstr(text, words)) {
        strand_sleep(STRAND_MS);
        text = printed(print);
    }
    return text;
}

static inline void *print_on_a_thread(void *arg)
{
    struct printing *printing = arg;
    printing->result = printing->print(printing->fd);
    return arg;
}

/** What it prints to a plain thread, while the calling strand goes on. */
static inline const char *printed_outside(printer *print)
{
    pthread_t thread;
    struct printing printing = print_begin(print);
    CHECK_EQ(pthread_create(&thread, NULL, print_on_a_thread, &printing), 0);
    while (printing.result == 1)
        strand_sleep(STRAND_MS);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    return print_end(&printing);
}

#endif
