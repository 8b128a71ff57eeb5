/*
 * Closing a pool. Page: docs/protocols/pools.md.
 *
 * PARTIES   who opens; who closes (the first to do so: the closer); others who close it too, or leave its scope; the
 *           pool's strands; its threads; strands of other pools that spawn onto it, or hand strands off.
 * STATE     the pool's (pool->state): OPEN -> CLOSING -> NONE. The handle's: closing, gone, closed.
 * PROTOCOL  the closer makes the pool CLOSING and then cancels, of all strands that live on it, those whose scopes are
 *           of strands of other pools: the others end with them. Who spawns onto it from elsewhere counts the strand
 *           in and then looks at the state: it is refused. Who anchors a strand from elsewhere looks after that, and
 *           cancels it itself. The last strand to end finds the pool dry, and stops its threads; the last one of those
 *           posts to the closer's pool. The closer joins them, takes over what they watched, and tells the others.
 * INVARIANT [L1] a strand that is counted in is counted out later, by its pool's threads; dry is for ever when the
 *           pool is closing. [L2] a strand of a closing pool whose scope is of another pool's strand is cancelled: by
 *           the closer, who saw it, or by who anchored it. [L3] the handle is kept by its scope's owner, who forgets it
 *           when the pool is closed; so who closes it too is in the list of those to be told, or knows that it is
 *           closed, before he lets go of the handle.
 * ORDERING  the closer: state, a barrier of all threads, then the control blocks. Who anchors: the control block, then
 *           the state [L2].
 * NOT DONE  cancelling every strand of the pool: what is inside is left by its owners' frames, as of any cancelled
 *           strand. A list of a pool's strands: each spawn would pay for it.
 * TESTED BY tests/models/closing.pml.
 */
#include "../../include/strand/pool.h"

#include "pool_close.h"

#include "out_of_work.h"
#include "quiescence.h"

#include "../strand/all.h"
#include "../strand/cancel.h"
#include "../strand/end.h"
#include "../strand/exception.h"
#include "../strand/handle.h"
#include "../strand/log.h"
#include "../strand/misuse.h"
#include "../strand/note.h"
#include "../strand/pool.h"
#include "../strand/section.h"

#include <stdio.h>

/* On a thread of the closer's pool: the pool's threads have gone. */
static struct member *tell_closer(struct post *post)
{
    struct opened_pool *op = CONTAINER(post, struct opened_pool, post);
    struct thread *thread = thread_self();
    arch_note_acquire(post);
    spin_lock(&op->lock, thread);
    op->gone = true;
    struct wait_node *closer = op->closer;
    bool claimed = closer && wait_claim(closer, true);
    spin_unlock(&op->lock);
    return claimed ? &closer->waiter->member : NULL;
}

/* On the last of its threads, which ends. */
static void gone(struct pool *pool)
{
    struct opened_pool *op = pool_above(pool);
    struct pool *home = op->home;
    op->post.run = tell_closer;
    arch_note_release(&op->post);
    pool_post(home, &op->post);
}

/* Of one that is not anchored yet it may be about to change. */
static struct pool *pool_of(struct cb *c)
{
    struct fibre *fibre = plain_load(&c->member.fibre, memory_order_relaxed);
    return plain_load(&fibre->pool, memory_order_relaxed);
}

static struct scope *anchor_of(struct cb *c)
{
    return plain_load(&c->anchor, memory_order_acquire);
}

/* By somebody who keeps the strand: it lives on the pool, below one of another. One that has not been anchored yet is
 * its spawner's alone, and seen by who anchors it [L2]. */
static bool is_topmost(struct thread *thread, struct cb *c, const struct pool *pool)
{
    uintptr_t ends;
    if (!anchor_of(c))
        return false;
    ends_lock(thread, c, &ends);
    struct scope *anchor = anchor_of(c); /* which is not left before the strand ends */
    bool topmost = !(ends & ENDS_OVER) && pool_of(c) == pool && pool_of(block_owner(&anchor->block)) != pool;
    atomic_store_explicit(&c->ends, ends, memory_order_release);
    return topmost;
}

struct closing {
    struct thread *thread;
    struct opened_pool *op;
    struct batch batch;
};

static void cancel_one(struct cb *c, uint64_t id, void *arg)
{
    struct closing *closing = arg;
    struct thread *thread = closing->thread;
    if (!pin(thread, &c->word, id))
        return;
    if (pool_of(c) == closing->op->pool && is_topmost(thread, c, closing->op->pool))
        batch_add(&closing->batch, cancel_strand(thread, c, closing->op->note, false));
    unpin_cb(thread, c);
}

/* The strand is to be told when *what is set, which is done under the lock by who then claims all in *list: it parks
 * next. False: it is set already. */
static bool expect(struct thread *thread, struct cb *me, struct opened_pool *op, const bool *what,
                   struct wait_node **list)
{
    struct wait_node *node = &me->wait.node;
    wait_because(thread, me, BLOCKED_POOL, (uint64_t)(uintptr_t)op);
    node->epoch = wait_arm(thread, me, WAIT_FLOOR_MOST);
    spin_lock(&op->lock, thread);
    bool there = *what;
    if (!there) {
        node->next = *list;
        *list = node;
    }
    spin_unlock(&op->lock);
    if (!there)
        return true;
    bool mine = wait_retract(thread, me); /* nobody has seen its node */
    ASSERT(mine);
    me->blocked = BLOCKED_NOT;
    return false;
}

/* Uninterruptible: nothing is above the floor that it was armed with. */
static struct thread *await(struct thread *thread, struct cb *me)
{
    thread = thread_park(thread);
    wait_over(me);
    return thread;
}

