/*
 * Waiting until a pool, or the run, is quiescent, and the decision that it is. Models: tests/models/quiescence.pml for
 * the decision, tests/models/joiner.pml for a wait that a flag ends, too.
 */
#include "quiescence.h"

#include "ending.h"
#include "out_of_work.h"
#include "run_blocked.h"

#include "../sched/hold.h"
#include "../sched/timers.h"
#include "../strand/interrupt.h"
#include "../strand/misuse.h"
#include "../strand/pool.h"
#include "../strand/wait.h"

void quiescence_open(struct run *run)
{
    list_init(&run->waiters);
}

/* ---- waiting --------------------------------------------------------------------------------------------- */

/* The node of a waiting strand is in run.waiters. node.value: the pool, or NULL for all pools. node.result: the lull
 * that the strand waits for. */

/* Returns whether the pool has ended, or is quiescent already. The caller decides that, because the pool's seeker may
 * be parked for long. Under quiescent_lock, after the strand was linked [Q4]. */
static bool is_quiescent_already(struct thread *thread, struct pool *pool, enum lull lull)
{
    return atomic_load_explicit(&pool->state, memory_order_seq_cst) == POOL_CLOSED ||
           quiescent_pool(thread, pool) >= lull; /* [Q4] */
}

/* Adds the strand to the waiters. op: as of wait_for. Returns whether there is nothing to wait for. */
static bool link_waiter(struct thread *thread, struct cb *me, struct opened_pool *op, enum lull lull)
{
    struct run *run = run_of(thread);
    atomic_fetch_add_explicit(&run->runtime.sub.quiescence_waiters, QUIESCENT_WAITER, memory_order_seq_cst); /* [Q4] */
    spin_lock(&run->runtime.sub.quiescent_lock, thread);
    list_push_back(&run->waiters, &me->wait.node.link);
    bool over = op && is_quiescent_already(thread, pool_behind(op), lull);
    spin_unlock(&run->runtime.sub.quiescent_lock);
    return over;
}

/* Removes the node, unless the thread that has claimed the wait has done so. No other thread uses the node after the
 * return. */
static void unlink_waiter(struct thread *thread, struct cb *me)
{
    struct run *run = run_of(thread);
    spin_lock(&run->runtime.sub.quiescent_lock, thread);
    if (me->wait.node.link.next)
        list_remove(&me->wait.node.link);
    spin_unlock(&run->runtime.sub.quiescent_lock);
    atomic_fetch_sub_explicit(&run->runtime.sub.quiescence_waiters, QUIESCENT_WAITER, memory_order_relaxed);
}

/* Claims the wait of a node, and adds its strand to the batch. Under quiescent_lock. */
static void claim(struct wait_node *node, struct batch *batch)
{
    struct member *member = &node->waiter->member;
    list_remove(&node->link);
    if (wait_claim(node, true))
        batch_add(batch, member);
}

/* Excuses the deadlines of the strand, or ends that: during the wait they would only end the wait, or in a shield not
 * even that. */
static void excuse_own(struct thread *thread, struct cb *me, bool excused)
{
    for (struct block *block = own_of(me)->blocks; block; block = block->outer) {
        struct deadline *deadline = CONTAINER(block, struct deadline, block);
        if (block->type == BLOCK_DEADLINE)
            timer_excuse(thread, deadline->pool, &deadline->timer, excused);
    }
}

/* Waits until the pool, or the run if that is NULL, reaches the lull. op: the handle of the pool, with a reference, if
 * it is not the caller's; else NULL. over: a flag that also ends the wait, or NULL. Throws if the strand is
 * interrupted. */
static void wait_for(struct thread *thread, struct cb *me, struct pool *pool, struct opened_pool *op, enum lull lull,
                     const _Atomic bool *over)
{
    struct wait_node *node = &me->wait.node;
    interrupt_put_off_coming(me); /* this wait can't begin again after an interruption */
    excuse_own(thread, me, true);
    wait_because(thread, me, BLOCKED_QUIESCENCE, 0);
    node->value = pool;
    node->result = (int)lull;
    node->index = 0;
    node->epoch = wait_arm(thread, me, own_of(me)->floor);
    bool happened = link_waiter(thread, me, op, lull);
    if (op)
        pool_unref(op);
    if (over)
        happened = atomic_load_explicit(over, memory_order_seq_cst); /* [Q7] */
    if ((happened || interrupted(me)) && wait_retract(thread, me)) { /* [W4] */
        me->blocked = BLOCKED_NOT;
    } else {
        thread = thread_park(thread);
        happened = wait_over(me) == WAIT_WON;
    }
    unlink_waiter(thread, me);
    excuse_own(thread, me, false);
    if (happened)
        arch_san_acquire(thread->sub); /* pairs with the release of each switch */
    if (!happened && interrupted(me))
        interrupt_throw(thread, me, 0);
}

