/*
 * Use of the loader beside forks. dl_iterate_phdr takes a lock of the loader that fork does not: a child that was
 * forked while another thread held it finds it taken for ever. (fork frees the other lock of the loader, which dladdr
 * takes, in the child.)
 *
 * PARTIES   threads that throw, take traces or look up names; threads that fork.
 * STATE     loader_users: twice the number of threads inside, plus FORKING. Two thread-local variables:
 *           arch_loader_inside is what the thread has added itself, or is about to add; arch_loader_forks is true
 *           while the thread forks.
 * OWNERSHIP a thread that forks holds the process lock, so there is one at a time; it alone sets and clears FORKING.
 * PROTOCOL  a thread counts itself in, unless another one forks. A throw then does without the loader; a trace of
 *           another context, or a name, uses it uncounted: the caller may hold what the fork waits for. A fork sets
 *           FORKING and waits until no other thread is inside. It does not wait for its own thread's count: fork may
 *           run in a signal handler that interrupted a call of the loader.
 * INVARIANTS [LD1] while FORKING is set, no other thread counts itself in. So when a fork has waited, loader_users is
 *           FORKING and what its own thread has added, and is right in the child, which has no other threads.
 * ORDERING  a thread's leaving (release) happens before the end of the wait that sees it (acquire), and a fork's end
 *           (release) before the next counting-in (acquire) [LD1]. Counting in is also a release, which keeps the
 *           increment of arch_loader_inside before it; counting out is also an acquire, which keeps the decrement after
 *           it. So a signal handler never finds arch_loader_inside below its thread's share of loader_users.
 * PROGRESS  no thread waits for a fork. A fork waits for calls that began before it, and for WAIT_MOST at most.
 * NOT DONE  counting in by an addition, taken back where FORKING was set: a fork between the two leaves the child a
 *           user that never leaves. Counts that are right for a handler that interrupts a thread between its two
 *           changes, and forks, while another thread is inside: that fork does not wait for the other thread, and its
 *           child's own fork waits for WAIT_MOST.
 * TESTED BY tests/spec/fork.c
 */
#include "state.h"

enum { FORKING = 1, USER = 2 };
#define WAIT_MOST INT64_C(1000000000) /* ns */

bool arch_loader_enter(void)
{
    _Atomic uint32_t *users = &arch_state.loader_users;
    uint32_t seen = atomic_load_explicit(users, memory_order_relaxed);
    arch_loader_inside += USER;
    while (LIKELY(!(seen & FORKING) || arch_loader_forks)) {
        if (LIKELY(atomic_compare_exchange_weak_explicit(users, &seen, seen + USER, memory_order_acq_rel,
                                                         memory_order_relaxed))) /* [LD1] */
            return true;
    }
    arch_loader_inside -= USER;
    return false;
}

void arch_loader_leave(void)
{
    atomic_fetch_sub_explicit(&arch_state.loader_users, USER, memory_order_acq_rel); /* [LD1] */
    arch_loader_inside -= USER;
}

void arch_loader_before_fork(void)
{
    _Atomic uint32_t *users = &arch_state.loader_users;
    int64_t until = arch_clock_ns() + WAIT_MOST;
    arch_loader_forks = true;
    atomic_signal_fence(memory_order_seq_cst);                      /* no handler sees FORKING alone [LD1] */
    atomic_fetch_or_explicit(users, FORKING, memory_order_relaxed); /* [LD1] */
    while (atomic_load_explicit(users, memory_order_acquire) > (arch_loader_inside | FORKING) && /* [LD1] */
           arch_clock_ns() < until)
        arch_thread_yield();
}

void arch_loader_after_fork(void)
{
    atomic_fetch_and_explicit(&arch_state.loader_users, ~(uint32_t)FORKING, memory_order_release); /* [LD1] */
    atomic_signal_fence(memory_order_seq_cst);                                                     /* [LD1] */
    arch_loader_forks = false;
}

void arch_loader_lose(void)
{
    atomic_fetch_or_explicit(&arch_state.loader_users, FORKING, memory_order_relaxed); /* [LD1] */
}
