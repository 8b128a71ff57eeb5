/*
 * Promises: what a strand waits for that is no actor. It has a reference as actors have, to which one answer can be
 * sent.
 *
 * STATE     word: serial << WORD_SERIAL | PROMISE_LOCK; behind it, under the lock, whether it is settled, by what, and
 *           the waiter. `wanted` and `wanted_size` are written before anyone else has the reference.
 * OWNERSHIP the promise is the strand's that has made it, which waits, and then closes it: nobody finds it after that.
 * A part belongs to whoever settles it, which hands on what it is settled by, and closes it. PARTS     a question that
 * goes to several actors has a part for each, a promise that nobody waits for. The first answer to any of them settles
 * the whole. A code does only if no part is open any more, nor the question itself: whoever hands that out settles it
 * by 0 at the end, for the last code that there was.
 */
#ifndef ACTOR_PROMISE_H
#define ACTOR_PROMISE_H

#include "actor.h"
#include "more.h"

enum { PROMISE_LOCK = 1 };

struct promise {
    _Atomic uint64_t word;
    struct wait_node *waiter;
    const strand_message_type *wanted; /* the only type that an answer may have; NULL: no answer is wanted */
    size_t wanted_size;                /* of its copied body; SIZE_MAX: it has to be given */
    struct envelope *answer;
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
/* Nobody finds it any more; an answer that was not taken is dropped. */
void promise_close(struct promise **promise);

/* In a turn of the actor that has handled a message of the promise's, or has failed to: if it ends before the promise
 * is settled, that is by -EPIPE. Without the memory for that it is settled now, by -ENOMEM. */
void promise_depends(struct thread *thread, struct runner *r, strand_actor ref);

#endif
