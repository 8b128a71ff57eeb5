/*
 * Promises: what a strand waits for that is no actor. It has a reference as actors have, to which one answer can be
 * sent.
 *
 * PARTIES   the strand that has made a promise, waits for it, and closes it: its owner. Whoever settles it, by an
 *           answer or by a code: actors, other strands, posts from outside. The actor whose end it depends on.
 * STATE     word: serial << WORD_SERIAL | PROMISE_LOCK, or freed: serial << WORD_SERIAL | WORD_FREE. Under the lock:
 *           whether the promise is settled, and by what; the waiter; its parts. `wanted` and `wanted_size` are
 *           written before anyone else has the reference.
 *
 *             open --settle: an answer, or a code and no part is open--> settled --close--> freed
 *             open --close: the owner was interrupted--> freed
 *
 * PARTS     a question that goes to several actors has a part for each: a promise that nobody waits for, and that hands
 *           on to the whole what settles it. The first answer to any part settles the whole. A code does so only if no
 *           part is open any more, nor the question itself: whoever hands out the question settles it by 0 at the end,
 *           for the last code that there was. A part may have parts of its own.
 * OWNERSHIP a promise belongs to the strand that has made it; a part to the owner of the whole. Nobody else gives the
 *           memory back: a part that is settled, or whose whole is, keeps its word until the whole is closed.
 * INVARIANTS [Q1] the word is freed under the lock, by the store that gives the lock back. So whoever holds the lock
 *           of a promise is at that promise, and at no later one in the same memory. [Q2] closing frees all parts
 *           with the whole, and those of parts. A promise that is freed or settled gets no more parts. So an actor
 *           that never answers keeps nothing of a question that is over.
 * ORDER OF LOCKS one promise's at a time; a cell's below it.
 * ORDERING  LOCK is taken by acquire and given back by release, also where the word is freed: what was done under one
 *           lock is seen under the next.
 * NOT DONE  a part that belongs to whoever settles it: it has to leave the whole's list, under the lock of a whole that
 *           may be closed meanwhile.
 * TESTED BY tests/sim/questions.c, tests/spec/router_ask.c, tests/spec/actor_asks.c, tests/unit/actor_promise.c.
 */
#ifndef ACTOR_PROMISE_H
#define ACTOR_PROMISE_H

#include "actor.h"
#include "more.h"

enum { PROMISE_LOCK = 1 };

struct promise {
    _Atomic uint64_t word;
    struct wait_node *waiter;
    union {
        const strand_message_type *wanted; /* the only type that an answer may have; NULL: no answer is wanted */
        struct promise *next;              /* of a part: another part of the same whole */
    };
    size_t wanted_size;      /* of its copied body; SIZE_MAX: it has to be given */
    struct envelope *answer; /* the whole's: a part hands it on */
    struct promise *parts;
    struct watch watch;
    union {
        strand_actor whom;  /* for diagnostics only: the actor that was asked, or waited for */
        strand_actor whole; /* of a part: the promise that it is one of */
    };
    strand_actor watched; /* in whose list of watchers that is; {0}: none's */
    uint32_t open;        /* parts that are not settled */
    int16_t error;        /* or before it is settled, that of the last part */
    bool settled : 1;
    bool lost : 1; /* there was no memory for an answer */
    bool is_part : 1;
};
_Static_assert(sizeof(struct promise) <= PROMISE_SIZE, "it lies in a slab");

static inline bool is_promise(strand_actor ref)
{
    return (ref.bits[1] & (MARK_ACTOR | MARK_PROMISE)) == MARK_PROMISE;
}

/* Whether it is, or was, one of the caller's run. */
bool promise_is_ours(const struct thread *thread, strand_actor ref);
/* NULL: no memory. */
struct promise *promise_open(struct thread *thread, strand_actor *ref);
/* Settle it by a code, if it is not settled, nor gone; a part by the last one. */
void promise_settle(struct thread *thread, strand_actor ref, int error);
/* Settle it by an answer. 0: the answer is the promise's; else it is the caller's still: -EPIPE: the promise is
 * settled, or gone; -EBADMSG: it is not the answer that is wanted, and the promise is settled by the same code. */
int promise_answer(struct thread *thread, strand_actor ref, struct envelope *answer);
/* One more part of a promise. 0, -ENOMEM, -EPIPE: that is settled, or gone. */
int promise_part(struct thread *thread, strand_actor whole, strand_actor *part);
/* There was no memory for an answer: if none comes after all before the question has been handled, it is settled by
 * that, or at once if it has been handled. If it is a promise. */
void promise_lacks(struct thread *thread, strand_actor ref);
/* Wait until it is settled. Throws if that is interrupted. Returns the code. */
int promise_wait(struct thread *thread, struct promise *promise, enum blocked why, strand_actor whom);
/* Nobody finds it any more, nor its parts; an answer that was not taken is dropped. */
void promise_close(struct promise **promise);

/* In a turn of the actor that has handled a message of the promise's, or has failed to: if it ends before the promise
 * is settled, that is by -EPIPE. Without the memory for that it is settled now, by -ENOMEM. */
void promise_depends(struct thread *thread, struct runner *r, strand_actor ref);

#endif
