/*
 * A run with a watchdog, which reports a strand in a system call, and one in a clean-up; or does not, if it is refused
 * what it needs for that.
 */
#include "fault.h"

#include "strand/debug.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE (500 * STRAND_MS)

static struct {
    _Atomic int holds, cleanups; /* reports */
    int ends[2];
} told;

static void note(const strand_watchdog_report *late, void *arg)
{
    (void)arg;
    FAULT_CHECK(late->duration_ns >= 0 && late->text[0]);
    if (late->over)
        return;
    FAULT_CHECK(late->duration_ns >= late->limit_ns &&
                strchr(late->name, 'r') != NULL); /* root, strand, "reader" or "cleaner" */
    if (late->kind == STRAND_WATCHDOG_CLEANUPS)
        told.cleanups++;
    else if (!told.holds++)
        FAULT_CHECK(write(told.ends[1], "t", 1) == 1);
}

static void *doze(void *arg)
{
    strand_sleep(STRAND_MS);
    return arg;
}

/* What it is refused must not leave it. */
static void end_late(int *mark)
{
    strand_time end = strand_in(PATIENCE);
    (void)mark;
    while (!told.cleanups && strand_now().ns < end.ns)
        strand_exception_release(strand_try(doze, NULL, NULL));
}

static const strand_kind ON_PURPOSE = STRAND_KIND("on-purpose", &STRAND_ERROR);

static void *clean_up(void *arg)
{
    int mark __attribute__((cleanup(end_late)));
    (void)mark;
    strand_throw(&ON_PURPOSE, "on purpose");
    return arg;
}

static void *cleaner(void *arg)
{
    strand_exception *e = strand_try(clean_up, arg, NULL);
    bool right = strand_exception_is(e, &ON_PURPOSE);
    strand_exception_release(e);
    FAULT_CHECK(right);
    return arg;
}

static void *reader(void *arg)
{
    struct pollfd wait = {.fd = told.ends[0], .events = POLLIN};
    FAULT_CHECK(poll(&wait, 1, (int)(PATIENCE / STRAND_MS)) >= 0); /* it is not broken off */
    return arg;
}

static void *inner_root(void *arg)
{
    (void)arg;
    STRAND_SCOPE(scope);
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.name = "reader"), reader, NULL, 0));
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.name = "cleaner"), cleaner, NULL, 0));
    return FAULT_DONE;
}

struct closing {
    sigset_t before;
};

static void end(struct closing *closing)
{
    close(told.ends[0]);
    close(told.ends[1]);
    pthread_sigmask(SIG_SETMASK, &closing->before, NULL);
}

/* Without a signal to ask threads by: its handler would stay. */
static void *root(void *arg)
{
    (void)arg;
    sigset_t all;
    strand_exception *e = NULL;
    FAULT_CHECK(pipe2(told.ends, O_CLOEXEC) == 0);
    told.holds = told.cleanups = 0;
    sigfillset(&all);
    struct closing closing __attribute__((cleanup(end)));
    pthread_sigmask(SIG_BLOCK, &all, &closing.before);
    void *result = strand_run(STRAND_OPTIONS(.own_threads = true, .threads = 2, .watchdog_ns = 2 * STRAND_MS,
                                             .on_watchdog = note, .uncaught = &e),
                              inner_root, NULL);
    if (e)
        strand_rethrow(e);
    FAULT_CHECK(result == FAULT_DONE);
    return FAULT_DONE;
}

FAULT_WORKLOAD(watchdog, RUN_ALONE | RUN_PAIR, root, )
