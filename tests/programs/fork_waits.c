/*
 * A signal handler may fork at any instruction: also after a thread has looked whether it must wait, and before the
 * system call that waits. Here the thread forks in that call itself, as such a handler would, once. The child must not
 * wait for threads that it does not have.
 *
 * Likewise a handler may fork while its thread has the lock of the loader, which the child's thread can't release.
 *
 * usage: fork_waits hold|sleep|poll|loader
 */
#define _GNU_SOURCE
#include "strand.h"
#include "strand/debug.h"
#include "strand/pool.h"
#include "strand/port.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHILD_S = 120 };

static const char *where;
static _Atomic bool forked, done, running;
static pthread_t root_thread;
static strand_port port;

static void fork_once(void)
{
    int status;
    bool before = false;
    if (!atomic_compare_exchange_strong(&forked, &before, true))
        return;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(CHILD_S); /* a child that waits ends by SIGALRM */
        return;
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        perror("fork");
    else if (WIFSIGNALED(status))
        printf("child: signal %d\n", WTERMSIG(status));
    else
        printf("child: exit %d\n", WEXITSTATUS(status));
    done = true;
}

/* In place of those of the C library. */
long syscall(long number, ...)
{
    long (*real)(long, ...);
    long a[6];
    va_list args;
    va_start(args, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    *(void **)&real = dlsym(RTLD_NEXT, "syscall");
    bool for_ever = number == SYS_futex && (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET && a[3] == 0;
    if (for_ever && where && (!strcmp(where, "sleep") || (!strcmp(where, "hold") && pthread_self() == root_thread)))
        fork_once();
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout)
{
    int (*real)(int, struct epoll_event *, int, int);
    *(void **)&real = dlsym(RTLD_NEXT, "epoll_wait");
    if (timeout != 0 && where && !strcmp(where, "poll"))
        fork_once();
    return real(epoll, events, most, timeout);
}

/* Sanitizers call the loader before this program can. */
#if defined(__has_feature)
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif
#if !SANITIZED
struct look {
    int (*callback)(struct dl_phdr_info *, size_t, void *);
    void *data;
};

static int look(struct dl_phdr_info *info, size_t size, void *arg)
{
    const struct look *look = arg;
    if (pthread_self() == root_thread && running)
        fork_once();
    return look->callback(info, size, look->data);
}

int dl_iterate_phdr(int (*callback)(struct dl_phdr_info *, size_t, void *), void *data)
{
    int (*real)(int (*)(struct dl_phdr_info *, size_t, void *), void *);
    struct look with = {callback, data};
    *(void **)&real = dlsym(RTLD_NEXT, "dl_iterate_phdr");
    return where && !strcmp(where, "loader") ? real(look, &with) : real(callback, data);
}
#endif

/* Beside the root: dumps, or sends the message that ends the wait, once the child has ended. */
static void *dump_often(void *arg)
{
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    while (!done)
        STRAND_IGNORE(strand_dump(nowhere, NULL));
    close(nowhere);
    return arg;
}

static void *send_when_done(void *arg)
{
    const struct timespec nap = {.tv_nsec = 1000 * 1000};
    const int message = 1;
    while (!done)
        nanosleep(&nap, NULL);
    STRAND_IGNORE(strand_port_send(port, &message, sizeof message));
    return arg;
}

static void *root(void *arg)
{
    pthread_t beside;
    int message;
    bool holds = !strcmp(where, "hold") || !strcmp(where, "loader");
    STRAND_SCOPE(scope);
    port = strand_port_open(scope, sizeof message, 1, NULL);
    root_thread = pthread_self();
    running = true;
    if (pthread_create(&beside, NULL, holds ? dump_often : send_when_done, NULL) != 0)
        return NULL;
    if (holds)
        while (!done)
            strand_yield();
    else
        strand_port_receive(port, &message, sizeof message);
    pthread_join(beside, NULL);
    puts("parent: goes on 10");
    return arg;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    where = argv[1];
    strand_options options = {.size = sizeof options, .threads = strcmp(where, "sleep") ? 1 : 2};
    strand_run(&options, root, NULL);
    return 0;
}
