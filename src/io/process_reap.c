/*
 * Reaping: a strand of the library takes the ends of children that the library has not started (src/arch/reap.c).
 *
 * The starter makes the reaper, which watches SIGCHLD, before the strand begins; the strand takes it over. The protocol
 * block is in reap.c.
 */
#include "process.h"

#include "../../include/strand/chan.h"
#include "../../include/strand/exception.h"
#include "../../include/strand/io.h"
#include "../../include/strand/pool.h"

#include "../strand/hand_off.h"
#include "../strand/interrupt.h"
#include "../strand/misuse.h"
#include "../strand/sized.h"
#include "../strand/throw.h"
#include "../sync/chan.h"

#include <errno.h>
#include <stdlib.h>

#define REAP "strand_process_reap"
enum { SIGNAL_CHILD = 17 };
#define ORPHAN_LEAST (offsetof(strand_orphan, end) + offsetof(strand_process_end, signal))

struct reaper {
    strand_signals signals;
    bool watches, reaps;
    strand_chan ends;
    bool sends;
    size_t size;          /* of the channel's values */
    strand_orphan orphan; /* last; as long as a value of the channel */
};

/* On the heap: two strands use it. The starter's. */
struct starting {
    struct reaper *reaper; /* NULL: the strand has it */
    strand_event taken_over;
};

static void release(struct reaper **at)
{
    struct reaper *reaper = *at;
    if (!reaper)
        return;
    if (reaper->reaps)
        arch_reaper_close();
    if (reaper->watches)
        strand_signals_leave_(&reaper->signals);
    free(reaper);
}

static void abandon(struct starting **starting)
{
    if (*starting)
        release(&(*starting)->reaper);
    free(*starting);
}

/* Returns whether there was an end. */
static bool take_one(struct reaper *reaper)
{
    struct arch_exec_end end;
    if (arch_reaper_find(&reaper->orphan.pid, &end) < 0)
        return false;
    reaper->orphan.end = (strand_process_end){.size = sizeof reaper->orphan.end,
                                              .code = end.code,
                                              .signal = end.signal,
                                              .dumped_core = end.dumped_core,
                                              .user_ns = end.user_ns,
                                              .system_ns = end.system_ns,
                                              .peak_bytes = end.peak_bytes,
                                              .pid = reaper->orphan.pid};
    /* Once the channel is closed, nobody asks for ends any more. */
    reaper->sends = reaper->sends && strand_chan_send(reaper->ends, &reaper->orphan) == 0;
    arch_reaper_take(reaper->orphan.pid); /* [RP4] */
    return true;
}

/* Ends by an exception only. */
static void *take_all(void *arg)
{
    struct reaper *reaper = arg;
    for (;;) {
        while (take_one(reaper))
            strand_yield();
        (void)strand_wait_signal(reaper->signals);
    }
    return NULL;
}

static void *reap(void *arg)
{
    struct starting *starting = arg;
    __attribute__((cleanup(release))) struct reaper *reaper = starting->reaper;
    starting->reaper = NULL;
    strand_event_set(&starting->taken_over); /* the starter frees it */
    do {
        strand_exception *e = strand_try(take_all, reaper, NULL);
        strand_exception_release(e);
        if (!strand_interrupted())
            process_pause(); /* the system refuses memory, or the poller a descriptor */
    } while (!strand_interrupted());
    return NULL;
}

/* The size of a value, or 0: there is no channel. */
static size_t size_of_values(struct thread *thread, strand_chan ends)
{
    if (!ends.bits[0] && !ends.bits[1])
        return 0;
    struct chan *chan = chan_of(thread, ends, &ends, REAP);
    size_t size = chan->size;
    chan_unlock(thread, chan);
    if (!size_is_plausible(size, ORPHAN_LEAST))
        MISUSE(REAP, "", "the channel's values have %zu bytes: they have to be of type strand_orphan", size);
    return size;
}

static void make(struct thread *thread, struct starting **out, strand_chan ends)
{
    size_t size = size_of_values(thread, ends), least = sizeof(strand_orphan);
    struct starting *starting = *out = platform_calloc(thread, 1, sizeof *starting);
    struct reaper *reaper = platform_calloc(thread, 1, offsetof(struct reaper, orphan) + (size > least ? size : least));
    if (starting)
        starting->reaper = reaper;
    else
        free(reaper);
    if (!starting || !reaper)
        throw_no_memory(current_of(thread), REAP ": a reaper");
    starting->taken_over = (strand_event)STRAND_EVENT_INIT;
    reaper->ends = ends;
    reaper->sends = size != 0;
}

static void watch(struct cb *me, struct reaper *reaper, bool subreaper)
{
    reaper->signals = strand_signals_enter_(SIGNAL_CHILD, 0);
    reaper->watches = true;
    int error = arch_reaper_open((struct arch_watch *)(uintptr_t)reaper->signals.bits[0], subreaper);
    if (error)
        throw_system(me, error,
                     error == -EBUSY ? REAP ": another strand of the process reaps" : REAP ": becoming a subreaper");
    reaper->reaps = true;
}

strand strand_process_reap(strand_scope scope, strand_chan ends, unsigned flags)
{
    static const char left[] = "the scope has been left";
    struct thread *thread = must_be_strand(REAP);
    struct cb *me = current_of(thread);
    may_block(thread, me, REAP);
    if (flags & ~(unsigned)STRAND_REAP_SUBREAPER)
        MISUSE(REAP, "", "flags is %#x: only STRAND_REAP_SUBREAPER is known", flags);
    int error = hand_off_check(thread, scope, REAP);
    if (error)
        throw_system(me, error, REAP ": the scope has been left");
    __attribute__((cleanup(abandon))) struct starting *starting = NULL;
    make(thread, &starting, ends);
    watch(me, starting->reaper, flags & STRAND_REAP_SUBREAPER);
    STRAND_SHIELD;
    STRAND_SCOPE(own);
    strand taker = strand_spawn_with(own, STRAND_ATTR(.name = "reaper"), reap, starting, 0);
    strand_event_wait(&starting->taken_over); /* throws if the strand can't run: then it never takes over */
    error = hand_off_spawned(thread_self(), taker, scope, REAP);
    if (error) {
        strand_cancel(taker, left);
        throw_system(current_of(thread_self()), error, REAP ": the scope has been left");
    }
    return taker;
}
