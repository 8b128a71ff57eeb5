/*
 * Pools that are opened in scopes: their handles, opening, resizing, figures. Page: docs/protocols/pools.md.
 */
#include "../../include/strand/pool.h"

#include "pool.h"

#include "custom.h"
#include "exception.h"
#include "handle.h"
#include "misuse.h"
#include "run_options.h"
#include "scope.h"
#include "serve.h"

#include "../sched/service.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A field that the caller's header knows. */
#define ATTR(attr, field)                                                                                              \
    ((attr) && (attr)->size >= offsetof(strand_pool_attr, field) + sizeof((attr)->field) ? (attr)->field : 0)

ARCH_NOT_INSTRUMENTED struct opened_pool *pool_above(const struct pool *pool)
{
    return plain_load(&pool->above, memory_order_acquire);
}

/* ---- handles --------------------------------------------------------------------------------------------- */

static strand_pool handle_to(const struct opened_pool *op)
{
    uint64_t serial = word_serial(atomic_load_explicit(&op->word, memory_order_relaxed));
    return (strand_pool){{(uint64_t)(uintptr_t)op, serial | MARK_POOL}};
}

strand_pool pool_handle(const struct pool *pool)
{
    const struct opened_pool *op = pool_above(pool);
    return op ? handle_to(op) : (strand_pool){{0}};
}

const char *pool_made(const struct opened_pool *op, char *buffer, size_t size)
{
    char where[PLACE_WORDS];
    if (!op->site)
        snprintf(buffer, size, "the pool is the run's first one");
    else
        snprintf(buffer, size, "the pool '%s' was opened in %s", op->name, place_found(op->site, where, sizeof where));
    return buffer;
}

/* As long as its memory serves nobody else, it is known. */
static const char *made_stale_pool(const struct opened_pool *op, uint64_t serial, char *buffer, size_t size)
{
    bool known = word_was(atomic_load_explicit(&op->word, memory_order_relaxed), serial);
    return known ? pool_made(op, buffer, size) : "";
}

/* Nobody finds it any more. Who has, goes on for a few instructions; plain threads too, which know of no end of the
 * run. */
static void await_finders(struct thread *thread, struct opened_pool *op)
{
    uint64_t word = atomic_fetch_or_explicit(&op->word, WORD_DEAD, memory_order_acq_rel);
    while (word & WORD_PINS) {
        driver_await(thread);
        word = atomic_load_explicit(&op->word, memory_order_acquire);
    }
    atomic_store_explicit(&op->word, word_freed(word), memory_order_release);
}

void pool_handle_over(struct thread *thread, struct opened_pool *op)
{
    await_finders(thread, op);
    plain_store(&op->pool->above, NULL, memory_order_relaxed);
    pool_let_go(op->pool);
    note_release(op->note);
    free(op->cpus);
    arch_note_release(op);
    slab_put(&worker_of(thread)->objects, op);
}

struct opened_pool *pool_of_handle(strand_pool handle, const char *function)
{
    struct opened_pool *op = (struct opened_pool *)(uintptr_t)handle.bits[0];
    if (!arch_in_handles(op) || !(handle.bits[1] & MARK_POOL))
        MISUSE(function, "", "the handle is none of a pool");
    return op;
}

uint64_t pool_serial(strand_pool handle)
{
    return handle.bits[1] ^ MARK_POOL;
}

struct opened_pool *pool_find(struct thread *thread, strand_pool handle, const char *function)
{
    struct opened_pool *op = pool_of_handle(handle, function);
    uint64_t serial = pool_serial(handle);
    if (UNLIKELY(!slab_has(&runtime_of(thread)->objects, op)) &&
        word_serial(atomic_load_explicit(&op->word, memory_order_relaxed)) == serial)
        misuse_foreign(function, "pool");
    if (!pin_with_outsiders(thread, &op->word, serial)) /* strand_stop */
        MISUSE(function, made_stale_pool(op, serial, MADE_ROOM),
               "the pool is gone: its scope has been left. Open it in a scope that ends after its users");
    return op;
}

void pool_found(struct opened_pool *op)
{
    atomic_fetch_sub_explicit(&op->word, WORD_PIN, memory_order_acq_rel);
}

static struct opened_pool *make_handle(struct thread *thread, const char *name, void *site)
{
    struct opened_pool *op = driver_slab_get(thread, &worker_of(thread)->objects);
    if (!op)
        return NULL;
    arch_note_acquire(op);
    memset((char *)op + offsetof(struct opened_pool, pool), 0, sizeof *op - offsetof(struct opened_pool, pool));
    snprintf(op->name, sizeof op->name, "%s", name ? name : "pool");
    op->site = site;
    return op;
}

/* From here on it can be found. */
static void publish(struct thread *thread, struct opened_pool *op, struct pool *pool)
{
    op->pool = pool;
    plain_store(&pool->above, op, memory_order_release);
    atomic_store_explicit(&op->word, next_serial(worker_of(thread)) << WORD_SERIAL, memory_order_release);
}

