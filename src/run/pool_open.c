/*
 * Pools that are opened in scopes: opening, resizing, figures. Their handles: src/strand/pool.h. Page:
 * docs/protocols/pools.md.
 */
#include "../../include/strand/pool.h"

#include "pool_close.h"
#include "run_options.h"
#include "user_scheduler.h"

#include "../sched/balance.h"
#include "../sched/closing.h"
#include "../sched/pool.h"
#include "../sched/records.h"
#include "../sched/resize.h"
#include "../strand/misuse.h"
#include "../strand/pool.h"
#include "../strand/scope.h"
#include "../strand/sized.h"
#include "../strand/throw.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The value of a field, or 0 if the caller's header does not have it. */
#define ATTR(attr, field)                                                                                              \
    ((attr) && (attr)->size >= offsetof(strand_pool_attr, field) + sizeof((attr)->field) ? (attr)->field : 0)

/* ---- opening --------------------------------------------------------------------------------------------- */

/* Makes a plan from the attributes. Invalid ones are misuse: they are part of the program's text. */
static void take_plan(struct thread *thread, const strand_pool_attr *attr, struct pool_plan *plan)
{
    const char *name = ATTR(attr, scheduler);
    int64_t spin_us = ATTR(attr, spin_us);
    if (attr)
        must_have_size(attr->size, offsetof(strand_pool_attr, threads), "strand_pool_attr", "strand_pool_open");
    char what[128];
    plan->custom = ATTR(attr, custom);
    plan->scheduler = scheduler_for(name, plan->custom, "strand_pool_attr", what, sizeof what);
    if (!plan->scheduler)
        MISUSE("strand_pool_open", "", "%s", what);
    plan->cpus_count = ATTR(attr, cpus) ? ATTR(attr, cpus_count) : 0;
    if (ATTR(attr, cpus) && (plan->cpus_count < 1 || plan->cpus_count > CPUS_MOST))
        MISUSE("strand_pool_open", "", "strand_pool_attr.cpus_count is %d, not 1 to %d", plan->cpus_count, CPUS_MOST);
    int asked = ATTR(attr, threads),
        usual = plan->cpus_count && !plan->scheduler->alone ? threads_for(plan->cpus_count) : STRAND_THREADS_ALLOWED;
    plan->threads = run_options_thread_count(asked ? asked : usual, plan->scheduler, thread->platform != NULL);
    if (plan->threads < 1 || plan->threads > THREADS_MOST)
        MISUSE("strand_pool_open", "", "strand_pool_attr.threads is %d, not 1 to %d", plan->threads, THREADS_MOST);
    if (plan->scheduler->alone && plan->threads > 1)
        MISUSE("strand_pool_open", "", "strand_pool_attr.threads is %d; a pool with the scheduler '%s' has one",
               plan->threads, plan->scheduler->name);
    if (spin_us < 0)
        MISUSE("strand_pool_open", "", "strand_pool_attr.spin_us is %lld", (long long)spin_us);
    plan->spin_ns = (spin_us ? spin_us : POOL_SPIN_US) * STRAND_US;
    int balance = (int)ATTR(attr, balance);
    if (!is_balance(balance))
        MISUSE("strand_pool_open", "", "strand_pool_attr.balance is %d, not one of enum strand_balance", balance);
    plan->balance = (enum balance)balance;
}

/* Copies the CPUs into the plan, and checks that this process may use each. Returns 0 or a negated errno code. */
static int copy_cpus(struct thread *thread, const strand_pool_attr *attr, struct pool_plan *plan,
                     struct opened_pool *op)
{
    if (!plan->cpus_count)
        return 0;
    size_t size = (size_t)plan->cpus_count * sizeof *op->cpus;
    op->cpus = platform_malloc(thread, size);
    if (!op->cpus)
        return -ENOMEM;
    memcpy(op->cpus, attr->cpus, size);
    plan->cpus = op->cpus;
    return run_options_refused_cpu(op->cpus, plan->cpus_count) < 0 ? 0 : -EINVAL;
}

