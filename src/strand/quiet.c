/*
 * Waiting for quiet, and what is done when a run is out of work.
 */
#include "quiet.h"

#include "cancel.h"
#include "exception.h"
#include "interrupt.h"
#include "misuse.h"
#include "pool.h"
#include "print.h"
#include "shutdown.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void quiet_open(struct runtime *runtime)
{
    list_init(&runtime->quiet);
    enum strand_out_of_work what = runtime->options.out_of_work;
    bool seeded = runtime->sub.driver; /* which says by itself that nothing can go on, and how it came to that */
    runtime->sub.ends_dry = what != STRAND_OUT_OF_WORK_WAIT && !(seeded && what == STRAND_OUT_OF_WORK_AUTO);
}

/* ---- waiting --------------------------------------------------------------------------------------------- */

/* A strand that waits stands in runtime.quiet by its node: node.value is the pool, NULL: all of them; node.result is
 * the lull that it waits for. */

static void link_waiter(struct thread *thread, struct cb *me)
{
    struct runtime *runtime = runtime_of(thread);
    atomic_fetch_add_explicit(&runtime->sub.minds_quiet, QUIET_WAITER, memory_order_seq_cst);
    spin_lock(&runtime->sub.quiet_lock, thread);
    list_push_back(&runtime->quiet, &me->wait.node.link);
    spin_unlock(&runtime->sub.quiet_lock);
}

/* Whoever claims a wait takes its node out. Nobody else touches the node after this. */
static void unlink_waiter(struct thread *thread, struct cb *me)
{
    struct runtime *runtime = runtime_of(thread);
    spin_lock(&runtime->sub.quiet_lock, thread);
    if (me->wait.node.link.next)
        list_remove(&me->wait.node.link);
    spin_unlock(&runtime->sub.quiet_lock);
    atomic_fetch_sub_explicit(&runtime->sub.minds_quiet, QUIET_WAITER, memory_order_seq_cst);
}

/* Under quiet_lock. */
static void claim(struct wait_node *node, struct batch *batch)
{
    struct member *member = &node->waiter->member;
    list_remove(&node->link);
    if (wait_claim(node, true))
        batch_add(batch, member);
}

/* Deadlines of the caller's that are pending, and would end the wait. */
static uint32_t own_timers(struct cb *me)
{
    uint32_t count = 0;
    for (struct block *block = own_of(me)->blocks; block && block->index >= own_of(me)->floor; block = block->outer)
        count += block->kind == BLOCK_DEADLINE && CONTAINER(block, struct deadline, block)->when != ARCH_FOREVER;
    return count;
}

/* op: whose pool it is, pinned, if it is another than the caller's; else NULL. */
static void wait_for(struct thread *thread, struct cb *me, struct pool *pool, struct opened_pool *op, enum lull lull)
{
    struct wait_node *node = &me->wait.node;
    uint32_t excused = own_timers(me);
    struct pool *home = thread->pool;
    atomic_fetch_add_explicit(&home->excused, excused, memory_order_relaxed);
    wait_because(thread, me, BLOCKED_QUIET, 0);
    node->value = pool;
    node->result = (int)lull;
    node->index = 0;
    node->epoch = wait_arm(thread, me, own_of(me)->floor);
    link_waiter(thread, me);
    bool over = op && atomic_load_explicit(&op->pool->state, memory_order_seq_cst) == POOL_CLOSED; /* [Q4] */
    if (op) {
        pool_kick_(thread, op->pool); /* which may be quiet already */
        pool_found(op);
    }
    if ((over || interrupted(me)) && wait_retract(thread, me)) { /* [W4] */
        me->blocked = BLOCKED_NOT;
    } else {
        thread = thread_park(thread);
        wait_over(me);
    }
    unlink_waiter(thread, me);
    atomic_fetch_sub_explicit(&home->excused, excused, memory_order_relaxed);
    if (interrupted(me))
        interrupt_throw(thread, me, 0);
}

