/*
 * Waking a pool's threads: the seeker in the poller, or a sleeper, which gets the role. The protocol block is in
 * idle.h.
 */
#include "kick.h"

#include "idle.h"
#include "platform_sleep.h"
#include "posts.h"

struct thread *pool_give_role(struct pool *pool)
{
    struct link *link = list_pop_front(&pool->sleepers);
    if (!link)
        return NULL;
    struct thread *heir = CONTAINER(link, struct thread, sleeping);
    ASSERT(heir->state == THREAD_IDLE);
    heir->state = THREAD_POLLING;
    pool_set_seeker(pool, heir);
    return heir;
}

void pool_wake_heir(struct thread *by, struct thread *heir)
{
    if (!heir)
        return;
    if (by)
        by->wakes++;
    platform_wake(heir);
}

/* The threads that the caller must wake after it has released the lock: the parked seeker, or the heir of the role. */
struct kicked {
    bool parked;
    struct thread *seeker, *heir;
};

/* Unparks the seeker. Returns whether it was parked; then the caller must wake it by unpoll. Under the lock. */
static bool unpark(struct pool *pool)
{
    bool parked = pool->parked;
    pool_go_on(pool);
    if (parked)
        atomic_fetch_add_explicit(&pool->kickers, 1, memory_order_relaxed); /* [K6] */
    return parked;
}

/* Wakes a seeker in the poller, without the lock. The seeker may have woken up by itself since, and ended; the thread
 * that closes the pool waits for the last step. */
static void unpoll(struct pool *pool, struct thread *seeker)
{
    platform_unpoll(pool, seeker);
    arch_san_release(&pool->kickers);
    atomic_fetch_sub_explicit(&pool->kickers, 1, memory_order_release); /* [K6] */
}

void pool_await_kickers(struct pool *pool)
{
    while (atomic_load_explicit(&pool->kickers, memory_order_acquire)) /* [K6] */
        platform_await(NULL);
    arch_san_acquire(&pool->kickers); /* [K6]; TSan checks the write to the poller's descriptor against its close */
}

/* Chooses the thread to wake: the parked seeker, or, if no thread has the role, a sleeper, which gets it. Under the
 * lock. */
static struct kicked take_kicked(struct pool *pool)
{
    struct kicked kicked = {.parked = unpark(pool)};
    if (!kicked.parked && !pool_seeker(pool))
        kicked.heir = pool_give_role(pool);
    pool_show_kick(pool);
    kicked.seeker = pool_seeker(pool);
    return kicked;
}

static void wake_kicked(struct thread *by, struct pool *pool, const struct kicked *kicked)
{
    if (kicked->parked && by)
        by->wakes++;
    if (kicked->parked)
        unpoll(pool, kicked->seeker);
    pool_wake_heir(by, kicked->heir);
}

COLD void pool_kick_(struct thread *thread, struct pool *pool)
{
    pool_lock(thread, pool);
    struct kicked kicked = take_kicked(pool);
    pool_unlock(pool);
    wake_kicked(thread, pool, &kicked);
}

/* Wakes a thread as pool_kick_ does, as long as `kick_pending` asks for it. Every thread that has released the lock
 * checks `kick_pending`, this one too [K5]. */
COLD void pool_take_pending_kick_(struct pool *pool)
{
    while (atomic_load_explicit(&pool->kick_pending, memory_order_seq_cst) &&
           !atomic_flag_test_and_set_explicit(&pool->lock, memory_order_seq_cst)) { /* [K5] [LK1] */
        arch_san_acquire(&pool->lock);
        atomic_store_explicit(&pool->kick_pending, 0, memory_order_relaxed);
        struct kicked kicked = take_kicked(pool);
        spin_unlock(&pool->lock);
        atomic_thread_fence(memory_order_seq_cst); /* [K5] */
        wake_kicked(NULL, pool, &kicked);
    }
}

/* Wakes a thread as pool_kick_ does. Any thread or signal handler may call it. */
static void request_kick(struct pool *pool)
{
    atomic_store_explicit(&pool->kick_pending, 1, memory_order_seq_cst); /* [K5] */
    pool_take_pending_kick_(pool);
}

/* A thread that does not sleep yet checks once more before it does. */
void pool_rouse(struct thread *by, struct thread *sleeper)
{
    struct pool *pool = sleeper->pool;
    pool_lock(by, pool);
    bool parked = pool_seeker(pool) == sleeper && unpark(pool), asleep = sleeper->sleeping.next != NULL;
    if (!parked && asleep)
        list_remove(&sleeper->sleeping);
    pool_show_kick(pool);
    pool_unlock(pool);
    if (by && (parked || asleep))
        by->wakes++;
    if (parked)
        unpoll(pool, sleeper);
    else if (asleep)
        platform_wake(sleeper);
}

void pool_post(struct pool *pool, struct post *post)
{
    posts_put(&pool->posts, post);
    if (atomic_load_explicit(&pool->kick, memory_order_seq_cst)) /* [K1] */
        request_kick(pool);
}

void pool_retime(struct thread *thread, struct pool *pool, int64_t when)
{
    pool_fence(thread);
    if ((atomic_load_explicit(&pool->kick, memory_order_seq_cst) & KICK_SEEKER) && /* [K1]; else one wakes soon [K4] */
        when < atomic_load_explicit(&pool->until, memory_order_seq_cst))           /* [K1] */
        pool_kick_(thread, pool);
}

void pool_stop(struct thread *thread, struct pool *pool)
{
    atomic_store_explicit(&pool->stop, 1, memory_order_release); /* before the lock is held [K7] */
    for (;;) {
        pool_lock(thread, pool);
        bool parked = unpark(pool);
        struct link *link = list_pop_front(&pool->sleepers);
        pool_show_kick(pool);
        struct thread *seeker = pool_seeker(pool);
        pool_unlock(pool);
        if (parked)
            unpoll(pool, seeker);
        if (!link)
            return;
        pool_wake_heir(thread, CONTAINER(link, struct thread, sleeping));
    }
}