static int open_pool(struct thread *thread, const strand_pool_attr *attr, void *site, struct opened_pool **out)
{
    struct pool_plan plan = {0};
    take_plan(thread, attr, &plan);
    struct opened_pool *op = pool_handle_new(thread, ATTR(attr, name), site);
    if (!op)
        return -ENOMEM;
    struct pool *pool;
    int error = copy_cpus(thread, attr, &plan, op);
    if (!error)
        error = pool_make(thread, &plan, &pool);
    if (error) {
        free(op->cpus);
        slab_put(&worker_of(thread)->objects, op);
        return error;
    }
    op->owned.release = pool_end_with_scope;
    pool_handle_publish(thread, op, pool);
    *out = op;
    return 0;
}

strand_pool strand_pool_open(strand_scope scope, const strand_pool_attr *attr)
{
    struct thread *thread = must_be_strand("strand_pool_open");
    struct cb *me = current_of(thread);
    struct opened_pool *op;
    int error = open_pool(thread, attr, __builtin_return_address(0), &op);
    if (error)
        throw_system(me, error, error == -EINVAL ? "a pool with a CPU that this process may not use" : "a pool");
    strand_pool handle = pool_handle(op->pool);
    error = scope_own(thread, me, scope, &op->owned, "strand_pool_open");
    if (error) {
        struct pool *pool = op->pool;
        pool_unmake(thread, pool);
        pool_handle_leave(thread, op);
        pool_record_unref(thread, pool);
        pool_handle_over(thread, op);
        throw_system(me, error, "a pool of an open scope that has been left");
    }
    return handle;
}

strand_pool strand_pool_self(void)
{
    return pool_handle(must_be_strand("strand_pool_self")->pool);
}

/* ---- resizing, and figures ------------------------------------------------------------------------------- */

int strand_pool_resize(strand_pool handle, int threads)
{
    struct thread *thread = must_be_strand("strand_pool_resize");
    struct opened_pool *op = pool_find(thread, handle, "strand_pool_resize");
    struct pool *pool = pool_behind(op);
    threads = run_options_thread_count(threads, pool->scheduler, thread->platform != NULL);
    if (threads < 1 || threads > THREADS_MOST)
        MISUSE("strand_pool_resize", "", "%d threads, not 1 to %d", threads, THREADS_MOST);
    if (pool->scheduler->alone && threads > 1)
        MISUSE("strand_pool_resize", pool_made(op, MADE_ROOM), "a pool with the scheduler '%s' has one thread",
               pool->scheduler->name);
    int error = pool_resize(thread, pool, threads);
    pool_unref(op);
    return error;
}

static void ask(struct thread *thread, struct opened_pool *op, strand_pool_info *info)
{
    struct pool *pool = pool_behind(op);
    memcpy(info->name, op->name, sizeof info->name);
    info->scheduler = pool == &thread->sub->closed ? op->scheduler : pool_scheduler_name(pool);
    info->threads = pool_threads(pool);
    info->wanted = atomic_load_explicit(&pool->size, memory_order_relaxed);
    info->strands = pool_live(pool);
    struct balance_figures figures = balance_figures_of(thread, pool);
    info->unequal = figures.unequal;
    info->wait_ns = figures.wait_ns;
}

void strand_pool_info_get(strand_pool handle, strand_pool_info *out)
{
    struct thread *thread = must_be_strand("strand_pool_info_get");
    must_be_there(out, "buffer for the figures", "strand_pool_info_get");
    must_have_size(out->size, sizeof out->size, "strand_pool_info", "strand_pool_info_get");
    struct opened_pool *op = pool_find(thread, handle, "strand_pool_info_get");
    strand_pool_info info = {0};
    ask(thread, op, &info);
    pool_unref(op);
    sized_give(out, out->size, &info, sizeof info);
}

int strand_thread_index(void)
{
    return must_be_strand("strand_thread_index")->index;
}