void strand_wait_quiet(strand_pool handle, unsigned flags)
{
    struct thread *thread = must_be_strand("strand_wait_quiet");
    struct cb *me = current_of(thread);
    may_block(thread, me, "strand_wait_quiet");
    bool run = flags & STRAND_QUIET_RUN, named = handle.bits[0] || handle.bits[1];
    if (flags & ~(unsigned)(STRAND_QUIET_RUN | STRAND_QUIET_BLOCKED))
        MISUSE("strand_wait_quiet", "", "the flags %#x are none", flags);
    if (run && named)
        MISUSE("strand_wait_quiet", "", "STRAND_QUIET_RUN means all pools, so none is to be named");
    struct opened_pool *op = named ? pool_find(thread, handle, "strand_wait_quiet") : NULL;
    enum lull lull = flags & STRAND_QUIET_BLOCKED ? LULL_BLOCKED : LULL_DRY;
    wait_for(thread, me, run ? NULL : op ? op->pool : thread->pool, op, lull);
}

void quiet_pool_over(struct thread *thread, struct pool *pool)
{
    struct runtime *runtime = runtime_of(thread);
    struct batch batch;
    batch_init(&batch);
    if (!quiet_is_minded(&runtime->sub))
        return;
    spin_lock(&runtime->sub.quiet_lock, thread);
    for (struct link *link = runtime->quiet.next, *next; link != &runtime->quiet; link = next) {
        struct wait_node *node = CONTAINER(link, struct wait_node, link);
        next = link->next;
        if (node->value == pool)
            claim(node, &batch);
    }
    spin_unlock(&runtime->sub.quiet_lock);
    batch_deliver(thread, &batch);
}

/* ---- out of work ------------------------------------------------------------------------------------------ */

void quiet_reached(struct subprocess *sub)
{
    struct runtime *runtime = (struct runtime *)sub;
    if (runtime->options.out_of_work == STRAND_OUT_OF_WORK_AUTO &&
        (atomic_load_explicit(&sub->minds_quiet, memory_order_relaxed) & QUIET_VERDICT))
        atomic_fetch_and_explicit(&sub->minds_quiet, ~(uint32_t)QUIET_VERDICT, memory_order_seq_cst);
}

void quiet_while_stopping(struct runtime *runtime)
{
    bool asks = !runtime->sub.driver && runtime->options.out_of_work == STRAND_OUT_OF_WORK_AUTO;
    if (!asks) /* else it is so, unless somebody outside has acted on it */
        atomic_fetch_or_explicit(&runtime->sub.minds_quiet, QUIET_VERDICT, memory_order_seq_cst);
}

/* Threads of the process that are none of the run's, and might act on it. */
static bool has_strangers(struct runtime *runtime)
{
    struct subprocess *sub = &runtime->sub;
    int own = atomic_load_explicit(&sub->helpers, memory_order_acquire);
    if (sub->driver)
        return sub->driver->plain_threads(sub) > own;
    for (struct thread *thread = thread_first(sub); thread; thread = thread_after(thread)) {
        enum thread_life life = thread_life(thread);
        own += (life == THREAD_HERE || life == THREAD_LEAVING) && !pool_is_driven(thread->pool);
    }
    return arch_thread_count() != own;
}

struct member *quiet_cancel_root(struct runtime *runtime, const char *why)
{
    struct thread *thread = thread_self();
    struct note *note = note_new(thread, NULL, why);
    atomic_store_explicit(&runtime->told_to_end, true, memory_order_release);
    struct member *member = cancel_strand(thread, runtime->root, note, false);
    note_release(note);
    return member;
}

/* While all still stand where they wait for each other. */
static void report(struct thread *thread, struct runtime *runtime, const char *headline)
{
    graph_summary(thread, runtime->deadlock, sizeof runtime->deadlock);
    log_text(runtime, headline);
    graph_report(thread);
}