/* The closer's last steps. From the unlocking on the handle may be given back: whoever waits does not touch it again
 * [L3]. */
static void finish(struct thread *thread, struct opened_pool *op)
{
    struct descriptors *descriptors = atomic_load_explicit(&runtime_of(thread)->descriptors, memory_order_acquire);
    struct batch batch;
    batch_init(&batch);
    pool_join_threads(op->pool, 0);
    arch_note_acquire(thread->sub); /* what its strands did is seen by who closes it */
    pool_end_common(thread, op->pool);
    if (descriptors)
        descriptors->move(descriptors, thread, op->pool);
    pool_close(op->pool);
    quiescence_pool_over(thread, op->pool); /* [Q4] */
    spin_lock(&op->lock, thread);
    op->closed = true;
    for (struct wait_node *node = op->waiters, *next; node; node = next) {
        next = node->next;
        if (wait_claim(node, true))
            batch_add(&batch, &node->waiter->member);
    }
    spin_unlock(&op->lock);
    batch_deliver(thread, &batch);
}

/* It may have one in a moment; but if it has not, this is all that will ever be heard of it. */
static void tell_undriven(struct thread *thread, struct opened_pool *op)
{
    char text[128];
    bool undriven = atomic_load_explicit(&op->pool->driving, memory_order_relaxed) == POOL_UNDRIVEN;
    if (!undriven || out_of_work_has_strangers(runtime_of(thread)))
        return;
    snprintf(text, sizeof text, "pool '%s' is being closed, and no thread is there to drive it to its end", op->name);
    log_text(runtime_of(thread), text);
}

static void close_first(struct thread *thread, struct cb *me, struct opened_pool *op, const char *why)
{
    struct closing closing = {.thread = thread, .op = op};
    batch_init(&closing.batch);
    op->home = thread->pool;
    op->note = note_new(thread, me, why);
    pool_close_begin(thread, op->pool, gone);
    each_strand(runtime_of(thread), cancel_one, &closing);
    batch_deliver(thread, &closing.batch);
    pool_close_look(thread, op->pool);
    if (pool_is_driven(op->pool))
        tell_undriven(thread, op);
    if (expect(thread, me, op, &op->gone, &op->closer))
        thread = await(thread, me);
    finish(thread, op);
}

enum closes { CLOSES_FIRST, CLOSES_LATER, CLOSED };

/* By who keeps the handle. Later: the strand parks next, and is told when it is closed. */
static enum closes come_to_close(struct thread *thread, struct cb *me, struct opened_pool *op)
{
    spin_lock(&op->lock, thread);
    bool first = !op->closing;
    op->closing = true;
    spin_unlock(&op->lock);
    return first ? CLOSES_FIRST : expect(thread, me, op, &op->closed, &op->waiters) ? CLOSES_LATER : CLOSED;
}

/* Its scope keeps the handle until it is closed. */
static void go_on_closing(struct thread *thread, struct cb *me, struct opened_pool *op, enum closes how,
                          const char *why)
{
    if (how == CLOSES_FIRST)
        close_first(thread, me, op, why);
    else if (how == CLOSES_LATER)
        (void)await(thread, me);
}

/* Whether the strand, or one above it, lives on the pool: the close would wait for it, and it for the close. */
static bool is_below(struct thread *thread, struct cb *me, const struct pool *pool)
{
    bool below = false;
    atomic_flag *lock = &runtime_of(thread)->hand_off;
    spin_lock(lock, thread);
    for (struct cb *c = me; c && !below; c = c->anchor ? c->anchor->block.owner : NULL)
        below = c->member.fibre->pool == pool;
    spin_unlock(lock);
    return below;
}

static void must_be_elsewhere(struct thread *thread, struct cb *me, struct opened_pool *op, const char *function)
{
    if (is_below(thread, me, op->pool))
        MISUSE(function, pool_made(op, MADE_ROOM),
               "a pool can't be closed by one of its own strands, or one below those: it would wait for itself");
}

static COLD void leave_in_section(struct cb *me, struct opened_pool *op)
{
    MISUSE("STRAND_SCOPE", pool_made(op, MADE_ROOM), "leaving the scope of a pool waits for its end, %s",
           section_words(me).where);
}

void pool_end_with_scope(struct thread *thread, struct owned *owned)
{
    struct opened_pool *op = CONTAINER(owned, struct opened_pool, owned);
    struct cb *me = current_of(thread);
    if (UNLIKELY(own_of(me)->section_file != NULL))
        leave_in_section(me, op);
    must_be_elsewhere(thread, me, op, "STRAND_SCOPE");
    go_on_closing(thread, me, op, come_to_close(thread, me, op), "its pool's scope was left");
    pool_handle_over(thread_self(), op);
}

/* A way of giving back: it is done by who is interrupted, too. */
void strand_pool_close(strand_pool handle, const char *why)
{
    struct thread *thread = must_be_strand("strand_pool_close");
    struct cb *me = current_of(thread);
    if (UNLIKELY(own_of(me)->section_file != NULL))
        section_misuse_(me, "strand_pool_close");
    thread_tick(thread);
    struct opened_pool *op = pool_find(thread, handle, "strand_pool_close");
    if (!op->site)
        MISUSE("strand_pool_close", pool_made(op, MADE_ROOM), "it ends with the run");
    must_be_elsewhere(thread, me, op, "strand_pool_close");
    enum closes how = come_to_close(thread, me, op);
    pool_found(op);
    go_on_closing(thread, me, op, how, why && *why ? why : "its pool was closed");
}
