/*
 * Posts, events of descriptors and timers: what comes from outside of the pool.
 */
#include "events.h"

#include "polled.h"
#include "posts.h"
#include "thread.h"
#include "timers.h"
#include "trim.h"

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
    if (posts_any(&pool->posts))
        take_posts(thread, pool);
    pool_take_polled(thread, pool);
    trim_record_stacks(thread, pool);
    if (timers_next(&pool->timers) == ARCH_FOREVER)
        return;
    thread->now = platform_now(pool->sub);
    if (timers_next(&pool->timers) <= thread->now)
        timers_fire(thread, pool, thread->now);
    trim_continue(thread, pool);
}
