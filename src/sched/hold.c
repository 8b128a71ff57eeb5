/*
 * Holding the threads of a sub-process still. Page: docs/protocols/dump.md.
 *
 * PARTIES   the holder, one at a time; the other threads of the sub-process; threads that start further ones.
 * STATE     thread.hold: the thread has to stand still. thread.held: HELD_STANDS, it does; HELD_RESTS, it sleeps, has
 *           not begun, or has ended; 0, it moves. subprocess.holding: threads are being held.
 * INVARIANTS [HD1] a thread that was found held does not move until it is released. [HD2] a thread that begins while
 *           others are held stands still first, and no thread stays held after the release.
 * ORDERING  seq_cst. The holder stores hold, then loads held; a thread that begins to move stores held = 0, then loads
 *           hold. One of them sees the other [HD1]. The holder stores holding, then goes through the records that
 *           `count` includes. A thread that starts another has its record counted, then loads holding, and makes the
 *           new thread's hold agree with it, until it finds that they agree [HD2].
 * TESTED BY tests/models/watchdog.pml (how threads begin to move), tests/spec/dump.c.
 */
#include "pool.h"

#include "driver.h"

void pool_stand_still(struct thread *thread)
{
    uint32_t before =
        atomic_load_explicit(&thread->held, memory_order_relaxed); /* in a handler, of a sleeping one: HELD_RESTS */
    thread->held_count = 0;
    thread->held_at = __builtin_frame_address(0);
    if (thread->current)
        thread->held_count = arch_trace(thread->held_ips, sizeof thread->held_ips / sizeof *thread->held_ips);
    arch_note_release(thread->sub);
    while (atomic_load_explicit(&thread->hold, memory_order_seq_cst)) {          /* [HD1] */
        atomic_store_explicit(&thread->held, HELD_STANDS, memory_order_seq_cst); /* [HD1] */
        do {
            if (thread->driver)
                thread->driver->relax(thread);
            else
                arch_futex_wait(&thread->hold, 1, ARCH_FOREVER);
        } while (atomic_load_explicit(&thread->hold, memory_order_seq_cst)); /* [HD1] it was a spurious wake-up */
        atomic_store_explicit(&thread->held, before, memory_order_seq_cst);  /* [HD1] */
    }
    arch_note_acquire(&thread->sub->pool);
}

void pool_rest(struct thread *thread)
{
    atomic_store_explicit(&thread->held, HELD_RESTS, memory_order_seq_cst); /* [HD1] */
}

void pool_move(struct thread *thread)
{
    struct subprocess *sub = thread->sub;
    atomic_store_explicit(&thread->held, 0, memory_order_seq_cst);          /* [HD1] [WD1] */
    if (UNLIKELY(atomic_load_explicit(&sub->drowsy, memory_order_seq_cst))) /* [WD1] */
        sub->ops->moved(sub);
    if (UNLIKELY(atomic_load_explicit(&thread->hold, memory_order_seq_cst))) /* [HD1] */
        pool_stand_still(thread);
}

static bool is_held(struct thread *thread)
{
    return atomic_load_explicit(&thread->held, memory_order_seq_cst) != 0; /* [HD1] */
}

int pool_hold(struct thread *thread, struct subprocess *sub, int64_t deadline)
{
    int loose = 0;
    atomic_store_explicit(&sub->holding, 1, memory_order_seq_cst); /* [HD2] */
    for (struct thread *other = thread_first(sub); other; other = thread_after(other))
        if (other != thread)
            atomic_store_explicit(&other->hold, 1, memory_order_seq_cst); /* [HD1] */
    for (struct thread *other = thread_first(sub); other; other = thread_after(other)) {
        bool late = false; /* a thread that wakes up after it was found at rest stands still first */
        while (other != thread && !late && !is_held(other)) {
            late = driver_now(sub) >= deadline;
            driver_await(thread);
        }
        loose += late;
    }
    return loose;
}

void pool_release(struct thread *thread, struct subprocess *sub)
{
    atomic_store_explicit(&sub->holding, 0, memory_order_seq_cst); /* [HD2] */
    for (struct thread *other = thread_first(sub); other; other = thread_after(other)) {
        if (other == thread)
            continue;
        atomic_store_explicit(&other->hold, 0, memory_order_seq_cst); /* [HD1] */
        if (!thread->driver)
            arch_futex_wake(&other->hold, 1);
    }
}

void pool_hold_new(struct thread *thread)
{
    struct subprocess *sub = thread->sub;
    if (!atomic_load_explicit(&sub->holding, memory_order_seq_cst)) /* [HD2] */
        return;
    uint32_t holding;
    do {
        holding = atomic_load_explicit(&sub->holding, memory_order_seq_cst);        /* [HD2] */
        atomic_store_explicit(&thread->hold, holding, memory_order_seq_cst);        /* [HD2] */
    } while (atomic_load_explicit(&sub->holding, memory_order_seq_cst) != holding); /* [HD2] */
}
