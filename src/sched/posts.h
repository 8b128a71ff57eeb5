/*
 * A pool's posts, which any thread of the process hands in: an intrusive FIFO queue for many producers and one taker.
 *
 * PARTIES   producers: plain threads, threads of other runs and crews, handlers of signals. The taker: the thread that
 *           has the role of the seeker of the pool. Others, which ask only whether the queue is empty.
 * STATE     last: the newest post, NULL: the queue is empty. first: the oldest. Each post: the next newer one.
 *
 *             producer:  next = NULL;  before = exchange(last, post);  before ? before.next : first  =  post
 *             taker:     the oldest, unless next is NULL. Then it is the newest as well, or its successor is not linked
 *                        yet: first = NULL; if last can be set from it to NULL, it is taken; else first = it, and
 *                        nothing is taken now
 *
 * OWNERSHIP a post is the producer's until it is in `last`, then the queue's, then the taker's, which may free it.
 * INVARIANTS [N1] the taker takes a post only when no producer is going to write its `next`. [N2] from the exchange on
 *           the queue is not empty, and the producer links its post without waiting for another thread: so a thread
 *           that finds the queue not empty looks again instead of sleeping. [N3] one pass takes POSTS_AT_ONCE at most.
 *           A producer that never pauses thus delays strands, timers and descriptors by no more than that many posts.
 * ORDERING  the exchange is sequentially consistent: the seeker's look before it sleeps sees it, or the producer sees
 *           the seeker's kick [K1]. Its release pairs with the acquire of the next exchange, so that the next producer
 *           writes to a post that is complete [N2]. [N4] The link (release) pairs with the taker's load (acquire): the
 *           taker sees what the producer wrote. The taker's compare-and-swap (release) pairs with the next exchange
 *           (acquire): the producer's store of `first` comes after the taker's NULL [N1].
 * PROGRESS  producers are wait-free. If the system stops a producer between its two steps, the taker cannot take the
 *           post before that producer's, nor any later one, until the producer continues. Strands, timers and
 *           descriptors are served meanwhile.
 * NOT DONE  a stack, taken by one exchange: to find the oldest post the taker walks over all of them, which takes tens
 *           of milliseconds when a million have come. Taking all that is there: it takes longer than the producers
 *           need to post as many again, and the next look takes longer still.
 * TESTED BY tests/models/posts.pml, tests/unit/sched_posts.c, tests/spec/flood.c; the mutants posts-*.
 */
#ifndef SCHED_POSTS_H
#define SCHED_POSTS_H

#include "../base/atomic.h"
#include "../base/base.h"

struct member;

/* Work for a thread of the pool, handed in by any thread. */
struct post {
    _Atomic(struct post *) next;
    struct member *(*run)(struct post *post); /* as sched_ops.fire; after the pool's end on no thread of it */
};

struct posts { /* of a pool */
    _Atomic(struct post *) last, first;
};

enum { POSTS_AT_ONCE = 256 };

/* Adds a post. Any thread may call it, also in a signal handler. Full barrier. */
void posts_put(struct posts *posts, struct post *post);
/* Removes and returns the oldest post. NULL: there is none, or it can't be taken yet [N1]. Called by the taker. */
struct post *posts_take(struct posts *posts);

/* Returns whether the queue has a post. Any thread. */
OWN_INLINE bool posts_any(const struct posts *posts)
{
    return atomic_load_explicit(&posts->last, memory_order_relaxed) != NULL;
}

#endif
