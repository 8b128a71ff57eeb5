/*
 * The platform interface: the functions that are not inline, and plain threads.
 */
#include "platform.h"

int64_t platform_now_unknown(void)
{
    struct arch_player *player = arch_player();
    return player ? platform_now(player->run) : arch_clock_ns();
}

/* A thread without a record has no counter of calls, so the clock decides which calls yield. */
void platform_await_unknown(void)
{
    if (!arch_player() && (arch_ticks() >> 6) % AWAITS_PER_YIELD == 0)
        arch_thread_yield();
    else
        platform_relax_unknown();
}

/* In the child of a fork the thread that is waited for may be missing. */
void platform_await_long(struct thread *thread)
{
    thread_must_not_be_left(thread);
    arch_thread_yield();
}

void platform_relax_unknown(void)
{
    struct arch_player *player = arch_player();
    if (player)
        player->relax(player);
    else
        arch_pause();
}

/* ---- plain threads --------------------------------------------------------------------------------------- */

int platform_thread_start(struct subprocess *sub, struct platform_thread *thread, void *(*fn)(void *), void *arg,
                          const char *name, bool signalled)
{
    if (sub->platform)
        return sub->platform->thread_start(sub, fn, arg, &thread->played);
    return signalled ? arch_thread_start(&thread->os, fn, arg, name)
                     : arch_thread_start_unsignalled(&thread->os, fn, arg, name);
}

void platform_thread_join(struct subprocess *sub, struct platform_thread *thread)
{
    if (sub->platform)
        sub->platform->thread_join(sub, thread->played);
    else
        arch_thread_join(thread->os);
}

void platform_word_wait(struct subprocess *sub, _Atomic uint32_t *word, uint32_t expected, int64_t deadline)
{
    if (sub->platform)
        sub->platform->word_wait(sub, word, expected, deadline);
    else
        arch_futex_wait(word, expected, deadline);
}

void platform_word_wake(struct subprocess *sub, _Atomic uint32_t *word, int threads)
{
    if (sub->platform)
        sub->platform->word_wake(sub, word, threads);
    else
        arch_futex_wake(word, threads);
}

void platform_plain_point(struct subprocess *sub)
{
    if (sub->platform)
        sub->platform->plain_point(sub);
}
