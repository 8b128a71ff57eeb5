/*
 * The transitions between the states of a pool's threads, and the seeker's wait. The protocol block is in idle.h.
 */
#include "idle.h"

#include "platform_sleep.h"
#include "polled.h"
#include "pool.h"
#include "pool_uring.h"
#include "posts.h"
#include "quiescent.h"
#include "timers.h"

/* The seeker repeats a decision about quiescence that is not certain, QUIESCENT_ASKED_MOST times at most. It waits four
 * times as long before each repetition as before the last one, at first four times this. */
#define UNSURE_NS INT64_C(250000)
#define WATCH_MOST_NS INT64_C(8000000)

/* Passes a barrier that all running threads pass, too. After it, a check whether to wait sees all that a producer
 * pushed before it read an old kick [K1]. */
static void barrier(struct pool *pool)
{
    atomic_thread_fence(memory_order_seq_cst); /* [K1] */
    if (pool->sub->concurrent && arch_membarrier_works)
        arch_membarrier(); /* [K1] */
}

/* Counts the thread as busy. Under the lock. */
static void get_busy(struct thread *thread)
{
    thread->state = THREAD_BUSY;
    thread->pool->busy++;
    thread->pool->stirs++;
}

bool pool_is_still(struct thread *by, struct pool *pool, uint64_t *stirs)
{
    pool_lock(by, pool);
    bool still = pool->parked && pool->busy == 0 && !pool_stops(pool);
    *stirs += pool->stirs;
    pool_unlock(pool);
    return still;
}

/* ---- transitions ----------------------------------------------------------------------------------------- */

void thread_to_idle(struct thread *thread)
{
    struct pool *pool = thread->pool;
    pool_lock(thread, pool);
    ASSERT(thread->state == THREAD_BUSY);
    thread->state = THREAD_IDLE;
    pool->busy--;
    bool last = pool->busy == 0 && pool->parked;
    pool_unlock(pool);
    if (last && quiescent_is_awaited(pool->sub) && quiescent_is_near(pool)) /* [Q2] */
        pool_kick_(thread, pool);
}

void thread_from_idle(struct thread *thread)
{
    struct pool *pool = thread->pool;
    pool_lock(thread, pool);
    ASSERT(thread->state == THREAD_IDLE);
    get_busy(thread);
    pool_unlock(pool);
}

void pool_enter(struct thread *thread)
{
    struct pool *pool = thread->pool;
    plain_store(&thread->busy_since, platform_now(thread->sub), memory_order_relaxed);
    pool_lock(NULL, pool);
    get_busy(thread);
    pool_unlock(pool);
}

void pool_leave(struct thread *thread)
{
    thread_to_idle(thread);
}

bool thread_to_polling(struct thread *thread)
{
    struct pool *pool = thread->pool;
    pool_lock(thread, pool);
    bool mine = pool_seeker(pool) == thread;
    if (!pool_seeker(pool)) { /* [K2] */
        ASSERT(thread->state == THREAD_IDLE);
        pool_set_seeker(pool, thread);
        thread->state = THREAD_POLLING;
        pool_show_kick(pool);
        mine = true;
    }
    pool_unlock(pool);
    return mine;
}

/* Returns whether a sleeper soon wakes by itself for a pass. Such sleepers are in front of the list. Under the lock. */
static bool sleeper_is_timed(struct pool *pool)
{
    return !list_empty(&pool->sleepers) && CONTAINER(pool->sleepers.next, struct thread, sleeping)->timed;
}

static bool any_event(struct thread *thread, struct pool *pool)
{
    return posts_any(&pool->posts) || pool_stops(pool) || pool_uring_has_calls(pool) || /* [UR2] */
           (timers_next(&pool->timers) != ARCH_FOREVER && timers_next(&pool->timers) <= platform_now(thread->sub));
}

static bool any_work(struct thread *thread, struct pool *pool)
{
    return pool->scheduler->work(pool) || any_event(thread, pool);
}

/* Wakes a sleeper if there is work. The role is free, and work may have come while no producer had to announce it. */
static void recheck(struct thread *thread, struct pool *pool)
{
    barrier(pool);
    if (any_work(thread, pool))
        pool_kick_(thread, pool);
}

