/*
 * Asking the loader for the objects of the process, beside forks [UC3]: the protocol block is in unwind_cached.c.
 * Threads count themselves in. A fork refuses new ones and waits for those inside, but not for its own thread, which it
 * may have interrupted by a signal.
 */
#include "state.h"

/* arch_state.loader_users is twice the number of threads inside, plus FORKING. arch_loader_inside is what the calling
 * thread has added. */
enum { FORKING = 1, USER = 2 };

bool arch_loader_enter(void)
{
    arch_loader_inside += USER; /* first: a handler that forks in between waits for no more than that */
    uint32_t users = atomic_fetch_add_explicit(&arch_state.loader_users, USER, memory_order_acq_rel); /* [UC3] */
    if (LIKELY(!(users & FORKING)))
        return true;
    arch_loader_leave();
    return false;
}

void arch_loader_leave(void)
{
    atomic_fetch_sub_explicit(&arch_state.loader_users, USER, memory_order_acq_rel); /* [UC3] */
    arch_loader_inside -= USER;
}

void arch_loader_before_fork(void)
{
    _Atomic uint32_t *users = &arch_state.loader_users;
    atomic_fetch_or_explicit(users, FORKING, memory_order_acq_rel);                            /* [UC3] */
    while (atomic_load_explicit(users, memory_order_acquire) > (arch_loader_inside | FORKING)) /* [UC3] */
        arch_thread_yield();
}

void arch_loader_after_fork(void)
{
    atomic_fetch_and_explicit(&arch_state.loader_users, ~(uint32_t)FORKING, memory_order_acq_rel); /* [UC3] */
}
