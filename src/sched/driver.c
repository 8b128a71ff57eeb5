/*
 * The machine's side of the door: sleeping and waking. A thread that sleeps counts as held still (pool_hold).
 */
#include "driver.h"

#include "pool.h"

static void rest_begins(struct thread *thread)
{
    atomic_store_explicit(&thread->held, 1, memory_order_seq_cst);
}

static void rest_ends(struct thread *thread)
{
    atomic_store_explicit(&thread->held, 0, memory_order_seq_cst);
    if (UNLIKELY(atomic_load_explicit(&thread->hold, memory_order_seq_cst)))
        pool_stand_still(thread);
}

void driver_sleep(struct thread *thread, int64_t deadline)
{
    rest_begins(thread);
    if (thread->driver)
        thread->driver->sleep(thread, deadline);
    else
        while (!atomic_load_explicit(&thread->wake, memory_order_acquire) &&
               arch_futex_wait(&thread->wake, 0, deadline) == 0)
            ;
    rest_ends(thread);
}

void driver_wake(struct thread *thread)
{
    if (thread->driver) {
        thread->driver->wake(thread);
        return;
    }
    atomic_store_explicit(&thread->wake, 1, memory_order_release);
    arch_futex_wake(&thread->wake, 1);
}

int driver_poll(struct thread *thread, struct arch_event *events, int most, int64_t deadline)
{
    int count = 0;
    rest_begins(thread);
    if (thread->driver)
        thread->driver->sleep(thread, deadline);
    else
        count = arch_poller_wait(&thread->pool->poller, events, most, deadline);
    rest_ends(thread);
    return count;
}

void driver_unpoll(struct pool *pool, struct thread *seeker)
{
    if (pool->sub->driver)
        pool->sub->driver->wake(seeker);
    else
        arch_poller_kick(&pool->poller);
}
