/*
 * The delivery of events from the system to the records of descriptors. See polled.h.
 */
#include "polled.h"

#include "fds.h"
#include "platform_sleep.h"
#include "pool_uring.h"

#include <errno.h>

enum { EVENTS = 64 };

int pool_watch(struct pool *pool, int fd, struct polled *polled)
{
    struct subprocess *sub = pool->sub;
    uint64_t data = (uint64_t)(uintptr_t)polled;
    int error = sub->platform ? sub->platform->fds->watch(sub, fd, data) : arch_poller_add(&pool->poller, fd, data);
    if (!error)
        atomic_fetch_add_explicit(&pool->watched, 1, memory_order_relaxed);
    return error;
}

bool pool_watches(struct pool *pool, int fd, struct polled *polled)
{
    return arch_poller_has(&pool->poller, fd, (uint64_t)(uintptr_t)polled);
}

void pool_unwatch(struct pool *pool, int fd)
{
    struct subprocess *sub = pool->sub;
    int error = sub->platform ? sub->platform->fds->unwatch(sub, fd) : arch_poller_remove(&pool->poller, fd);
    if (error == 0 || error == -ENOENT || error == -EBADF)
        atomic_fetch_sub_explicit(&pool->watched, 1, memory_order_relaxed);
}

static void dispatch(struct thread *thread, const struct arch_event *events, int count)
{
    for (int i = 0; i < count; i++) { /* the records have left the cache by now */
        const char *soon = (const char *)(uintptr_t)events[i].data;
        __builtin_prefetch(soon, 1);
        __builtin_prefetch(soon + 64, 1);
    }
    for (int i = 0; i < count; i++) {
        struct polled *polled = (struct polled *)(uintptr_t)events[i].data;
        polled->fire(thread, polled, events[i].events);
    }
}

/* One call takes no more events than can be handled while their memory is in the cache. The kernel keeps the rest, in
 * order. */
void pool_take_polled(struct thread *thread, struct pool *pool)
{
    struct arch_event events[EVENTS];
    pool_uring_pass(thread, pool);
    if (!atomic_load_explicit(&pool->watched, memory_order_relaxed))
        return;
    int count = thread->platform ? thread->platform->poll(thread, events, EVENTS, 0)
                                 : arch_poller_wait(&pool->poller, events, EVENTS, 0);
    dispatch(thread, events, count);
    if (count > 0)
        thread->pass.fed = true;
}

bool pool_has_polled(struct pool *pool)
{
    if (pool_uring_has_any(pool))
        return true;
    return atomic_load_explicit(&pool->watched, memory_order_relaxed) && arch_poller_has_events(&pool->poller);
}

void pool_wait_polled(struct thread *thread, struct pool *pool, int64_t deadline)
{
    struct arch_event events[EVENTS];
    (void)pool;
    int count = platform_poll(thread, events, EVENTS, deadline);
    dispatch(thread, events, count);
}
