/*
 * The handles of pools, and what strands share in a pool. A pool's record and threads: src/sched/pool.h; opening and
 * closing: src/run. Page: docs/protocols/pools.md.
 */
#ifndef STRAND_STRAND_POOL_H
#define STRAND_STRAND_POOL_H

#include "core.h"

/* What a strand_pool stands for; pool->above of its pool. */
struct opened_pool {
    _Atomic uint64_t word; /* as of a control block, but changed atomically in every run: for strand_run_stop */
    void *link_[2];        /* the slab's */
    atomic_flag lock;      /* of what is said below of closing */
    struct pool *pool;     /* see pool_behind */
    struct owned owned;    /* not of the run's first */
    void *site;            /* where it was opened */
    char name[32];
    int *cpus;
    const char *scheduler; /* its name, from when the pool is closed on */

    bool closing; /* somebody closes it */
    bool gone;    /* its threads are */
    bool closed;
    struct cancel_reason *cancel_reason; /* by whom; set before the pool is closing */
    struct wait_node *closer;            /* the closing strand, which waits for its threads */
    struct wait_node *waiters;           /* others who wait until that one has */
    struct pool *home;                   /* the closer's */
    struct post post;                    /* of the last thread, to the closer */
};
_Static_assert(sizeof(struct opened_pool) <= OBJECT_SIZE && offsetof(struct opened_pool, lock) == OBJECT_LOCK,
               "it lies in the slab of objects");

/* The handle of the run's first pool; the others get theirs when they are opened. Returns 0 or a negated errno code. */
int pool_know(struct runtime *runtime);
/* Of one that is open, or closing; {0}: it has ended, and serves another soon, or does not yet. */
strand_pool pool_handle(const struct pool *pool);
/* At the end of the run. */
void pool_forget(struct runtime *runtime);
/* What stands for it; NULL as above. The watchdog asks whatever has become of the pool, which TSan does not know to be
 * in order. */
struct opened_pool *pool_above(const struct pool *pool);
/* A handle that nobody finds yet; NULL: there is no memory. site: where the pool is opened. */
struct opened_pool *pool_handle_new(struct thread *thread, const char *name, void *site);
/* From here on the handle leads to the pool. */
void pool_handle_publish(struct thread *thread, struct opened_pool *op, struct pool *pool);
/* The pool is closed, and its handle leads to subprocess.closed from now on. Nobody that found the pool by the handle
 * uses it after the return; the caller lets its record go. */
void pool_handle_leave(struct thread *thread, struct opened_pool *op);
/* After that: the handle leads nowhere any more. */
void pool_handle_over(struct thread *thread, struct opened_pool *op);

/* The name of the pool's scheduler, also of one that the user has made. Diagnostics only. */
const char *pool_scheduler_name(const struct pool *pool);

/* For strand_attr.pool and attr.pin; {0}: no pool. The pool of this run, kept by a reference. Misuse if there is none.
 */
struct opened_pool *pool_find(struct thread *thread, strand_pool handle, const char *function);
/* The pool of a handle, while the caller has a reference: its record, or subprocess.closed. */
static inline struct pool *pool_behind(const struct opened_pool *op)
{
    return plain_load(&op->pool, memory_order_acquire); /* [L5] */
}
/* Releases the reference. The caller touches neither the pool nor its run after that: both may end. */
void pool_unref(struct opened_pool *op);

/* For threads that do not belong to the run: src/run/drive.c. */
struct opened_pool *pool_of_handle(strand_pool handle, const char *function);
uint64_t pool_serial(strand_pool handle);
const char *pool_made(const struct opened_pool *op, char *buffer, size_t size);

/* The strand, which lives, was just anchored to the scope: if that is of another pool's strand, and its pool is
 * closing, whoever does so may have missed it [L2]. Returns it if the caller has to make it runnable. By who keeps both
 * from ending. */
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

/* The fibres that all strands of a pool share when a run is told so for a test: one of them. By a strand of the pool,
 * or who has counted one in. Returns 0 or a negated errno code. */
int pool_common(struct thread *thread, struct pool *pool, struct shared_fibre **out);
void pool_end_common(struct thread *thread, struct pool *pool);

#endif
