/*
 * The machine's side of the door: what is not inline, and plain threads.
 */
#include "driver.h"

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
