/*
 * How a server ends by signals.
 */
#include "ending.h"

#include <strand/pool.h>

#include <signal.h>

/* For the lines that are in memory when there is no time any more. */
static const int64_t log_grace = STRAND_S;

static void await_signal(const struct ending *ending)
{
    while (strand_wait_signal(ending->signals) == SIGHUP && ending->reload(ending->server))
        continue;
}

static void cancel_connections(const struct ending *ending, const char *why)
{
    *ending->cancelled = true;
    strand_cancel(ending->connections, why);
}

/* A second signal ends the server without waiting. */
static void *await_second_signal(void *arg)
{
    const struct ending *ending = arg;
    await_signal(ending);
    cancel_connections(ending, "a second signal came");
    strand_wait(ending->connections);
    strand_sleep(log_grace);
    strand_cancel(ending->writer, "a second signal came");
    return NULL;
}

/* False: the time is over. */
static bool wait_before(strand ended, strand_time end)
{
    STRAND_TRY {
        STRAND_DEADLINE(end);
        strand_wait(ended);
        return true;
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
    }
    STRAND_END
    return false;
}

/* A log that takes no lines any more holds up the end no longer than connections may. */
static void drain_log(const struct ending *ending, strand_time end)
{
    strand_time least = strand_in(log_grace);
    log_close(ending->log);
    if (!wait_before(ending->writer, *ending->cancelled || end.ns < least.ns ? least : end))
        strand_cancel(ending->writer, "the time to drain is over");
    strand_wait(ending->writer);
}

static void drain(const struct ending *ending)
{
    strand_time end = strand_in(ending->time);
    STRAND_SCOPE(scope);
    strand second =
        strand_spawn_with(scope, STRAND_ATTR(.name = "hurry"), await_second_signal, (void *)(uintptr_t)ending, 0);
    ending->stop(ending->server);
    if (!wait_before(ending->connections, end))
        cancel_connections(ending, "the time to drain is over");
    strand_wait(ending->connections); /* a second signal counts until then */
    drain_log(ending, end);
    strand_cancel(second, "all have ended");
}

static void *join_it(void *ended)
{
    return strand_join(*(const strand *)ended);
}

void end_by_signals(const struct ending *ending)
{
    await_signal(ending);
    drain(ending);
    strand ended[] = {ending->connections, ending->writer};
    for (int i = 0; i < 2; i++)
        strand_exception_release(strand_try(join_it, &ended[i], NULL));
}
