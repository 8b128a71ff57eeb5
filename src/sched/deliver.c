/*
 * Delivery of runnable strands to the thread or pool that runs them. Model of what is sent to a closed pool:
 * tests/models/closing.pml.
 */
#include "deliver.h"

#include "inbox.h"
#include "pinned.h"
#include "thread.h"

void pool_send(struct thread *thread, struct fibre *fibre)
{
    struct pool *pool = fibre->pool;
    pool->scheduler->post(pool, thread, fibre);
    if (UNLIKELY(!arch_membarrier_works)) /* as pool_fence: some schedulers' posts are no full barrier [K1] */
        atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&pool->kick, memory_order_seq_cst)) /* [K1] */
        pool_kick_(thread, pool);
}

void pool_send_pinned(struct thread *by, struct fibre *fibre)
{
    struct thread *home = fibre->home; /* read first: the fibre may be gone as soon as it is runnable */
    if (pinned_ready(by, fibre))
        pool_rouse(by, home);
}

void pool_deliver(struct thread *thread, struct member *member)
{
    if (LIKELY(!fibre_is_shared(member->fibre)) || shared_mail_up(thread, member))
        pool_deliver_fibre(thread, member->fibre);
}

void pool_deliver_fibre(struct thread *thread, struct fibre *fibre)
{
    struct thread *home = fibre->home;
    uintptr_t context = (uintptr_t)atomic_load_explicit(&fibre->context, memory_order_relaxed); /* may be 0 */
    for (uintptr_t i = 0; i < 6; i++)
        __builtin_prefetch((const void *)(context + i * 64), 1);
    if (UNLIKELY(fibre_is_pinned(fibre))) {
        pool_send_pinned(thread, fibre);
        return;
    }
    if (UNLIKELY(fibre->pool != thread->pool)) {
        pool_send(thread, fibre);
        return;
    }
    /* Weak affinity: a busy thread that ran the fibre last gets it back. A racy load of its state suffices, since work
     * is found in any inbox. */
    bool elsewhere = home && home != thread && home->pool == thread->pool && thread->stealing &&
                     plain_load(&home->state, memory_order_relaxed) == THREAD_BUSY;
    if (!elsewhere) {
        thread_push(thread, fibre, PUSH_OUTSIDE);
        return;
    }
    /* This needs no wake-up: the caller has the role, and checks for work that is left when it gives the role up. */
    pool_post_fibre(thread->pool, thread, home, fibre);
}
