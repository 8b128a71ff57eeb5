/*
 * Dumps of a tree, with traces of all that wait; figures.
 */
#include "fault.h"

#include "strand/chan.h"
#include "strand/debug.h"
#include "strand/io.h"
#include "strand/sync.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CHILDREN = 30 };

static void *wait_long(void *event)
{
    strand_event_wait(event);
    return event;
}

/* Into a pipe that is full soon, and is emptied by a thread outside. */
struct drained {
    int in, out;
    pthread_t thread;
};

static void *drain(void *arg)
{
    char text[512];
    while (read(((struct drained *)arg)->in, text, sizeof text) > 0)
        ;
    return NULL;
}

static void end_drain(struct drained *drained)
{
    close(drained->out);
    pthread_join(drained->thread, NULL);
    close(drained->in);
}

static void dump_into_pipe(void)
{
    int fds[2];
    FAULT_CHECK(pipe2(fds, O_CLOEXEC) == 0 && fcntl(fds[1], F_SETFL, O_NONBLOCK) == 0);
    (void)fcntl(fds[1], F_SETPIPE_SZ, 4096);
    struct drained drained __attribute__((cleanup(end_drain))) = {.in = fds[0], .out = fds[1]};
    FAULT_CHECK(pthread_create(&drained.thread, NULL, drain, &drained) == 0);
    strand_must(strand_dump(drained.out, NULL));
}

/* However little memory there is, all are in it. */
static void check_text(int fd)
{
    static char text[64 * 1024];
    ssize_t size = pread(fd, text, sizeof text - 1, 0);
    FAULT_CHECK(size > 0);
    text[size] = 0;
    int named = 0;
    for (const char *at = text; (at = strstr(at, "strand 'waits' #")); at++)
        named++;
    FAULT_CHECK(named == CHILDREN);
}

static void *root(void *arg)
{
    (void)arg;
    strand_event event = {{0}};
    FAULT_FD int fd = memfd_create("dump", MFD_CLOEXEC);
    FAULT_CHECK(fd >= 0);
    STRAND_SCOPE(scope);
    for (int i = 0; i < CHILDREN; i++)
        strand_spawn_with(scope, STRAND_ATTR(.name = "waits"), wait_long, &event, 0);
    strand_yield();
    strand_must(strand_dump(fd, NULL));
    check_text(fd);
    dump_into_pipe();
    strand_stats stats = {.size = sizeof stats};
    strand_stats_get(&stats);
    FAULT_CHECK(stats.live <= CHILDREN + 1);
    strand_event_set(&event);
    strand_scope_join(scope);
    return FAULT_DONE;
}

FAULT_WORKLOAD(dump, RUN_ANY, root, )
