/*
 * The handles of pools, and the shared fibres of a pool. A pool's record and threads: src/sched/pool.h; opening and
 * closing: src/run. Page: docs/protocols/pools.md.
 */
#ifndef STRAND_STRAND_POOL_H
#define STRAND_STRAND_POOL_H

#include "core.h"

/* The record behind a strand_pool; pool->above of its pool. */
struct opened_pool {
    _Atomic uint64_t word; /* as of a control block, but changed atomically in every run: for strand_run_stop */
    void *link_[2];        /* the slab's */
    atomic_flag lock;      /* of the members below `scheduler` */
    struct pool *pool;     /* see pool_behind */
    struct owned owned;    /* not used for the run's first pool */
    void *site;            /* where it was opened */
    char name[32];
    int *cpus;
    const char *scheduler; /* its name, once the pool is closed */

    bool closing; /* a strand closes it */
    bool gone;    /* its threads have ended */
    bool closed;
    struct cancel_reason *cancel_reason; /* names the closing strand; set before `closing` */
    struct wait_node *closer;            /* the closing strand, while it waits for the threads */
    struct wait_node *waiters;           /* other strands that wait until the pool is closed */
    struct pool *home;                   /* the closer's */
    struct post post;                    /* from the last thread to the closer */
};
_Static_assert(sizeof(struct opened_pool) <= OBJECT_SIZE && offsetof(struct opened_pool, lock) == OBJECT_LOCK,
               "it lies in the slab of objects");

/* Makes the handle of the run's first pool; other pools get theirs when they are opened. Returns 0 or a negated errno
 * code. */
int pool_know(struct runtime *runtime);
/* Returns the handle of a pool that is open or closing, or {0} if the record has no pool at this moment. */
strand_pool pool_handle(const struct pool *pool);
/* Frees the handle of the run's first pool, at the end of the run. */
void pool_forget(struct runtime *runtime);
/* Returns the record of its handle, or NULL as above. The watchdog calls this even for a pool that has been closed,
 * which ThreadSanitizer would report. */
struct opened_pool *pool_above(const struct pool *pool);
/* Makes a handle that no thread finds yet. site: where the pool is opened. NULL if there is no memory. */
struct opened_pool *pool_handle_new(struct thread *thread, const char *name, void *site);
/* From here on the handle leads to the pool. */
void pool_handle_publish(struct thread *thread, struct opened_pool *op, struct pool *pool);
/* The pool is closed: its handle leads to subprocess.closed from here on. After the return no thread that found the
 * pool by the handle uses it, and the caller releases the pool's record. */
void pool_handle_leave(struct thread *thread, struct opened_pool *op);
/* After pool_handle_leave: retires the handle. */
void pool_handle_over(struct thread *thread, struct opened_pool *op);

/* Returns the name of the pool's scheduler, which may be the user's. Diagnostics only. */
const char *pool_scheduler_name(const struct pool *pool);

/* Returns the record behind a handle of this run, with a reference. Misuse if the handle is stale or not a pool's.
 */
struct opened_pool *pool_find(struct thread *thread, strand_pool handle, const char *function);
/* Returns the pool of a handle, to which the caller has a reference: its record, or subprocess.closed. */
static inline struct pool *pool_behind(const struct opened_pool *op)
{
    return plain_load(&op->pool, memory_order_acquire); /* [L5] */
}
/* Releases the reference. Afterwards the caller touches neither the pool nor its run: both may end. */
void pool_unref(struct opened_pool *op);

/* For threads that do not belong to the run: src/run/drive.c. */
struct opened_pool *pool_of_handle(strand_pool handle, const char *function);
uint64_t pool_serial(strand_pool handle);
const char *pool_made(const struct opened_pool *op, char *buffer, size_t size);

/* Called after a living strand was anchored to a scope whose owner is on another pool. If the strand's pool is closing,
 * the closer may have missed it [L2]: then this cancels it. The caller keeps both from ending. Returns the strand's
 * member if the caller has to make it runnable. */
struct member *pool_cancels_(struct thread *thread, struct cb *c);
static inline struct member *pool_cancels(struct thread *thread, const struct scope *scope, struct cb *c)
{
    struct pool *pool = c->member.fibre->pool;
    if (LIKELY(scope->block.owner->member.fibre->pool == pool))
        return NULL;
    if (thread->concurrent && !arch_membarrier_works)
        atomic_thread_fence(memory_order_seq_cst);                                     /* [L2] */
    bool open = atomic_load_explicit(&pool->state, memory_order_seq_cst) == POOL_OPEN; /* [L2] */
    return LIKELY(open) ? NULL : pool_cancels_(thread, c);
}

/* Returns one of the pool's common fibres, on which all its strands run if runtime.shares is set, for tests. The caller
 * is a strand of the pool, or has counted one in. Returns 0 or a negated errno code. */
int pool_common(struct thread *thread, struct pool *pool, struct shared_fibre **out);
void pool_end_common(struct thread *thread, struct pool *pool);

#endif
