/*
 * An exception carries its cause and the exceptions that it has pushed aside (suppressed). They form a graph,
 * which users can make deep and wide: a chain of causes, strands that wrap each other's failures, a scope with many
 * failures. A flight is one unwinding, from the throw to the catch (exception_flight.c). A walk visits an exception and
 * all that it carries, each once (walk_begin).
 *
 * PARTIES   the holders of a reference: a flight, a catch block, an exception that carries this one, the user. On any
 *           thread of any run, or of none.
 * STATE     cause: one edge. ring: a circular list of the suppressed exceptions, linked by `next`; it points to the
 *           newest one, whose `next` is the oldest. suppressed_count: how many; omitted: how many were refused. listed:
 *           the exception is in a ring, or is about to be. walk: links the exceptions that a walk has visited; NULL: no
 *           walk has.
 * OWNERSHIP the edges of an exception (cause, ring, suppressed_count, omitted) belong to its only holder. Those of a
 *           shared exception (refs > 1) belong to the holder of the lock, one for the process, and so does `walk`.
 *           `next` belongs to the ring that the exception is in. All of it belongs to the thread that gives back the
 *           last reference.
 * INVARIANTS
 *           [EX1] No edge is there twice. An exception is in at most one ring. If it is the cause of X, it is not in
 *           X's ring, unless X is an interruption. So catch blocks that wrap what they have caught make a chain, not a
 *           tree that doubles. An interruption does not outlive its scope: a failure replaces it, and takes over its
 *           ring but not its cause. Example: children A and B fail, and A's failure is the cause of the interruption.
 *           A clean-up joins A and suppresses A's failure in the interruption. The scope then throws B's failure, and
 *           A's would be lost if it were not in the ring.
 *           [EX2] There is no cycle. If an exception has one holder, no exception carries it, so whatever it takes
 *           closes no cycle. A shared one takes an exception only after a walk from that exception has not reached the
 *           shared one; walk and edge are one step under the lock. If the walk reaches the shared exception through an
 *           interruption that names it as cause, the code removes that cause edge: the interruption and its cause will
 *           be reported together. Any other exception that would close a cycle is refused, and counted.
 *           [EX3] A ring has at most RING_MOST exceptions. The oldest stay, the others are counted.
 *           [EX4] Nothing here recurses: the depth of a graph costs no stack.
 * ORDERING  the load of refs (acquire) pairs with the decrements of the holders that have given theirs back (release):
 *           a holder that finds itself alone sees what they wrote [RF1]. [EX5] The store that clears `listed` (release)
 *           pairs with the exchange that sets it again (acquire): `next` is written after it was last read.
 * PROGRESS  attaching to an exception with one holder: O(1). To a shared one: O(what the other one carries). Giving
 *           back, and listing: O(what is carried).
 * NOT DONE  marks that stay set after a walk: a later walk would take them for its own. A lock for each exception: a
 *           cycle is closed by two edges, under two locks. References that are counted separately by kind of holder:
 *           two more words.
 * TESTED BY tests/spec/carry.c; mutants carry-*.
 */
#ifndef STRAND_CARRY_H
#define STRAND_CARRY_H

#include "exception.h"

enum { RING_MOST = 256, CARRIED_ROOM = 64, CARRIED_WIDE = 8 };

/* Attach pushed_aside (a reference is taken over; NULL is allowed) to e. */
void exception_suppress(strand_exception *e, strand_exception *pushed_aside);
/* Moves all that `from` has pushed aside to e. */
void exception_inherit(strand_exception *e, strand_exception *from);
/* Appends the first exception that `from` has pushed aside to the text of e, so that the text of a time-out or a cancel
 * shows an error that came before it. The caller is the only holder of e. */
void exception_name_first(strand_exception *e, const strand_exception *from);

enum carried_as { CARRIED_ITSELF, CARRIED_CAUSE, CARRIED_SUPPRESSED };
/* The words that go before the exception's kind. */
static inline const char *carried_words(enum carried_as as)
{
    return as == CARRIED_CAUSE ? "caused by " : as == CARRIED_SUPPRESSED ? "suppressed " : "";
}

/* One line of the list of what an exception carries. It comes before the lines of what that one carries. */
struct carried {
    const strand_exception *e;  /* a reference */
    const strand_exception *at; /* the exception of its ring that was listed last */
    uint16_t up, depth; /* the index of the line of the exception that carries it; the number of exceptions above it */
    uint16_t shown;     /* how many of its ring are listed */
    uint8_t as;         /* enum carried_as */
    bool again;         /* an earlier line has the same exception */
    size_t unshown;     /* how many of its ring are not listed, including those that were refused */
};

/* Lists e and what it carries: at most CARRIED_ROOM lines, and CARRIED_WIDE of each ring. Returns the number of lines.
 * *more is the number of exceptions that neither have a line nor are counted by an `unshown`. carried_over releases the
 * references. */
size_t carried_list(const strand_exception *e, struct carried *all, size_t *more);
void carried_over(struct carried *all, size_t count);

#endif
