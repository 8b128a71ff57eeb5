/*
 * The machine's side of the door: sleeping and waking. A thread that sleeps counts as held still (pool_hold).
 */
#include "driver.h"

#include "pool.h"

void driver_sleep(struct thread *thread, int64_t deadline)
{
    pool_rest(thread);
    if (thread->driver)
        thread->driver->sleep(thread, deadline);
    else
        while (!atomic_load_explicit(&thread->wake, memory_order_acquire) &&
               arch_futex_wait(&thread->wake, 0, deadline) == 0)
            ;
    pool_move(thread);
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
    int count;
    pool_rest(thread);
    if (thread->driver)
        count = thread->driver->poll(thread, events, most, deadline);
    else
        count = arch_poller_wait(&thread->pool->poller, events, most, deadline);
    pool_move(thread);
    return count;
}

void driver_unpoll(struct pool *pool, struct thread *seeker)
{
    ASSERT(atomic_load_explicit(&pool->state, memory_order_relaxed) != POOL_CLOSED);
    if (pool->sub->driver)
        pool->sub->driver->wake(seeker);
    else
        arch_poller_kick(&pool->poller);
}

int64_t driver_now_unknown(void)
{
    struct arch_player *player = arch_player();
    return player ? driver_now(player->run) : arch_clock_ns();
}

/* A thread without a record has no counter of its own. */
void driver_await_unknown(void)
{
    if (!arch_player() && (arch_ticks() >> 6) % AWAITS_PER_YIELD == 0)
        arch_thread_yield();
    else
        driver_relax_unknown();
}

void driver_relax_unknown(void)
{
    struct arch_player *player = arch_player();
    if (player)
        player->relax(player);
    else
        arch_pause();
}

/* ---- plain threads --------------------------------------------------------------------------------------- */

int driver_thread_start(struct subprocess *sub, struct driver_thread *thread, void *(*fn)(void *), void *arg,
                        const char *name)
{
    if (sub->driver)
        return sub->driver->thread_start(sub, fn, arg, &thread->played);
    return arch_thread_start(&thread->os, fn, arg, name);
}

void driver_thread_join(struct subprocess *sub, struct driver_thread *thread)
{
    if (sub->driver)
        sub->driver->thread_join(sub, thread->played);
    else
        arch_thread_join(thread->os);
}

void driver_word_wait(struct subprocess *sub, _Atomic uint32_t *word, uint32_t expected, int64_t deadline)
{
    if (sub->driver)
        sub->driver->word_wait(sub, word, expected, deadline);
    else
        arch_futex_wait(word, expected, deadline);
}

void driver_word_wake(struct subprocess *sub, _Atomic uint32_t *word, int threads)
{
    if (sub->driver)
        sub->driver->word_wake(sub, word, threads);
    else
        arch_futex_wake(word, threads);
}

void driver_plain_point(struct subprocess *sub)
{
    if (sub->driver)
        sub->driver->plain_point(sub);
}
