/*
 * How a thread sleeps and is woken. A thread that sleeps counts as held still (pool_hold).
 */
#include "platform_sleep.h"

#include "hold.h"

void platform_sleep(struct thread *thread, int64_t deadline)
{
    pool_mark_parked(thread);
    if (thread->platform)
        thread->platform->sleep(thread, deadline);
    else
        while (!atomic_load_explicit(&thread->wake, memory_order_acquire) && /* [SL1] */
               arch_futex_wait(&thread->wake, 0, deadline) == 0)
            thread_must_not_be_left(thread);
    thread_must_not_be_left(thread);
    pool_move(thread);
}

void platform_wake(struct thread *thread)
{
    if (thread->platform) {
        thread->platform->wake(thread);
        return;
    }
    atomic_store_explicit(&thread->wake, 1, memory_order_release); /* [SL1] */
    arch_futex_wake(&thread->wake, 1);
}

int platform_poll(struct thread *thread, struct arch_event *events, int most, int64_t deadline)
{
    int count;
    pool_mark_parked(thread);
    if (thread->platform)
        count = thread->platform->poll(thread, events, most, deadline);
    else
        count = arch_poller_wait(&thread->pool->poller, events, most, deadline);
    thread_must_not_be_left(thread);
    pool_move(thread);
    return count;
}

void platform_unpoll(struct pool *pool, struct thread *seeker)
{
    ASSERT(atomic_load_explicit(&pool->state, memory_order_relaxed) != POOL_CLOSED);
    if (pool->sub->platform)
        pool->sub->platform->wake(seeker);
    else
        arch_poller_kick(&pool->poller);
}