void strand_wait_quiet(strand_pool handle, strand_quiet_flags flags)
{
    struct thread *thread = must_be_strand("strand_wait_quiet");
    struct cb *me = current_of(thread);
    may_block(thread, me, "strand_wait_quiet");
    bool run = flags & STRAND_QUIET_RUN, named = handle.bits[0] || handle.bits[1];
    if (flags & ~(unsigned)(STRAND_QUIET_RUN | STRAND_QUIET_STALLED))
        MISUSE("strand_wait_quiet", "", "the flags %#x are invalid", flags);
    if (run && named)
        MISUSE("strand_wait_quiet", "", "STRAND_QUIET_RUN means all pools, so no pool may be named");
    struct opened_pool *op = named ? pool_find(thread, handle, "strand_wait_quiet") : NULL;
    enum lull lull = flags & STRAND_QUIET_STALLED ? LULL_STALLED : LULL_QUIESCENT;
    wait_for(thread, me, run ? NULL : op ? pool_behind(op) : thread->pool, op, lull, NULL);
}

void quiescence_wait_or(struct thread *thread, struct cb *me, struct cb *_Atomic *waiter, const _Atomic bool *over)
{
    atomic_store_explicit(waiter, me, memory_order_seq_cst); /* [Q7] */
    if (!atomic_load_explicit(over, memory_order_seq_cst))   /* [Q7] */
        wait_for(thread, me, NULL, NULL, LULL_QUIESCENT, over);
}

/* Wakes the strand `waiter`, or, if that is NULL, all strands that wait for the pool. */
static void wake(struct thread *thread, const struct cb *waiter, const struct pool *pool)
{
    struct run *run = run_of(thread);
    struct batch batch;
    batch_init(&batch);
    spin_lock(&run->runtime.sub.quiescent_lock, thread);
    for (struct link *link = run->waiters.next, *next; link != &run->waiters; link = next) {
        struct wait_node *node = CONTAINER(link, struct wait_node, link);
        next = link->next;
        if (waiter ? node->waiter == waiter : node->value == pool)
            claim(node, &batch);
    }
    spin_unlock(&run->runtime.sub.quiescent_lock);
    batch_deliver(thread, &batch);
}

void quiescence_wake(struct thread *thread, const struct cb *waiter)
{
    wake(thread, waiter, NULL);
}

void quiescence_pool_over(struct thread *thread, struct pool *pool)
{
    if (quiescent_is_awaited(&run_of(thread)->runtime.sub))
        wake(thread, NULL, pool);
}

/* ---- deciding -------------------------------------------------------------------------------------------- */

static enum lull lull_of(struct thread *thread, struct pool *pool, enum lull *here, enum lull *all)
{
    if (pool && pool != thread->pool)
        return LULL_NONE; /* the pool's own seeker decides */
    if (pool)
        return *here != LULL_UNKNOWN ? *here : (*here = quiescent_pool(thread, pool));
    return *all != LULL_UNKNOWN ? *all : (*all = quiescent_run(thread));
}

/* Takes quiescent_lock. While the thread waits for another one's decision it may be held, for the report of that
 * decision. */
static void lock_quiescent(struct thread *thread)
{
    atomic_flag *lock = &thread->sub->quiescent_lock;
    while (atomic_flag_test_and_set_explicit(lock, memory_order_acquire)) { /* [LK1] */
        if (atomic_load_explicit(&thread->hold.asked, memory_order_relaxed))
            pool_stand_still(thread);
        platform_await(thread);
    }
    arch_san_acquire(lock);
}

bool quiescence_comes(struct thread *thread, struct batch *batch, uint32_t asked)
{
    struct run *run = run_of(thread);
    struct subprocess *sub = &run->runtime.sub;
    enum lull here = LULL_UNKNOWN, all = LULL_UNKNOWN;
    bool sure = true;
    lock_quiescent(thread);
    for (struct link *link = run->waiters.next, *next; link != &run->waiters; link = next) {
        struct wait_node *node = CONTAINER(link, struct wait_node, link);
        next = link->next;
        if ((int)lull_of(thread, node->value, &here, &all) >= node->result)
            claim(node, batch);
    }
    bool verdict = ending_wants_verdict(sub) && !batch->first && list_empty(&run->waiters);
    if (verdict && lull_of(thread, NULL, &here, &all) == LULL_QUIESCENT)
        batch_add(batch, out_of_work_judge(thread, run, &sure));
    if (batch->first)
        quiescent_stir(thread); /* [Q3] */
    spin_unlock(&sub->quiescent_lock);
    if (!sure)
        out_of_work_doubt(thread, run, asked);
    return !sure;
}
