/*
 * What became runnable, to the thread or pool that is to run it; and what comes from outside: posts, events, timers.
 * Models of what is posted to a thread that goes: tests/models/resize.pml; to a pool that is closed:
 * tests/models/closing.pml.
 */
#include "pinned.h"
#include "polled.h"
#include "posts.h"
#include "rest.h"
#include "thread.h"
#include "timers.h"

/* It empties its inbox, now or before it goes. */
static bool has_queue(struct thread *thread)
{
    return thread_life(thread) == THREAD_HERE || thread_life(thread) == THREAD_LEAVING;
}

/* One that stays: thread 0 does. */
static struct thread *one_of(struct pool *pool, struct thread *by)
{
    uint32_t size = (uint32_t)atomic_load_explicit(&pool->size, memory_order_acquire); /* with grow: their records */
    struct thread *thread = pool->threads[by && size > 1 ? driver_choose(by, size) : 0];
    return thread_life(thread) == THREAD_HERE ? thread : pool->threads[0];
}

void pool_pass_on(struct thread *gone)
{
    struct link missed, *link;
    list_init(&missed);
    inbox_take(&gone->runq.inbox, &missed);
    while ((link = list_pop_front(&missed)))
        inbox_post(&gone->pool->threads[0]->runq.inbox, CONTAINER(link, struct fibre, queued));
}

void pool_post_fibre(struct pool *pool, struct thread *by, struct thread *home, struct fibre *fibre)
{
    if (!home || home->pool != pool)
        home = one_of(pool, by);
    inbox_post(&home->runq.inbox, fibre);
    if (UNLIKELY(!has_queue(home)))
        pool_pass_on(home); /* [Z1] it has gone, and may have taken its inbox before that */
}

void pool_send(struct thread *thread, struct fibre *fibre)
{
    struct pool *pool = fibre->pool;
    pool->scheduler->post(pool, thread, fibre);
    if (UNLIKELY(!arch_membarrier_works)) /* as pool_fence: not every scheduler's post is a full barrier [K1] */
        atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&pool->kick, memory_order_seq_cst))
        pool_kick_(thread, pool);
}

void pool_deliver(struct thread *thread, struct member *member)
{
    if (LIKELY(!member->fibre->opened) || opened_up(thread, member))
        pool_deliver_fibre(thread, member->fibre);
}

void pool_deliver_fibre(struct thread *thread, struct fibre *fibre)
{
    struct thread *home = fibre->home;
    uintptr_t context = (uintptr_t)atomic_load_explicit(&fibre->context, memory_order_relaxed); /* or 0: not begun */
    for (uintptr_t i = 0; i < 6; i++)
        __builtin_prefetch((const void *)(context + i * 64), 1);
    if (UNLIKELY(fibre->pinned)) {
        pinned_ready(thread, fibre);
        return;
    }
    if (UNLIKELY(fibre->pool != thread->pool)) {
        pool_send(thread, fibre);
        return;
    }
    /* Weak affinity; a racy look at the state is enough, since work is found in any inbox. */
    bool elsewhere = home && home != thread && home->pool == thread->pool && thread->stealing &&
                     plain_load(&home->state, memory_order_relaxed) == THREAD_BUSY;
    if (!elsewhere) {
        thread_push(thread, fibre, PUSH_OUTSIDE);
        return;
    }
    /* Whoever delivers has the role, and sees to it what is left when giving that up. */
    pool_post_fibre(thread->pool, thread, home, fibre);
}

static void take_posts(struct thread *thread, struct pool *pool)
{
    struct post *post;
    for (int i = 0; i < POSTS_AT_ONCE && (post = posts_take(&pool->posts)); i++) { /* [N3] */
        struct member *member = post->run(post);
        if (member)
            pool_deliver(thread, member);
    }
}

void pool_take_events(struct thread *thread, struct pool *pool)
{
    if (posts_any(&pool->posts, memory_order_relaxed))
        take_posts(thread, pool);
    pool_take_polled(thread, pool);
    rest_note_stacks(thread, pool);
    if (timers_next(&pool->timers) == ARCH_FOREVER)
        return;
    thread->now = driver_now(pool->sub);
    if (timers_next(&pool->timers) <= thread->now)
        timers_fire(thread, pool, thread->now);
    rest_look(thread, pool);
}
