/*
 * The handles of pools, and the shared fibres of a pool. Page: docs/protocols/pools.md.
 */
#include "../../include/strand/scheduler.h"

#include "pool.h"

#include "cancel.h"
#include "cancel_reason.h"
#include "exception.h"
#include "handle.h"
#include "misuse.h"
#include "print.h"

#include "../sched/hold.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ARCH_NOT_INSTRUMENTED struct opened_pool *pool_above(const struct pool *pool)
{
    return plain_load(&pool->above, memory_order_acquire); /* [PB1] */
}

const char *pool_scheduler_name(const struct pool *pool)
{
    return pool->custom ? ((const strand_scheduler *)pool->custom)->name : pool->scheduler->name;
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
    char where[LOCATION_WORDS];
    if (!op->site)
        snprintf(buffer, size, "the pool is the run's first one");
    else
        snprintf(buffer, size, "the pool '%s' was opened in %s", op->name,
                 print_location_line(op->site, where, sizeof where));
    return buffer;
}

static const char *made(const void *op, char *buffer, size_t size)
{
    return pool_made(op, buffer, size);
}

/* strand_run_stop, on any thread, takes references too. */
static const struct handle_noun pool_noun = {"pool", MARK_POOL, offsetof(struct opened_pool, word), true, made};

/* Sets bits of the handle's word, or none, and waits until there are no references: a few instructions, or an
 * inspection of the pool. Plain threads may have references too, and do not know when the run ends. Returns the word
 * without references. */
static uint64_t await_finders(struct thread *thread, struct opened_pool *op, uint64_t bits)
{
    uint64_t word = atomic_fetch_or_explicit(&op->word, bits, memory_order_acq_rel); /* [HN1] [L5] */
    while (word & WORD_REFS) {
        if (atomic_load_explicit(&thread->hold.asked, memory_order_relaxed))
            pool_stand_still(thread); /* for an inspection by the holder of a reference */
        platform_await(thread);
        word = atomic_load_explicit(&op->word, memory_order_acquire); /* [HN1] */
    }
    return word;
}

static void retire(struct thread *thread, struct opened_pool *op)
{
    uint64_t word = await_finders(thread, op, WORD_DEAD);
    atomic_store_explicit(&op->word, word_freed(word), memory_order_release); /* [HN1] */
}

void pool_handle_leave(struct thread *thread, struct opened_pool *op)
{
    plain_store(&op->pool->above, NULL, memory_order_relaxed);
    op->scheduler = op->pool->scheduler->name;
    plain_store(&op->pool, &thread->sub->closed, memory_order_release); /* [L5] */
    (void)await_finders(thread, op, 0);
    free(op->cpus);
}

void pool_handle_over(struct thread *thread, struct opened_pool *op)
{
    retire(thread, op);
    cancel_reason_release(op->cancel_reason);
    arch_san_release(op);
    slab_put(&worker_of(thread)->objects, op);
}

struct opened_pool *pool_of_handle(strand_pool handle, const char *function)
{
    return handle_object(&pool_noun, handle.bits, function);
}

uint64_t pool_serial(strand_pool handle)
{
    return handle.bits[1] ^ MARK_POOL;
}

struct opened_pool *pool_find(struct thread *thread, strand_pool handle, const char *function)
{
    return handle_ref_object(thread, &pool_noun, handle.bits, function);
}

void pool_unref(struct opened_pool *op)
{
    atomic_fetch_sub_explicit(&op->word, WORD_REF, memory_order_acq_rel); /* [HN1] */
}

struct opened_pool *pool_handle_new(struct thread *thread, const char *name, void *site)
{
    struct opened_pool *op = platform_slab_get(thread, &worker_of(thread)->objects);
    if (!op)
        return NULL;
    arch_san_acquire(op);
    memset((char *)op + offsetof(struct opened_pool, pool), 0, sizeof *op - offsetof(struct opened_pool, pool));
    snprintf(op->name, sizeof op->name, "%s", name ? name : "pool");
    op->site = site;
    return op;
}

void pool_handle_publish(struct thread *thread, struct opened_pool *op, struct pool *pool)
{
    op->pool = pool;
    plain_store(&pool->above, op, memory_order_release);                                                   /* [PB1] */
    atomic_store_explicit(&op->word, next_serial(worker_of(thread)) << WORD_SERIAL, memory_order_release); /* [HN2] */
}

int pool_know(struct runtime *runtime)
{
    struct thread *first = runtime->sub.pool.threads[0];
    struct opened_pool *op = pool_handle_new(first, "first", NULL);
    if (!op)
        return -ENOMEM;
    pool_handle_publish(first, op, &runtime->sub.pool);
    return 0;
}

void pool_forget(struct runtime *runtime)
{
    struct opened_pool *op = runtime->sub.pool.above;
    struct thread *first = runtime->sub.pool.threads[0];
    if (!op)
        return;
    retire(first, op);
    slab_put(&worker_of(first)->objects, op);
}

/* ---- a pool that is closing ------------------------------------------------------------------------------- */

struct member *pool_cancels_(struct thread *thread, struct cb *c)
{
    struct pool *pool = c->member.fibre->pool;
    arch_san_acquire(&pool->gone);
    return cancel_strand(thread, c, pool_above(pool)->cancel_reason, false);
}

/* ---- the common fibres ------------------------------------------------------------------------------- */

/* The first strand that spawns onto the pool opens them. */
int pool_common(struct thread *thread, struct pool *pool, struct shared_fibre **out)
{
    int error = 0;
    spin_lock(&pool->resizing, thread);
    for (int i = 0; !error && i < COMMON_FIBRES; i++)
        if (!pool->common[i])
            error = shared_fibre_open(thread, pool, thread->usual, &pool->common[i]) ? -ENOMEM : 0;
    spin_unlock(&pool->resizing);
    if (!error)
        *out = pool->common[plain_fetch_add(&pool->next_common, 1, memory_order_relaxed) % COMMON_FIBRES];
    return error;
}

void pool_end_common(struct thread *thread, struct pool *pool)
{
    for (int i = 0; i < COMMON_FIBRES; i++) {
        if (pool->common[i])
            shared_fibre_release(thread, pool->common[i], SHARED_KNOWN);
        pool->common[i] = NULL;
    }
}