int pool_know(struct runtime *runtime)
{
    struct thread *first = runtime->sub.pool.threads[0];
    struct opened_pool *op = make_handle(first, "first", NULL);
    if (!op)
        return -ENOMEM;
    publish(first, op, &runtime->sub.pool);
    return 0;
}

void pool_forget(struct runtime *runtime)
{
    struct opened_pool *op = runtime->sub.pool.above;
    struct thread *first = runtime->sub.pool.threads[0];
    if (!op)
        return;
    await_finders(first, op);
    slab_put(&worker_of(first)->objects, op);
}

/* ---- opening --------------------------------------------------------------------------------------------- */

/* What is wrong with the attributes is misuse: they are the program's text. */
static void take_plan(struct thread *thread, const strand_pool_attr *attr, struct pool_plan *plan)
{
    const char *name = ATTR(attr, scheduler);
    int64_t spin_us = ATTR(attr, spin_us);
    if (attr && (attr->size < offsetof(strand_pool_attr, threads) || attr->size > 4096))
        MISUSE("strand_pool_open", "", "strand_pool_attr.size is %zu, not sizeof(strand_pool_attr)", attr->size);
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
    plan->threads = run_options_thread_count(asked ? asked : usual, plan->scheduler, thread->driver != NULL);
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
        MISUSE("strand_pool_open", "", "strand_pool_attr.balance is %d, none of enum strand_balance", balance);
    plan->balance = (enum balance)balance;
}

/* Each of the CPUs can be had by this process. Returns 0 or a negated errno code. */
static int copy_cpus(struct thread *thread, const strand_pool_attr *attr, struct pool_plan *plan,
                     struct opened_pool *op)
{
    if (!plan->cpus_count)
        return 0;
    size_t size = (size_t)plan->cpus_count * sizeof *op->cpus;
    op->cpus = driver_malloc(thread, size);
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
    struct opened_pool *op = make_handle(thread, ATTR(attr, name), site);
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
    publish(thread, op, pool);
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
    strand_pool handle = handle_to(op);
    error = scope_own(thread, me, scope, &op->owned, "strand_pool_open");
    if (error) {
        pool_unmake(thread, op->pool);
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
    threads = run_options_thread_count(threads, op->pool->scheduler, thread->driver != NULL);
    if (threads < 1 || threads > THREADS_MOST)
        MISUSE("strand_pool_resize", "", "%d threads, not 1 to %d", threads, THREADS_MOST);
    if (op->pool->scheduler->alone && threads > 1)
        MISUSE("strand_pool_resize", pool_made(op, MADE_ROOM), "a pool with the scheduler '%s' has one thread",
               op->pool->scheduler->name);
    int error = pool_resize(thread, op->pool, threads);
    pool_found(op);
    return error;
}

static void ask(struct thread *thread, struct opened_pool *op, struct strand_pool_info *info)
{
    struct pool *pool = op->pool;
    memcpy(info->name, op->name, sizeof info->name);
    info->scheduler = scheduler_name(pool);
    info->threads = pool_threads(pool);
    info->wanted = atomic_load_explicit(&pool->size, memory_order_relaxed);
    info->strands = pool_live(pool);
    struct pool_service service = pool_service(thread, pool);
    info->unequal = service.unequal;
    info->wait_ns = service.wait_ns;
}

void strand_pool_info_get(strand_pool handle, struct strand_pool_info *out)
{
    struct thread *thread = must_be_strand("strand_pool_info_get");
    must_be_there(out, "place for the figures", "strand_pool_info_get");
    size_t size = out->size;
    if (size < sizeof size || size > 4096)
        MISUSE("strand_pool_info_get", "", "strand_pool_info.size is %zu, not sizeof(struct strand_pool_info)", size);
    struct opened_pool *op = pool_find(thread, handle, "strand_pool_info_get");
    struct strand_pool_info info = {.size = size};
    ask(thread, op, &info);
    pool_found(op);
    memcpy(out, &info, size < sizeof info ? size : sizeof info);
}

int strand_thread_index(void)
{
    return must_be_strand("strand_thread_index")->index;
}

/* ---- fibres that all share ------------------------------------------------------------------------------- */

/* The first who spawns onto the pool opens them. */
int pool_common(struct thread *thread, struct pool *pool, struct opened **out)
{
    int error = 0;
    spin_lock(&pool->resizing, thread);
    for (int i = 0; !error && i < COMMON_FIBRES; i++)
        if (!pool->common[i])
            error = opened_open(thread, pool, thread->usual, &pool->common[i]) ? -ENOMEM : 0;
    spin_unlock(&pool->resizing);
    if (!error)
        *out = pool->common[plain_fetch_add(&pool->common_turn, 1, memory_order_relaxed) % COMMON_FIBRES];
    return error;
}

void pool_end_common(struct thread *thread, struct pool *pool)
{
    for (int i = 0; i < COMMON_FIBRES; i++) {
        if (pool->common[i])
            opened_release(thread, pool->common[i], OPENED_KNOWN);
        pool->common[i] = NULL;
    }
}