void thread_to_busy(struct thread *thread)
{
    struct pool *pool = thread->pool;
    struct thread *heir = NULL;
    bool left = pool->count > 1 && pool->scheduler->work(pool);
    pool_lock(thread, pool);
    ASSERT(thread->state == THREAD_POLLING && pool_seeker(pool) == thread);
    get_busy(thread);          /* S-54: before the role is free */
    thread->search.unsure = 0; /* the next decision is about another lull */
    plain_store(&thread->busy_since, thread->now, memory_order_relaxed);
    pool_set_seeker(pool, NULL);
    if (left || !sleeper_is_timed(pool)) /* [K4] */
        heir = pool_give_role(pool);
    pool_show_kick(pool);
    bool exposed = atomic_load_explicit(&pool->kick, memory_order_relaxed) & KICK_SLEEPER;
    pool_unlock(pool);
    pool_wake_heir(thread, heir);
    if (exposed)
        recheck(thread, pool);
}

bool thread_to_asleep(struct thread *thread, bool timed)
{
    struct pool *pool = thread->pool;
    pool_lock(thread, pool);
    struct thread *seeker = pool_seeker(pool);
    /* A busy thread that has the role for one pass does not count, because it does not wait. */
    bool sleep = seeker && seeker != thread && seeker->state == THREAD_POLLING && !pool_stops(pool);
    sleep = sleep && !pinned_doze(thread) && !thread_is_to_go(thread); /* [P2] */
    if (sleep) {
        thread->timed = timed;
        atomic_store_explicit(&thread->wake, 0, memory_order_relaxed);
        if (timed)
            list_push_front(&pool->sleepers, &thread->sleeping);
        else
            list_push_back(&pool->sleepers, &thread->sleeping);
        pool_show_kick(pool);
    }
    pool_unlock(pool);
    if (!sleep)
        pinned_wake(thread);
    return sleep;
}

void thread_from_asleep(struct thread *thread)
{
    struct pool *pool = thread->pool;
    pool_lock(thread, pool);
    if (thread->sleeping.next) /* no thread woke it: its time was over */
        list_remove(&thread->sleeping);
    pool_show_kick(pool);
    pool_unlock(pool);
    pinned_wake(thread);
}

/* ---- the role for one pass ------------------------------------------------------------------------------- */

bool thread_takes_role(struct thread *thread)
{
    struct pool *pool = thread->pool;
    if (pool_seeker(pool))
        return false; /* the seeker makes the pass */
    pool_lock(thread, pool);
    bool mine = !pool_seeker(pool);
    if (mine) {
        pool_set_seeker(pool, thread);
        pool_show_kick(pool);
    }
    pool_unlock(pool);
    return mine;
}

void thread_gives_role(struct thread *thread)
{
    struct pool *pool = thread->pool;
    pool_lock(thread, pool);
    pool_set_seeker(pool, NULL);
    pool_show_kick(pool);
    bool exposed = atomic_load_explicit(&pool->kick, memory_order_relaxed) & KICK_SLEEPER;
    pool_unlock(pool);
    if (exposed)
        recheck(thread, pool);
}

/* ---- waiting as the seeker ------------------------------------------------------------------------------- */

/* Decides whether the pool or the run is quiescent. No thread of the pool is busy, and its seeker, the caller, is about
 * to wait. Returns whether that ends a strand's wait; the strand is then in a queue. */
static bool decide(struct thread *thread, struct pool *pool)
{
    struct batch batch;
    struct member *member;
    if (!quiescent_is_awaited(pool->sub))
        return false;
    batch_init(&batch);
    bool unsure = quiescent_is_near(pool) && pool->sub->ops->quiescent(thread, &batch, thread->search.unsure);
    bool some = batch.first != NULL;
    thread->search.unsure = unsure ? thread->search.unsure + 1 : 0;
    while ((member = batch_take(&batch)))
        pool_deliver(thread, member);
    return some;
}

/* Returns the instant until which the seeker may wait: at most until the next timer or the thread's limit, and only for
 * a little while if other threads are busy or pushes don't wake the seeker. */
