/*
 * Holding the threads of a sub-process still. Protocol: docs/protocols/dump.md. Model of how they begin to move:
 * tests/models/watchdog.pml.
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
    while (atomic_load_explicit(&thread->hold, memory_order_seq_cst)) {
        atomic_store_explicit(&thread->held, HELD_STANDS, memory_order_seq_cst);
        do {
            if (thread->driver)
                thread->driver->relax(thread);
            else
                arch_futex_wait(&thread->hold, 1, ARCH_FOREVER);
        } while (atomic_load_explicit(&thread->hold, memory_order_seq_cst)); /* a spurious wake-up does not end it */
        atomic_store_explicit(&thread->held, before, memory_order_seq_cst);
    }
    arch_note_acquire(&thread->sub->pool);
}

void pool_rest(struct thread *thread)
{
    atomic_store_explicit(&thread->held, HELD_RESTS, memory_order_seq_cst);
}

void pool_move(struct thread *thread)
{
    struct subprocess *sub = thread->sub;
    atomic_store_explicit(&thread->held, 0, memory_order_seq_cst); /* [WD1], docs/protocols/watchdog.md */
    if (UNLIKELY(atomic_load_explicit(&sub->drowsy, memory_order_seq_cst)))
        sub->ops->moved(sub);
    if (UNLIKELY(atomic_load_explicit(&thread->hold, memory_order_seq_cst)))
        pool_stand_still(thread);
}

static bool is_held(struct thread *thread)
{
    return atomic_load_explicit(&thread->held, memory_order_seq_cst) != 0;
}

int pool_hold(struct thread *thread, struct subprocess *sub, int64_t deadline)
{
    int loose = 0;
    atomic_store_explicit(&sub->holding, 1, memory_order_seq_cst);
    for (struct thread *other = thread_first(sub); other; other = thread_after(other))
        if (other != thread)
            atomic_store_explicit(&other->hold, 1, memory_order_seq_cst);
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
    atomic_store_explicit(&sub->holding, 0, memory_order_seq_cst);
    for (struct thread *other = thread_first(sub); other; other = thread_after(other)) {
        if (other == thread)
            continue;
        atomic_store_explicit(&other->hold, 0, memory_order_seq_cst);
        if (!thread->driver)
            arch_futex_wake(&other->hold, 1);
    }
}

void pool_hold_new(struct thread *thread)
{
    struct subprocess *sub = thread->sub;
    if (!atomic_load_explicit(&sub->holding, memory_order_seq_cst))
        return;
    atomic_store_explicit(&thread->hold, 1, memory_order_seq_cst);
    if (!atomic_load_explicit(&sub->holding, memory_order_seq_cst))
        atomic_store_explicit(&thread->hold, 0, memory_order_seq_cst);
}
