/*
 * Holding the threads of a sub-process still. Page: docs/protocols/dump.md.
 *
 * PARTIES   the holder, one at a time; the other threads of the sub-process; threads that start further ones.
 * STATE     thread.hold.asked: the thread has to stand still. thread.hold.state: HOLD_STOPPED, it does; HOLD_PARKED, it
 *           sleeps, has not begun, or has ended; 0, it moves. subprocess.holding: threads are being held.
 * INVARIANTS [HD1] a thread that was found held does not move until it is released. [HD2] a thread that begins while
 *           others are held stands still first, and no thread stays held after the release.
 * ORDERING  seq_cst. The holder stores `asked`, then loads `state`; a thread that begins to move stores `state`, then
 *           loads `asked`. One of them sees the other [HD1]. The holder stores holding, passes a fence, and goes
 *           through the records that `count` includes. A thread that starts another, or makes a pool that a plain
 *           thread will drive, has the record counted, passes a fence, loads holding, and makes the new thread's
 *           `asked` agree with it, until it finds that they agree [HD2].
 * TESTED BY tests/models/hold.pml, tests/models/watchdog.pml (how threads begin to move), tests/spec/dump.c.
 */
#include "hold.h"

#include "platform.h"
#include "records.h"

void pool_stand_still(struct thread *thread)
{
    /* HOLD_PARKED if this runs in a signal handler on a sleeping thread. */
    uint32_t before = atomic_load_explicit(&thread->hold.state, memory_order_relaxed);
    thread->hold.count = 0;
    thread->hold.at = __builtin_frame_address(0);
    if (thread->current)
        thread->hold.count = arch_trace(thread->hold.ips, sizeof thread->hold.ips / sizeof *thread->hold.ips);
    arch_san_release(thread->sub);
    while (atomic_load_explicit(&thread->hold.asked, memory_order_seq_cst)) {           /* [HD1] */
        atomic_store_explicit(&thread->hold.state, HOLD_STOPPED, memory_order_seq_cst); /* [HD1] */
        do {
            thread_must_not_be_left(thread);
            if (thread->platform)
                thread->platform->relax(thread);
            else
                arch_futex_wait(&thread->hold.asked, 1, ARCH_FOREVER);
        } while (atomic_load_explicit(&thread->hold.asked, memory_order_seq_cst)); /* [HD1] a spurious wake-up */
        atomic_store_explicit(&thread->hold.state, before, memory_order_seq_cst);  /* [HD1] */
    }
    arch_san_acquire(&thread->sub->pool);
}

void pool_mark_parked(struct thread *thread)
{
    atomic_store_explicit(&thread->hold.state, HOLD_PARKED, memory_order_seq_cst); /* [HD1] */
}

void pool_move(struct thread *thread)
{
    struct subprocess *sub = thread->sub;
    atomic_store_explicit(&thread->hold.state, 0, memory_order_seq_cst);    /* [HD1] [WD1] */
    if (UNLIKELY(atomic_load_explicit(&sub->drowsy, memory_order_seq_cst))) /* [WD1] */
        sub->ops->moved(sub);
    if (UNLIKELY(atomic_load_explicit(&thread->hold.asked, memory_order_seq_cst))) /* [HD1] */
        pool_stand_still(thread);
}

static bool is_held(struct thread *thread)
{
    return atomic_load_explicit(&thread->hold.state, memory_order_seq_cst) != 0; /* [HD1] */
}

int pool_hold(struct thread *thread, struct subprocess *sub, int64_t deadline)
{
    int loose = 0;
    atomic_store_explicit(&sub->holding, 1, memory_order_seq_cst); /* [HD2] */
    atomic_thread_fence(memory_order_seq_cst);                     /* [HD2] */
    for (struct thread *other = thread_first(sub); other; other = thread_after(other))
        if (other != thread)
            atomic_store_explicit(&other->hold.asked, 1, memory_order_seq_cst); /* [HD1] */
    for (struct thread *other = thread_first(sub); other; other = thread_after(other)) {
        bool late = false; /* a thread that wakes up after this found it parked stands still first */
        while (other != thread && !late && !is_held(other)) {
            late = platform_now(sub) >= deadline;
            platform_await(thread);
        }
        loose += late;
    }
    return loose;
}

void pool_release(struct thread *thread, struct subprocess *sub)
{
    atomic_store_explicit(&sub->holding, 0, memory_order_seq_cst); /* [HD2] */
    atomic_thread_fence(memory_order_seq_cst);                     /* [HD2] */
    for (struct thread *other = thread_first(sub); other; other = thread_after(other)) {
        if (other == thread)
            continue;
        atomic_store_explicit(&other->hold.asked, 0, memory_order_seq_cst); /* [HD1] */
        if (!thread->platform)
            arch_futex_wake(&other->hold.asked, 1);
    }
}

void pool_hold_new(struct thread *thread)
{
    struct subprocess *sub = thread->sub;
    atomic_thread_fence(memory_order_seq_cst);                      /* [HD2] */
    if (!atomic_load_explicit(&sub->holding, memory_order_seq_cst)) /* [HD2] */
        return;
    uint32_t holding;
    do {
        holding = atomic_load_explicit(&sub->holding, memory_order_seq_cst);        /* [HD2] */
        atomic_store_explicit(&thread->hold.asked, holding, memory_order_seq_cst);  /* [HD2] */
    } while (atomic_load_explicit(&sub->holding, memory_order_seq_cst) != holding); /* [HD2] */
}
