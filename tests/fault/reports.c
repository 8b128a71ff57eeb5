/*
 * The graph of waits, with a ring of two and holders of a read-write lock, and what keeps pools busy. However little
 * memory there is, all strands are in either.
 */
#include "fault.h"

#include "strand/debug.h"
#include "strand/io.h"
#include "strand/sync.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CHILDREN = 6 };

static strand_mutex mutex;
static strand_rwlock rwlock;
static strand_event event;

static void *lock_it(void *arg)
{
    STRAND_LOCKED(&mutex);
    return arg;
}

static void *join_while_locked(void *arg)
{
    STRAND_LOCKED(&mutex);
    STRAND_SCOPE(scope);
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.name = "waits"), lock_it, NULL, 0));
    return arg;
}

static void *read_long(void *arg)
{
    STRAND_READ_LOCKED(&rwlock);
    strand_event_wait(&event);
    return arg;
}

static void *write_once(void *arg)
{
    STRAND_WRITE_LOCKED(&rwlock);
    return arg;
}

static void spawn_all(strand_scope scope)
{
    static strand_fn *const fns[CHILDREN - 1] = {join_while_locked, read_long, read_long, write_once, write_once};
    for (int i = 0; i < CHILDREN - 1; i++)
        strand_spawn_with(scope, STRAND_ATTR(.name = "waits"), fns[i], NULL, 0);
    for (int i = 0; i < 10; i++)
        strand_yield();
}

/* What a report has written. */
static const char *text_of(int fd)
{
    static char text[64 * 1024];
    ssize_t size = pread(fd, text, sizeof text - 1, 0);
    FAULT_CHECK(size > 0);
    text[size] = 0;
    return text;
}

static void check_waits(void)
{
    FAULT_FD int fd = memfd_create("waits", MFD_CLOEXEC);
    FAULT_CHECK(fd >= 0);
    strand_must(strand_waits_print(fd));
    const char *text = text_of(fd);
    int named = 0;
    for (const char *at = text; (at = strstr(at, "strand 'waits' #")); at++)
        named++;
    FAULT_CHECK(named >= 5 || strstr(text, " strands are blocked"));
}

static void check_busy(void)
{
    FAULT_FD int fd = memfd_create("busy", MFD_CLOEXEC);
    FAULT_CHECK(fd >= 0);
    strand_must(strand_busy_print((strand_pool){{0, 0}}, fd));
    FAULT_CHECK(strstr(text_of(fd), "strand 'root' #"));
}

static void *root(void *arg)
{
    (void)arg;
    mutex = (strand_mutex){{0}};
    rwlock = (strand_rwlock){{0}};
    event = (strand_event){{0}};
    STRAND_SCOPE(scope);
    spawn_all(scope);
    check_waits();
    check_busy();
    strand_scope_cancel(scope, NULL);
    return FAULT_DONE;
}

FAULT_WORKLOAD(reports, RUN_ANY, root, )
