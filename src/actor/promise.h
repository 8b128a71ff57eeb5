/*
 * Promises: what a strand waits for instead of being an actor. A promise has a reference like an actor's, to which one
 * answer can be sent.
 *
 * PARTIES   its owner: the strand that makes the promise, waits for it, and closes it. Any party that settles it, by an
 *           answer or by a code: actors, other strands, posts from outside. The actor whose end it depends on.
 * STATE     word: serial << WORD_SERIAL | PROMISE_LOCK, or freed: serial << WORD_SERIAL | WORD_FREE. Under the lock:
 *           whether the promise is settled, and by what; the waiter; its parts. `wanted` and `wanted_size` are written
 *           before the reference is passed on.
 *
 *             open --settle: an answer, or a code and no part is open--> settled --close--> freed
 *             open --close: the owner was interrupted--> freed
 *
 * PARTS     a question to several actors has a part for each: a promise without a waiter that passes on to the whole
 *           what settles it. The first answer to any part settles the whole. Codes settle the whole only when each part
 *           was settled by a code, and the actor that makes the parts has given the whole the code 0, because it makes
 *           no more of them. The whole then gets the last code of a part. A part may have parts of its own.
 * OWNERSHIP a promise belongs to the strand that has made it; a part to the owner of the whole. Only that strand frees
 *           the memory: a part that is settled, or whose whole is, keeps its word until the whole is closed.
 * INVARIANTS [PM1] the word is freed under the lock, by the store that releases the lock. So the holder of a promise's
 *           lock is at that promise, and not at a later one in the same memory. [PM2] closing frees all parts with the
 *           whole, and those of parts. A promise that is freed or settled gets no more parts. So an actor that never
 *           answers keeps no memory of a finished question.
 * ORDER OF LOCKS one promise's at a time; a cell's below it.
 * ORDERING  [PM3] LOCK is taken by acquire and released by release, also where the word is freed: one critical section
 *           happens before the next.
 * NOT DONE  a part owned by the party that settles it: it would have to leave the whole's list, under the lock of a
 *           whole that may be closed meanwhile.
 * TESTED BY tests/sim/questions.c, tests/spec/router_ask.c, tests/spec/actor_asks.c, tests/unit/actor_promise.c.
 */
#ifndef ACTOR_PROMISE_H
#define ACTOR_PROMISE_H

#include "actor.h"
#include "optional.h"

enum { PROMISE_LOCK = 1 };

struct promise {
    _Atomic uint64_t word;
    struct wait_node *waiter;
    union {
        const strand_message_type *wanted; /* the required type of an answer; NULL: none is accepted */
        struct promise *next;              /* for a part: another part of the same whole */
    };
    size_t wanted_size;      /* of the copied body; SIZE_MAX: the answer must be given */
    struct envelope *answer; /* only the whole's: a part passes its answer on */
    struct promise *parts;
    struct watch watch;
    union {
        strand_actor whom;  /* for diagnostics only: the actor that was asked, or waited for */
        strand_actor whole; /* for a part: its whole */
    };
    strand_actor watched; /* the actor whose list has `watch`; {0}: none */
    uint32_t open;        /* parts that are not settled */
    int16_t error;        /* before it is settled: that of the last part */
    bool settled : 1;
    bool lost : 1; /* there was no memory for an answer */
    bool is_part : 1;
};
_Static_assert(sizeof(struct promise) <= PROMISE_SIZE, "it lies in a slab");

static inline bool is_promise(strand_actor ref)
{
    return (ref.bits[1] & (MARK_ACTOR | MARK_PROMISE)) == MARK_PROMISE;
}

/* Whether it is, or was, a promise of the caller's run. */
bool promise_is_ours(const struct thread *thread, strand_actor ref);
/* Make a promise. NULL: no memory. */
struct promise *promise_open(struct thread *thread, strand_actor *ref);
/* Settle it by a code, unless it is settled or gone; with open parts, only the last code does so. */
void promise_settle(struct thread *thread, strand_actor ref, int error);
/* Settle it by an answer. Returns 0: the promise owns the answer; otherwise the caller keeps it: -EPIPE: the promise is
 * settled, or gone; -EBADMSG: the answer has the wrong type or size, and the promise is settled by that code. */
int promise_answer(struct thread *thread, strand_actor ref, struct envelope *answer);
/* Add a part to a promise. Returns 0, -ENOMEM, or -EPIPE: the whole is settled, or gone. */
int promise_part(struct thread *thread, strand_actor whole, strand_actor *part);
/* If it is a promise: there was no memory for an answer. Without another answer before the question has been handled,
 * it is then settled by -ENOMEM; at once, if the question has been handled. */
void promise_lacks(struct thread *thread, strand_actor ref);
/* Wait until it is settled. Returns the code. Throws if the wait is interrupted. */
int promise_wait(struct thread *thread, struct promise *promise, unsigned why, strand_actor whom);
/* Free it with its parts; an answer that was not taken is dropped. */
void promise_close(struct promise **promise);

/* In a turn of the actor that has handled the promise's question, or has failed to: if the actor ends before the
 * promise is settled, that settles it by -EPIPE. Without memory for that it is settled now, by -ENOMEM. */
void promise_depends(struct thread *thread, struct runner *r, strand_actor ref);

#endif
