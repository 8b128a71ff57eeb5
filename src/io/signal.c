/*
 * Waiting for signals: the handler (src/arch/signal.c) counts an event descriptor up, and strands read it.
 */
#include "../../include/strand/io.h"

#include "descriptor.h"

#include "../strand/interrupt.h"
#include "../strand/misuse.h"
#include "../strand/throw.h"

#include <errno.h>
#include <stdarg.h>

static struct arch_watch *watch_of(strand_signals signals)
{
    return (struct arch_watch *)(uintptr_t)signals.bits[0];
}

strand_signals strand_signals_enter_(int first, ...)
{
    struct thread *thread = must_be_strand("STRAND_SIGNALS");
    struct cb *me = current_of(thread);
    struct arch_watch *watch;
    uint64_t signals = 0;
    va_list more;
    va_start(more, first);
    for (int signal = first; signal; signal = va_arg(more, int)) {
        if (!arch_watch_can(signal))
            MISUSE("STRAND_SIGNALS", "", "signal %d can't be waited for", signal);
        signals |= UINT64_C(1) << (signal - 1);
    }
    va_end(more);
    int error = arch_watch_open(signals, runtime_of(thread), &watch);
    if (error)
        throw_system(me, error,
                     error == -EBUSY ? "STRAND_SIGNALS: a handler was installed over that of an earlier block"
                                     : "STRAND_SIGNALS");
    descriptor_made(arch_watch_fd(watch));
    return (strand_signals){{(uint64_t)(uintptr_t)watch, arch_watch_serial(watch)}};
}

void strand_signals_leave_(strand_signals *signals)
{
    struct thread *thread = must_be_strand("STRAND_SIGNALS");
    struct arch_watch *watch = watch_of(*signals);
    int fd = arch_watch_fd(watch);
    arch_watch_close(watch);
    (void)descriptor_close(thread, fd, false);
}

int strand_wait_signal(strand_signals signals)
{
    struct arch_watch *watch = watch_of(signals);
    struct thread *thread = must_be_strand("strand_wait_signal");
    if (!arch_watch_is(watch, signals.bits[1]))
        MISUSE("strand_wait_signal", "", "the block of STRAND_SIGNALS has been left, or was never entered");
    if (arch_watch_owner(watch) != runtime_of(thread))
        misuse_foreign("strand_wait_signal", "block of STRAND_SIGNALS");
    may_block(thread, current_of(thread), "strand_wait_signal");
    for (;;) {
        uint64_t count;
        int signal = arch_watch_take(watch);
        if (signal)
            return signal;
        int64_t got = strand_read(arch_watch_fd(watch), &count, sizeof count);
        if (got < 0)
            throw_system(current_of(thread_self()), (int)got, "strand_wait_signal");
    }
}