static struct member *tell_root(struct thread *thread, struct runtime *runtime)
{
    struct cb *root = runtime->root;
    report(thread, runtime, "the run is deadlocked");
    atomic_fetch_or_explicit(&root->word, WORD_STUCK, memory_order_seq_cst);
    return interrupt_raise(root, 0, true);
}

static struct member *end_run(struct thread *thread, struct runtime *runtime)
{
    const char *why = shutdown_has_begun(runtime) ? shutdown_reason(runtime) : "it is out of work";
    struct member *root = quiet_cancel_root(runtime, why);
    if (!root)
        report(thread, runtime, "the run is out of work, but can't end");
    return root;
}

/* The run is dry, and nobody waits for that. Under quiet_lock. Returns the root if it has to be made runnable; else
 * *sure: there is nothing to be done. */
static struct member *judge(struct thread *thread, struct runtime *runtime, bool *sure)
{
    enum strand_out_of_work what = runtime->options.out_of_work;
    struct member *root = NULL;
    bool ends = what == STRAND_OUT_OF_WORK_END || shutdown_has_begun(runtime);
    if (what == STRAND_OUT_OF_WORK_AUTO && has_strangers(runtime)) {
        *sure = false;
        return NULL;
    }
    if (what == STRAND_OUT_OF_WORK_WAIT && atomic_load_explicit(&runtime->told_to_end, memory_order_relaxed))
        return NULL;
    if (ends && !atomic_load_explicit(&runtime->told_to_end, memory_order_relaxed))
        root = end_run(thread, runtime);
    else if (what != STRAND_OUT_OF_WORK_EXIT)
        root = tell_root(thread, runtime);
    else
        report(thread, runtime, "the run is deadlocked");
    if (!root) { /* it was asked for; or the root leaves a scope, or is in a shield */
        log_text(runtime, what == STRAND_OUT_OF_WORK_EXIT ? "the program ends"
                                                          : "the program ends, because the root can't be interrupted");
        exit(EXIT_FAILURE);
    }
    return root;
}

static enum lull lull_of(struct thread *thread, struct pool *pool, enum lull *here, enum lull *run)
{
    if (pool && pool != thread->pool)
        return LULL_NONE; /* its own seeker says so */
    if (pool)
        return *here != LULL_UNKNOWN ? *here : (*here = quiet_pool(thread, pool));
    return *run != LULL_UNKNOWN ? *run : (*run = quiet_run(thread));
}

bool quiet_comes(struct thread *thread, struct batch *batch)
{
    struct runtime *runtime = runtime_of(thread);
    struct subprocess *sub = &runtime->sub;
    enum lull here = LULL_UNKNOWN, run = LULL_UNKNOWN;
    bool sure = true;
    spin_lock(&sub->quiet_lock, thread);
    for (struct link *link = runtime->quiet.next, *next; link != &runtime->quiet; link = next) {
        struct wait_node *node = CONTAINER(link, struct wait_node, link);
        next = link->next;
        if ((int)lull_of(thread, node->value, &here, &run) >= node->result)
            claim(node, batch);
    }
    bool verdict = atomic_load_explicit(&sub->minds_quiet, memory_order_relaxed) & QUIET_VERDICT;
    if (verdict && !batch->first && list_empty(&runtime->quiet) && lull_of(thread, NULL, &here, &run) == LULL_DRY)
        batch_add(batch, judge(thread, runtime, &sure));
    if (batch->first)
        quiet_stir(thread); /* [Q3] */
    spin_unlock(&sub->quiet_lock);
    return !sure;
}

void quiet_throw_deadlock(struct thread *thread, struct cb *root)
{
    struct runtime *runtime = runtime_of(thread);
    atomic_fetch_and_explicit(&root->word, ~(uint64_t)WORD_STUCK, memory_order_seq_cst);
    interrupt_lower(thread, root);
    strand_exception *e = exception_new(&STRAND_DEADLOCK, "%s", runtime->deadlock);
    exception_trace(e, SEGMENT_THROWN, root);
    exception_throw(root, e);
}
