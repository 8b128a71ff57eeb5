/*
 * Closing a pool. Page: docs/protocols/pools.md.
 *
 * PARTIES   the opener; the closer: the first strand that closes the pool or leaves its scope; other closers; the
 *           pool's strands; its threads; strands of other pools that spawn onto it, or hand strands off.
 * STATE     the pool's (pool->state): OPEN -> CLOSING -> CLOSED -> NONE. The handle's: closing, gone, closed.
 * PROTOCOL  The closer makes the pool CLOSING. Then it cancels those strands on the pool whose scopes belong to strands
 *           of other pools; the others end with them. A spawner on another pool counts the strand in, then reads the
 *           state, and is refused. A strand that anchors one from elsewhere reads the state after that, and cancels it
 *           itself if the pool is closing. The last strand to end finds the pool empty, and stops its threads; the last
 *           thread posts to the closer's pool. The closer joins the threads, takes over the descriptors that they
 *           watched, leads the handle to the record of closed pools, gives the pool's own record back, and wakes the
 *           other closers.
 * INVARIANT [L1] A strand that is counted in is counted out later, by its pool's threads; a closing pool that is empty
 *           stays empty. [L2] A strand of a closing pool whose scope belongs to another pool's strand is cancelled: by
 *           the closer, which saw it, or by the strand that anchored it. [L3] The scope's owner keeps the handle until
 *           the pool is closed. So each other closer is in the list of those that the closer wakes, or finds that the
 *           pool is closed, before it releases the handle. [L4] If the last strands of a closing pool end at the same
 *           time, at least one of them finds the pool empty. [L5] When the record is given back, no party uses it that
 *           has found it by the handle, unless that party keeps the record (pool_record_ref).
 * ORDERING  The closer: state, a barrier of all threads, then the control blocks. An anchoring strand: the control
 *           block, then the state [L2]. Counting (pool_live): how many strands were counted out is read before how many
 *           were counted in, and each number is stored by release and loaded by acquire: a strand that was counted out
 *           was counted in. A spawner increments `arrived`, then loads the state; the closer stores the state, then
 *           loads `arrived`; seq_cst: a strand that is let in is counted [L1]. A strand that ends counts itself out,
 *           then loads SWITCH_CHECK and the state, then the others' numbers. A fence is before the latter; before the
 *           former it is the closer's membarrier, or, where there is none, a fence of each [L4]. The closer changes
 *           where the handle leads, and then the handle's word, atomically: a later reference finds the record of
 *           closed pools, and the closer waits for an earlier one [L5].
 * NOT DONE  Cancelling every strand of the pool: inner strands end when their owners' frames leave their scopes, as
 *           below any cancelled strand. A list of a pool's strands: each spawn would pay for it.
 * TESTED BY tests/models/closing.pml.
 */
#include "../../include/strand/pool.h"

#include "pool_close.h"

#include "out_of_work.h"
#include "quiescence.h"

#include "../sched/closing.h"
#include "../sched/pool.h"
#include "../sched/records.h"
#include "../sched/thread_lifetime.h"
#include "../strand/cancel.h"
#include "../strand/cancel_reason.h"
#include "../strand/each_strand.h"
#include "../strand/end.h"
#include "../strand/exception.h"
#include "../strand/handle.h"
#include "../strand/interrupt.h"
#include "../strand/log.h"
#include "../strand/misuse.h"
#include "../strand/pool.h"
#include "../strand/section.h"

#include "../io/io_layer.h"

#include <stdio.h>

/* Wakes the closer, after the pool's threads have exited. Runs on a thread of the closer's pool. */
static struct member *wake_closer(struct post *post)
{
    struct opened_pool *op = CONTAINER(post, struct opened_pool, post);
    struct thread *thread = thread_self();
    arch_san_acquire(post);
    spin_lock(&op->lock, thread);
    op->gone = true;
    struct wait_node *closer = op->closer;
    bool claimed = closer && wait_claim(closer, true);
    spin_unlock(&op->lock);
    return claimed ? &closer->waiter->member : NULL;
}

/* Posts to the closer's pool that the pool's threads are gone. Runs on the last of them, which exits. */
static void gone(struct pool *pool)
{
    struct opened_pool *op = pool_above(pool);
    struct pool *home = op->home;
    op->post.run = wake_closer;
    arch_san_release(&op->post);
    pool_post(home, &op->post);
}

/* Returns the pool of a strand; it may change while the strand is not anchored. */
static struct pool *pool_of(struct cb *c)
{
    struct fibre *fibre = plain_load(&c->member.fibre, memory_order_relaxed);
    return plain_load(&fibre->pool, memory_order_relaxed);
}

static struct scope *anchor_of(struct cb *c)
{
    return plain_load(&c->anchor, memory_order_acquire); /* [PB1] */
}

/* Returns whether the strand is on the pool, and its scope belongs to a strand on another one. The caller has a
 * reference. Only its spawner uses a strand that is not anchored yet, and the strand that anchors it checks the pool
 * [L2]. */
