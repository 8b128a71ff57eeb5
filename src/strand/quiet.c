/*
 * Waiting for quiet, and what is done when a run is out of work. Model of who decides: tests/models/quiet.pml.
 */
#include "quiet.h"

#include "cancel.h"
#include "exception.h"
#include "interrupt.h"
#include "misuse.h"
#include "pool.h"
#include "print.h"
#include "shutdown.h"

#include "../sched/timers.h"

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

/* Whether the pool has ended, or is quiet already: its seeker, which may be parked for long, is not asked. Under
 * quiet_lock, after the strand was linked [Q4]. */
static bool is_quiet_already(struct thread *thread, struct pool *pool, enum lull lull)
{
    return atomic_load_explicit(&pool->state, memory_order_seq_cst) == POOL_CLOSED || quiet_pool(thread, pool) >= lull;
}

/* op: as below. Returns whether there is nothing to wait for. */
static bool link_waiter(struct thread *thread, struct cb *me, struct opened_pool *op, enum lull lull)
{
    struct runtime *runtime = runtime_of(thread);
    atomic_fetch_add_explicit(&runtime->sub.minds_quiet, QUIET_WAITER, memory_order_seq_cst);
    spin_lock(&runtime->sub.quiet_lock, thread);
    list_push_back(&runtime->quiet, &me->wait.node.link);
    bool over = op && is_quiet_already(thread, op->pool, lull);
    spin_unlock(&runtime->sub.quiet_lock);
    return over;
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

/* The caller's deadlines: they would do nothing but end the wait, or not even that, in a shield. */
static void excuse_own(struct thread *thread, struct cb *me, bool excused)
{
    for (struct block *block = own_of(me)->blocks; block; block = block->outer) {
        struct deadline *deadline = CONTAINER(block, struct deadline, block);
        if (block->kind == BLOCK_DEADLINE)
            timer_excuse(thread, deadline->pool, &deadline->timer, excused);
    }
}

/* op: whose pool it is, pinned, if it is another than the caller's; else NULL. over: something else that it waits for,
 * or NULL. */
static void wait_for(struct thread *thread, struct cb *me, struct pool *pool, struct opened_pool *op, enum lull lull,
                     const _Atomic bool *over)
{
    struct wait_node *node = &me->wait.node;
    (void)interrupt_put_off_(me); /* it is not begun again */
    excuse_own(thread, me, true);
    wait_because(thread, me, BLOCKED_QUIET, 0);
    node->value = pool;
    node->result = (int)lull;
    node->index = 0;
    node->epoch = wait_arm(thread, me, own_of(me)->floor);
    bool happened = link_waiter(thread, me, op, lull);
    if (op)
        pool_found(op);
    if (over)
        happened = atomic_load_explicit(over, memory_order_seq_cst);
    if ((happened || interrupted(me)) && wait_retract(thread, me)) { /* [W4] */
        me->blocked = BLOCKED_NOT;
    } else {
        thread = thread_park(thread);
        happened = wait_over(me) == WAIT_WON;
    }
    unlink_waiter(thread, me);
    excuse_own(thread, me, false);
    if (happened)
        arch_note_acquire(thread->sub); /* each switch has released it */
    if (!happened && interrupted(me))
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
    wait_for(thread, me, run ? NULL : op ? op->pool : thread->pool, op, lull, NULL);
}

void quiet_wait_or(struct thread *thread, struct cb *me, struct cb *_Atomic *waiter, const _Atomic bool *over)
{
    atomic_store_explicit(waiter, me, memory_order_seq_cst);
    if (!atomic_load_explicit(over, memory_order_seq_cst))
        wait_for(thread, me, NULL, NULL, LULL_DRY, over);
}

void quiet_wake(struct thread *thread, const struct cb *waiter)
{
    struct runtime *runtime = runtime_of(thread);
    struct batch batch;
    batch_init(&batch);
    spin_lock(&runtime->sub.quiet_lock, thread);
    for (struct link *link = runtime->quiet.next, *next; link != &runtime->quiet; link = next) {
        struct wait_node *node = CONTAINER(link, struct wait_node, link);
        next = link->next;
        if (node->waiter == waiter)
            claim(node, &batch);
    }
    spin_unlock(&runtime->sub.quiet_lock);
    batch_deliver(thread, &batch);
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
    enum strand_out_of_work what = runtime->options.out_of_work;
    if (what == STRAND_OUT_OF_WORK_AUTO && !runtime->sub.driver)
        return; /* it is so, unless somebody outside has acted on it */
    if (what != STRAND_OUT_OF_WORK_WAIT)
        atomic_fetch_or_explicit(&runtime->sub.minds_quiet, QUIET_VERDICT, memory_order_seq_cst);
}

bool quiet_has_strangers(struct runtime *runtime)
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

static bool is_told_to_end(struct runtime *runtime)
{
    return atomic_load_explicit(&runtime->told_to_end, memory_order_relaxed);
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

/* Strands that wait for each other are an error also where that is not all there is to it. Returns whether there are
 * any. */
static bool tell_ring(struct thread *thread, struct runtime *runtime, const char *moreover)
{
    char ring[sizeof runtime->deadlock], text[sizeof ring + 64];
    if (!runtime->reports->summarise_waits(thread, ring, sizeof ring))
        return false;
    snprintf(text, sizeof text, "%s%s", ring, moreover);
    log_text(runtime, text);
    return true;
}

/* While all still stand where they wait for each other. */
static void report(struct thread *thread, struct runtime *runtime, const char *headline)
{
    (void)runtime->reports->summarise_waits(thread, runtime->deadlock, sizeof runtime->deadlock);
    log_text(runtime, headline);
    runtime->reports->waits_to_log(thread);
    runtime->reports->dump_to_log(thread);
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
    bool stops = shutdown_has_begun(runtime);
    const char *why = stops ? shutdown_reason(runtime) : "it is out of work";
    (void)tell_ring(thread, runtime, stops ? ", while the run is shut down" : ", at the end of the run");
    struct member *root = quiet_cancel_root(runtime, why);
    if (!root)
        report(thread, runtime, "the run is out of work, but can't end");
    return root;
}

/* The run is out of work. Under quiet_lock. Returns the root, which has to be made runnable. */
static struct member *judge(struct thread *thread, struct runtime *runtime)
{
    enum strand_out_of_work what = runtime->options.out_of_work;
    struct member *root = NULL;
    bool ends = what == STRAND_OUT_OF_WORK_END || shutdown_has_begun(runtime);
    if (ends && !is_told_to_end(runtime))
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

/* Nothing in the run can go on, and no thread outside has acted on it so far. Whether something was logged of that. */
static bool tell_doubt(struct thread *thread, struct runtime *runtime, uint32_t asked)
{
    char all[sizeof runtime->deadlock], text[sizeof all + 320];
    if (asked == QUIET_ASKED_LONG &&
        tell_ring(thread, runtime, "; from outside that can only be ended by stopping the run"))
        return true;
    int threads = arch_thread_count();
    if (asked < (threads < 0 ? QUIET_ASKED_LONG : QUIET_ASKED_MOST))
        return false;
    (void)runtime->reports->summarise_waits(thread, all, sizeof all);
    snprintf(text, sizeof text,
             threads < 0
                 ? "nothing in the run can go on, unless a thread from outside acts on it; whether there is one is "
                   "not known, because /proc/self/task can't be read. If there is none, this is a deadlock: %s"
                 : "nothing in the run can go on, unless a thread from outside acts on it, as none has done so far. "
                   "If none will, this is a deadlock: %s",
             all);
    log_text(runtime, text);
    return true;
}

static enum lull lull_of(struct thread *thread, struct pool *pool, enum lull *here, enum lull *run)
{
    if (pool && pool != thread->pool)
        return LULL_NONE; /* its own seeker says so */
    if (pool)
        return *here != LULL_UNKNOWN ? *here : (*here = quiet_pool(thread, pool));
    return *run != LULL_UNKNOWN ? *run : (*run = quiet_run(thread));
}

static bool verdict_is_wanted(struct subprocess *sub)
{
    return atomic_load_explicit(&sub->minds_quiet, memory_order_seq_cst) & QUIET_VERDICT;
}

/* The run is dry, and nobody waits for that. Strangers are counted before the look that decides [Q5]. */
static bool is_out_of_work(struct thread *thread, struct runtime *runtime, bool *sure)
{
    if (runtime->options.out_of_work != STRAND_OUT_OF_WORK_AUTO)
        return true;
    *sure = !quiet_has_strangers(runtime);
    return *sure && verdict_is_wanted(&runtime->sub) && quiet_run(thread) == LULL_DRY;
}

/* Who waits for another's decision may be held for its report. */
static void lock_quiet(struct thread *thread)
{
    atomic_flag *lock = &thread->sub->quiet_lock;
    while (atomic_flag_test_and_set_explicit(lock, memory_order_acquire)) {
        if (atomic_load_explicit(&thread->hold, memory_order_relaxed))
            pool_stand_still(thread);
        driver_await(thread);
    }
    arch_note_acquire(lock);
}

bool quiet_comes(struct thread *thread, struct batch *batch, uint32_t asked)
{
    struct runtime *runtime = runtime_of(thread);
    struct subprocess *sub = &runtime->sub;
    enum lull here = LULL_UNKNOWN, run = LULL_UNKNOWN;
    bool sure = true;
    lock_quiet(thread);
    for (struct link *link = runtime->quiet.next, *next; link != &runtime->quiet; link = next) {
        struct wait_node *node = CONTAINER(link, struct wait_node, link);
        next = link->next;
        if ((int)lull_of(thread, node->value, &here, &run) >= node->result)
            claim(node, batch);
    }
    bool verdict = verdict_is_wanted(sub) && !batch->first && list_empty(&runtime->quiet);
    if (verdict && lull_of(thread, NULL, &here, &run) == LULL_DRY && is_out_of_work(thread, runtime, &sure))
        batch_add(batch, judge(thread, runtime));
    if (batch->first)
        quiet_stir(thread); /* [Q3] */
    spin_unlock(&sub->quiet_lock);
    if (!sure && !atomic_load_explicit(&runtime->doubt_told, memory_order_relaxed) &&
        tell_doubt(thread, runtime, asked))
        atomic_store_explicit(&runtime->doubt_told, true, memory_order_relaxed);
    return !sure;
}

strand_exception *quiet_deadlock(struct thread *thread, struct cb *root)
{
    struct runtime *runtime = runtime_of(thread);
    atomic_fetch_and_explicit(&root->word, ~(uint64_t)WORD_STUCK, memory_order_seq_cst);
    interrupt_lower(thread, root);
    return exception_new(&STRAND_DEADLOCK, "%s", runtime->deadlock);
}
