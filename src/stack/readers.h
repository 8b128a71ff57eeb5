/*
 * Readers of strands that they can't hold still: dumps, a watchdog. While there is one, shared stacks and saved stacks
 * that are done with are kept. A reader that finds a strand whose end is not published yet, after it has entered, can
 * read the strand's shared stack and saved stack; it has to find out by itself whether both are the strand's still.
 *
 * PARTIES   readers; threads that are about to free memory that a reader may use.
 * STATE     readers.count: how many there are. readers.deferred: a stack of memory that waits to be freed.
 * PROTOCOL  a reader counts itself in, reads, and counts itself out. A thread that is about to free memory has made it
 *           unreachable first; then it reads the count, and defers if there is a reader. The last reader to leave takes
 *           what is deferred, and frees it.
 * INVARIANT memory that was reachable when a reader entered is not freed before that reader leaves. So what the
 *           leaving reader frees was taken out of the list before it counted itself out: a reader that entered later
 *           does not find it.
 * TESTED BY tests/spec/dump_fibre.c, tests/spec/watchdog.c.
 */
#ifndef STACK_READERS_H
#define STACK_READERS_H

#include "memory.h"

void readers_enter(struct readers *readers);
/* Returns what the caller has to free, linked by `next`; NULL: nothing, or others read still. */
struct deferred *readers_leave(struct readers *readers);
/* As readers_leave, by a thread that can free nothing: that waits for the next readers_leave. */
void readers_leave_unfreed(struct readers *readers);

/* True: it will be freed later. Called after the end of the strand was published, or its saved stack replaced. */
OWN_INLINE bool readers_defer(struct readers *readers, struct deferred *deferred, size_t bytes)
{
    if (LIKELY(!atomic_load_explicit(&readers->count, memory_order_seq_cst)))
        return false;
    arch_note_release(&readers->deferred);
    deferred->bytes = bytes;
    deferred->next = atomic_load_explicit(&readers->deferred, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&readers->deferred, &deferred->next, deferred, memory_order_release,
                                                  memory_order_relaxed))
        continue;
    return true;
}

#endif