static bool is_topmost(struct thread *thread, struct cb *c, const struct pool *pool)
{
    uintptr_t ends;
    if (!anchor_of(c))
        return false;
    ends_lock(thread, c, &ends);
    struct scope *anchor = anchor_of(c); /* the scope is not left before the strand ends */
    bool topmost = !(ends & ENDS_OVER) && pool_of(c) == pool && pool_of(block_owner(&anchor->block)) != pool;
    atomic_store_explicit(&c->ends, ends, memory_order_release); /* [E5] */
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
    if (!handle_ref_take(thread, &c->word, id))
        return;
    if (pool_of(c) == closing->op->pool && is_topmost(thread, c, closing->op->pool))
        batch_add(&closing->batch, cancel_strand(thread, c, closing->op->cancel_reason, false));
    handle_unref_cb(thread, c);
}

/* Registers the strand as a waiter for *what; the strand parks next. The thread that sets *what does so under the lock,
 * and claims all nodes in *list. Returns false if *what is set already. */
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
    bool mine = wait_retract(thread, me); /* no other strand has seen the node */
    ASSERT(mine);
    me->blocked = BLOCKED_NOT;
    return false;
}

/* Parks the strand. Uninterruptible: the wait was armed with the highest floor. */
static struct thread *await(struct thread *thread, struct cb *me)
{
    thread = thread_park(thread);
    wait_over(me);
    return thread;
}

/* Does the closer's last steps. When the lock is released, the handle may be released: the other closers do not use it
 * again [L3]. */
static void finish(struct thread *thread, struct opened_pool *op)
{
    struct pool *pool = op->pool;
    struct batch batch;
    batch_init(&batch);
    pool_join_threads(pool, 0);
    arch_san_acquire(thread->sub); /* makes the writes of the pool's strands visible to the closer */
    pool_end_common(thread, pool);
    descriptors_move(thread, pool);
    pool_close(pool);
    pool_handle_leave(thread, op);      /* [L5] */
    quiescence_pool_over(thread, pool); /* [Q4] */
    pool_record_unref(thread, pool);
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

/* Reports that no thread is there to drive the pool to its end. A thread may still come; if none does, this is the only
 * report. */
static void report_undriven(struct thread *thread, struct opened_pool *op)
{
    char text[128];
    bool undriven = atomic_load_explicit(&op->pool->driving, memory_order_relaxed) == POOL_UNDRIVEN;
    if (!undriven || out_of_work_has_outside_threads(runtime_of(thread)))
        return;
    snprintf(text, sizeof text, "pool '%s' is being closed, and no thread is there to drive it to its end", op->name);
    log_text(runtime_of(thread), text);
}

static void close_first(struct thread *thread, struct cb *me, struct opened_pool *op, const char *why)
{
    struct closing closing = {.thread = thread, .op = op};
    batch_init(&closing.batch);
    op->home = thread->pool;
    op->cancel_reason = cancel_reason_new(thread, me, why);
    pool_close_begin(thread, op->pool, gone);
    each_strand(runtime_of(thread), cancel_one, &closing);
    batch_deliver(thread, &closing.batch);
    pool_close_check(thread, op->pool);
    if (pool_is_driven(op->pool))
        report_undriven(thread, op);
    if (expect(thread, me, op, &op->gone, &op->closer))
        thread = await(thread, me);
    finish(thread, op);
}

enum closes { CLOSES_FIRST, CLOSES_LATER, CLOSED };

/* Registers the strand as a closer of the pool. The caller keeps the handle. Returns CLOSES_LATER if the strand must
 * park next; it is woken when the pool is closed. */
static enum closes come_to_close(struct thread *thread, struct cb *me, struct opened_pool *op)
{
    spin_lock(&op->lock, thread);
    bool first = !op->closing;
    op->closing = true;
    spin_unlock(&op->lock);
    return first ? CLOSES_FIRST : expect(thread, me, op, &op->closed, &op->waiters) ? CLOSES_LATER : CLOSED;
}

/* Closes the pool, or waits until the first closer has. The pool's scope keeps the handle until the pool is closed. */
static void go_on_closing(struct thread *thread, struct cb *me, struct opened_pool *op, enum closes how,
                          const char *why)
{
    if (how == CLOSES_FIRST)
        close_first(thread, me, op, why);
    else if (how == CLOSES_LATER)
        (void)await(thread, me);
}

/* Returns whether the strand or one of its ancestors is on the pool: then the close would wait for the strand, and the
 * strand for the close. */
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
    if (is_below(thread, me, pool_behind(op)))
        MISUSE(function, pool_made(op, MADE_ROOM),
               "a pool can't be closed by one of its own strands, or one below those: it would wait for itself");
}

static COLD void leave_in_section(struct cb *me, struct opened_pool *op)
{
    MISUSE("STRAND_SCOPE", pool_made(op, MADE_ROOM), "leaving the scope of a pool waits for its end, %s",
           misuse_section_words(me).where);
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

/* An interrupted strand closes the pool too, because that releases a resource. */
void strand_pool_close(strand_pool handle, const char *why)
{
    struct thread *thread = must_be_strand("strand_pool_close");
    struct cb *me = current_of(thread);
    may_suspend(thread, me, "strand_pool_close");
    thread_tick(thread);
    struct opened_pool *op = pool_find(thread, handle, "strand_pool_close");
    if (!op->site)
        MISUSE("strand_pool_close", pool_made(op, MADE_ROOM), "it ends with the run");
    must_be_elsewhere(thread, me, op, "strand_pool_close");
    enum closes how = come_to_close(thread, me, op);
    pool_unref(op);
    go_on_closing(thread, me, op, how, why && *why ? why : "its pool was closed");
}
