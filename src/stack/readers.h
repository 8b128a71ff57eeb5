/*
 * Readers of strands that they can't stop: dumps, a watchdog. While there is a reader, shared stacks and saved stacks
 * are not freed. A reader that has entered, and then finds a strand whose end is not published, can read the strand's
 * shared stack and saved stack; it must check by itself whether both still belong to the strand.
 *
 * PARTIES   readers; threads that are about to free memory that a reader may use.
 * STATE     readers.count: the number of readers. readers.deferred: a Treiber stack of memory that waits to be freed.
 * PROTOCOL  A reader increments the count, reads, and decrements the count. A thread that is about to free memory first
 *           makes it unreachable; then it reads the count, and defers the memory if there is a reader. The last reader
 *           to leave takes the deferred memory and frees it.
 * INVARIANTS [V1] Memory that was reachable when a reader entered is not freed before that reader leaves. So a leaving
 *           reader takes the memory out of the list before it decrements the count: a reader that enters later does not
 *           find that memory.
 *           [V2] Memory that is deferred after the last reader has emptied the list stays there until another reader
 *           leaves. At the end of a run the closing thread is that reader.
 * ORDERING  the increment of the count (sequentially consistent) precedes the reader's search. Between the store that
 *           makes memory unreachable and the load of the count, the freeing thread makes a read-modify-write (on the
 *           lock of the saved stacks, or on the references of the fibre), which is a full barrier on x86-64. Either the
 *           reader does not find the memory, or the freeing thread sees the count [V1]. [V3] A push (release) pairs
 *           with the exchange that empties the list (acquire): the reader that frees it sees all of it. A reader's
 *           decrement (release) pairs with that of the last reader (acquire): all reads precede the freeing.
 * TESTED BY tests/models/readers.pml, tests/spec/dump_fibre.c, tests/spec/watchdog.c.
 */
#ifndef STACK_READERS_H
#define STACK_READERS_H

#include "memory.h"

void readers_enter(struct readers *readers);
/* Returns the memory that the caller must free, linked by `next`; NULL: nothing, or there are other readers. */
struct deferred *readers_leave(struct readers *readers);
/* Like readers_leave, for a thread that can free nothing: the next readers_leave does it. */
void readers_leave_unfreed(struct readers *readers);

/* True: the last reader to leave will free it. Called after the strand's end was published, or its saved stack
 * replaced. */
OWN_INLINE bool readers_defer(struct readers *readers, struct deferred *deferred, size_t bytes)
{
    if (LIKELY(!atomic_load_explicit(&readers->count, memory_order_seq_cst))) /* [V1] */
        return false;
    arch_san_release(&readers->deferred);
    deferred->bytes = bytes;
    deferred->next = atomic_load_explicit(&readers->deferred, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&readers->deferred, &deferred->next, deferred, memory_order_release,
                                                  memory_order_relaxed)) /* [V3] */
        continue;
    return true;
}

#endif