static int64_t waiting_time(struct thread *thread, struct pool *pool, bool eager, int rounds)
{
    int64_t until = timers_next(&pool->timers), now = platform_now(thread->sub), watch = ARCH_FOREVER;
    until = until < thread->limit ? until : thread->limit;
    bool again = thread->search.saw_slot && !thread->search.rechecked; /* once: to see whether the slot becomes stale */
    thread->search.rechecked = again;
    thread->search.saw_slot = false;
    if (again && pool->busy > 0) {
        watch = FUTILE_NS;
    } else if (!eager) {
        watch = FUTILE_NS << pool->futile;
    } else if (pool->busy > 0) {
        watch = WATCH_FIRST_NS << (rounds < 3 ? rounds : 3);
        watch = watch < WATCH_MOST_NS ? watch : WATCH_MOST_NS;
    }
    return watch != ARCH_FOREVER && now + watch < until ? now + watch : until;
}

/* Returns when a decision that was not certain must be repeated, at the latest at `next`; `next` if there is none. A
 * thread of the process that ended during the decision was counted as one too many, so a repetition may have another
 * result. */
static int64_t soon(struct thread *thread, int64_t next)
{
    if (LIKELY(!thread->search.unsure) || thread->search.unsure > QUIESCENT_ASKED_MOST)
        return next;
    int64_t when = platform_now(thread->sub) + (UNSURE_NS << 2 * thread->search.unsure);
    return when < next ? when : next;
}

bool pool_park(struct thread *thread, struct pool *pool, bool eager, int rounds, int64_t nap)
{
    pool_lock(thread, pool);
    pool->parked = true;
    pool->eager = eager;
    bool lull = pool->busy == 0, decided = false;
    int64_t until = waiting_time(thread, pool, eager, rounds);
    atomic_store_explicit(&pool->until, until, memory_order_seq_cst); /* before the kick [K1] */
    pool_show_kick(pool);
    pool_unlock(pool);
    bool own = pinned_doze(thread) || thread_has_own(thread); /* [P2] */
    barrier(pool);
    bool waits = !own && !(eager ? any_work(thread, pool) : any_event(thread, pool));
    if (waits && lull)
        waits = !(decided = decide(thread, pool));
    if (waits) {                                                 /* else the seeker searches again at once [K1] */
        int64_t next = soon(thread, timers_next(&pool->timers)); /* the next one may precede the kick */
        until = next < until ? next : until;
        atomic_store_explicit(&pool->until, until, memory_order_seq_cst); /* [K1] */
        thread->sleeps++;
        pool_wait_polled(thread, pool, nap > until ? nap : until);
    }
    pool_lock(thread, pool);
    bool kicked = !pool->parked && !decided;
    pool_go_on(pool);
    pool_show_kick(pool);
    pool_unlock(pool);
    pinned_wake(thread);
    return kicked;
}

/* ---- driven from outside --------------------------------------------------------------------------------- */

/* Marks the seeker as parked, until the next timer. Under the lock. Returns whether no thread is busy. */
static bool settle(struct pool *pool)
{
    pool->parked = pool->eager = true;
    atomic_store_explicit(&pool->until, timers_next(&pool->timers), memory_order_seq_cst); /* before the kick [K1] */
    pool_show_kick(pool);
    return pool->busy == 0;
}

bool pool_settle(struct thread *thread)
{
    struct pool *pool = thread->pool;
    pool_lock(thread, pool);
    thread->state = THREAD_POLLING;
    pool->busy--;
    pool_set_seeker(pool, thread);
    bool lull = settle(pool);
    pool_unlock(pool);
    bool own =
        pinned_doze(thread) || thread_has_own(thread) || pinned_has_work(thread); /* [P2]; a drive may have left some */
    barrier(pool);
    if (own || any_work(thread, pool)) /* [K1] */
        return true;
    if (!lull || !decide(thread, pool))
        return false;
    pool_lock(thread, pool);
    settle(pool);
    pool_unlock(pool);
    return true;
}

void pool_unsettle(struct thread *thread)
{
    struct pool *pool = thread->pool;
    pool_lock(thread, pool);
    pool_go_on(pool);
    pool_set_seeker(pool, NULL);
    get_busy(thread);
    pool_show_kick(pool);
    pool_unlock(pool);
    pinned_wake(thread);
}
