/*
 * Shutting a run down. The protocol block is in shutdown.h.
 */
#include "shutdown.h"

#include "ending.h"

#include "../sched/pool.h"
#include "../sched/timers.h"
#include "../strand/handle.h"
#include "../strand/pool.h"
#include "../strand/wait.h"

#include <errno.h>
#include <string.h>

static struct member *arrive(struct post *post);

void shutdown_open(struct run *run)
{
    struct shutdown *shutdown = &run->shutdown;
    list_init(&shutdown->waiters);
    atomic_store_explicit(&shutdown->by, ARCH_FOREVER, memory_order_relaxed);
    timer_init(&shutdown->timer, TIMER_SHUTDOWN, 0);
    shutdown->post.run = arrive;
}

const char *shutdown_reason(struct run *run)
{
    struct shutdown *shutdown = &run->shutdown;
    bool said = atomic_load_explicit(&shutdown->asked, memory_order_acquire) == ASKED_YES; /* [PB1] */
    return said && shutdown->why[0] ? shutdown->why : "it is shut down";
}

/* ---- asking ---------------------------------------------------------------------------------------------- */

/* Stores the reason of the first caller that asks. */
static void say_why(struct shutdown *shutdown, const char *why)
{
    uint32_t no = ASKED_NO;
    if (!atomic_compare_exchange_strong_explicit(&shutdown->asked, &no, ASKED_BEING, memory_order_relaxed,
                                                 memory_order_relaxed))
        return;
    if (why)
        memcpy(shutdown->why, why, strnlen(why, sizeof shutdown->why - 1));
    atomic_store_explicit(&shutdown->asked, ASKED_YES, memory_order_release); /* [PB1] */
}

/* Lowers the instant of the root's end, and posts to the first pool. */
static void ask(struct run *run, int64_t drain_ns, const char *why)
{
    struct shutdown *shutdown = &run->shutdown;
    int64_t by, least = atomic_load_explicit(&shutdown->by, memory_order_relaxed);
    if (__builtin_add_overflow(platform_now_unknown(), drain_ns > 0 ? drain_ns : 0, &by))
        by = ARCH_FOREVER;
    say_why(shutdown, why);
    while (by < least && !atomic_compare_exchange_weak_explicit(&shutdown->by, &least, by, memory_order_seq_cst,
                                                                memory_order_relaxed)) /* [SD1] */
        ;
    if (!atomic_exchange_explicit(&shutdown->posted, 1, memory_order_seq_cst)) { /* [SD1] */
        arch_san_release(&shutdown->post);
        pool_post(&run->runtime.sub.pool, &shutdown->post);
    }
}

/* Returns a handle with the bits of the first pool's: the record of that pool ends with the run. */
strand_run_handle strand_run_self(void)
{
    strand_pool first = pool_handle(&must_be_strand("strand_run_self")->sub->pool);
    return (strand_run_handle){{first.bits[0], first.bits[1]}};
}

int strand_run_stop(strand_run_handle handle, int64_t drain_ns, const char *why)
{
    struct opened_pool *op = (struct opened_pool *)(uintptr_t)handle.bits[0];
    if (!arch_in_handles(op) || !(handle.bits[1] & MARK_POOL))
        return -ESHUTDOWN; /* a signal handler that runs before there is a handle must not end the program */
    int error = handle_ref_take_at_once(&op->word, pool_serial((strand_pool){{handle.bits[0], handle.bits[1]}}));
    if (error)
        return error == -EAGAIN ? error : -ESHUTDOWN;
    struct run *run = (struct run *)pool_behind(op)->sub;
    bool left = subprocess_is_left(&run->runtime.sub);
    if (!left)
        ask(run, drain_ns, why);
    pool_unref(op); /* [SD3] */
    return left ? -ESHUTDOWN : 0;
}

/* ---- the shut-down itself, on a thread of the first pool that has the role of its seeker ---------------------- */

/* Begins the shut-down, once, and wakes the strands that wait for it. */
static void begin(struct thread *thread, struct run *run)
{
    struct shutdown *shutdown = &run->shutdown;
    struct batch batch;
    struct member *member;
    struct link *link;
    if (shutdown_has_begun(run))
        return;
    batch_init(&batch);
    ending_while_stopping(&run->runtime);
    spin_lock(&shutdown->lock, thread);
    atomic_store_explicit(&shutdown->begun, true, memory_order_release); /* [SD5] */
    while ((link = list_pop_front(&shutdown->waiters))) {
        struct wait_node *node = CONTAINER(link, struct wait_node, link);
        member = &node->waiter->member;
        if (wait_claim(node, true))
            batch_add(&batch, member);
    }
    spin_unlock(&shutdown->lock);
    while ((member = batch_take(&batch)))
        pool_deliver(thread, member);
}

/* Starts the timer for the root's end. A run that waits for this timer alone is out of work. Returns false if there is
 * no memory for it. */
static bool start_timer(struct thread *thread, struct run *run, int64_t by)
{
    struct shutdown *shutdown = &run->shutdown;
    struct pool *first = &run->runtime.sub.pool;
    timer_excuse(thread, first, &shutdown->timer, false);
    timer_stop(thread, first, &shutdown->timer);
    int error = timer_start(thread, first, &shutdown->timer, by);
    timer_excuse(thread, first, &shutdown->timer, true);
    return !error;
}

static struct member *arrive(struct post *post)
{
    struct shutdown *shutdown = CONTAINER(post, struct shutdown, post);
    struct run *run = CONTAINER(shutdown, struct run, shutdown);
    struct thread *thread = thread_self();
    arch_san_acquire(post);
    atomic_store_explicit(&shutdown->posted, 0, memory_order_seq_cst); /* [SD1] */
    if (!thread || run_of(thread) != run || pool_stops(&run->runtime.sub.pool))
        return NULL; /* the run has ended by itself */
    begin(thread, run);
    int64_t by = atomic_load_explicit(&shutdown->by, memory_order_seq_cst); /* [SD1] */
    if (by == ARCH_FOREVER || (by > platform_now(&run->runtime.sub) && start_timer(thread, run, by)))
        return NULL;
    return ending_cancel_root(&run->runtime, shutdown_reason(run));
}

struct member *shutdown_comes(struct timer *timer)
{
    struct shutdown *shutdown = CONTAINER(timer, struct shutdown, timer);
    struct run *run = CONTAINER(shutdown, struct run, shutdown);
    return ending_cancel_root(&run->runtime, shutdown_reason(run));
}
