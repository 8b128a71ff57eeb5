/*
 * The search for something to run. The seeker searches everywhere, other threads wait for the role. The search calls
 * the transitions of idle.h and changes no state itself. The protocol block is in idle.h; the search adds to it:
 *
 * PARTIES   the seeker; busy threads, which take the role for one pass; threads that wait for the role.
 * INVARIANTS [K3] the newest of a queue (its slot) is not counted as work until it is stale; while a thread is busy, a
 *           waiting seeker searches again after a while by itself.
 * PROGRESS  the seeker dequeues its next fibre before it releases the role: that fibre does not count as remaining
 *           work, and no thread steals it meanwhile. A thread whose last thefts yielded less than LOOT_WORTH_NS of
 *           work each stops stealing for a while: strands that communicate over channels run faster on one thread (60
 *           ns an item, 1300 on two).
 * NOT DONE  waking a sleeper each time the seeker becomes busy: one wake-up per event on a half-loaded server.
 *           Reserving every woken fibre for its thread, as the slot is reserved: after a broadcast, idle threads would
 *           steal workers up to 1 ms late. A system call for each near timer: it takes as long as the wait.
 * TESTED BY tests/models/seeker.pml and the tests that idle.h names.
 */
#include "seek.h"

#include "balance.h"
#include "events.h"
#include "hold.h"
#include "idle.h"
#include "platform_sleep.h"
#include "polled.h"
#include "pool.h"
#include "pool_uring.h"
#include "posts.h"
#include "quiescent.h"
#include "timers.h"

/* A theft costs both sides some cache misses, and a wake-up: work of less than this is left to its owner. */
#define LOOT_WORTH_NS INT64_C(10000)
/* The seeker waits for a timer that is so near without a system call, which would take as long. */
#define NEAR_NS INT64_C(5000)
/* Such waits for many timers in close succession would occupy a processor. So the seeker makes them for an eighth of
 * the time at most, beside NEAR_MOST_NS. The rest of the time it sleeps, each time for as long as the system's own
 * timers are late, and then fires all timers that are due. */
#define NEAR_MOST_NS INT64_C(200000)
#define NEAR_NAP_NS INT64_C(50000)
enum { NEAR_SHARE = 8, NEAR_MANY = 256 };

void pool_pass(struct thread *thread)
{
    struct pool *pool = thread->pool;
    pool_uring_enter(thread, pool); /* [UR2] */
    if (!thread->concurrent) {
        pool_take_events(thread, pool);
        return;
    }
    if (!thread_takes_role(thread))
        return;
    pool_take_events(thread, pool);
    if (pool->scheduler->even_out && !thread_is_to_go(thread))
        pool->scheduler->even_out(thread); /* [LB1] */
    thread_gives_role(thread);
}

/* Returns whether the thread must stop its search. */
static bool done(struct thread *thread, struct pool *pool)
{
    bool late = thread->limit != ARCH_FOREVER && platform_now(thread->sub) >= thread->limit;
    return late || pool_stops(pool) || thread_is_to_go(thread);
}

/* Returns whether the seeker should wait for a near timer without sleeping. */
static bool spins_for_timer(struct thread *thread, struct pool *pool, int64_t now)
{
    if (timers_next(&pool->timers) - now >= NEAR_NS)
        return false;
    if (thread->platform || atomic_load_explicit(&pool->timers.count, memory_order_relaxed) < NEAR_MANY)
        return true;
    int64_t passed = now - pool->near.seen;
    int64_t credit = pool->near.credit + (pool->near.spins ? -passed : passed / NEAR_SHARE);
    pool->near.credit = credit < NEAR_MOST_NS ? credit : NEAR_MOST_NS;
    pool->near.seen = now;
    pool->near.spins = pool->near.credit > 0;
    return pool->near.spins;
}

/* Judges this thread's last theft: it was poor if the stolen work lasted less than LOOT_WORTH_NS. A poor theft raises
 * pool->futile, a good one resets it. Returns whether the theft was poor. */
static bool judge_loot(struct thread *thread, struct pool *pool)
{
    if (!thread->search.stole_at)
        return false;
    bool poor = platform_now(thread->sub) - thread->search.stole_at < LOOT_WORTH_NS;
    thread->search.stole_at = 0;
    if (!poor)
        pool->futile = 0;
    else if (pool->futile < FUTILE_MOST)
        pool->futile++;
    return poor;
}

/* Takes work from other queues after a pick that found none. A scheduler without `steal` has no other queue, so work
 * that is there has come since the pick. */
static bool find_elsewhere(struct thread *thread, const struct scheduler *scheduler)
{
    return scheduler->steal ? scheduler->steal(thread) : scheduler->work(thread->pool);
}

/* Searches everywhere, as the seeker, until there is a fibre to run. Returns NULL if the pool stops, the thread must
 * leave, or its time limit has passed. */
static struct fibre *seek(struct thread *thread, struct pool *pool)
{
    int64_t since = thread->now = platform_now(thread->sub);
    bool eager = true, kicked = false, poor = judge_loot(thread, pool);
    for (int rounds = 0; !done(thread, pool);) {
        thread_must_not_be_left(thread);
        pool_take_events(thread, pool);
        struct fibre *fibre = thread_pick(thread);
        if (fibre)
            return fibre;
        if (find_elsewhere(thread, pool->scheduler)) {
            thread->search.stole_at = platform_now(thread->sub);
            if ((fibre = thread_pick(thread)))
                return fibre;
        }
        if (UNLIKELY(atomic_load_explicit(&thread->hold.asked, memory_order_relaxed)))
            pool_stand_still(thread);
        if (posts_any(&pool->posts)) { /* [N3] or a post that is not linked yet [N2] */
            platform_await(thread);
            continue;
        }
        int64_t now = thread->now = platform_now(thread->sub);
        bool near = spins_for_timer(thread, pool, now);
        bool asked = atomic_load_explicit(&pool->sub->quiescence_waiters, memory_order_relaxed) >= QUIESCENT_WAITER;
        if (near ||
            (thread->concurrent && !poor && !asked && now - since < pool->spin_ns)) { /* a seeker that waits decides */
            platform_relax(thread);
            continue;
        }
        int64_t nap = timers_next(&pool->timers) - now < NEAR_NS ? now + NEAR_NAP_NS : 0;
        if (kicked && pool->futile < FUTILE_MOST)
            pool->futile++;
        eager = !kicked && !poor;
        poor = false;
        kicked = pool_park(thread, pool, eager, rounds++, nap) && eager;
        thread->now = platform_now(thread->sub);
        if (kicked)
            since = thread->now;
    }
    return NULL;
}

/* Spins for a while, in the hope that the seeker finds more than it can run. Returns false if the role stays taken and
 * the thread has nothing else to do. */
static bool spin_for_role(struct thread *thread, struct pool *pool)
{
    int64_t since = platform_now(thread->sub);
    do {
        if (!pool_seeker(pool) || pool_stops(pool) || thread_has_own(thread))
            return true;
        for (int i = 0; i < 32; i++)
            platform_relax(thread);
    } while (platform_now(thread->sub) - since < pool->spin_ns);
    return false;
}

/* Sleeps until the thread has the role, the role is free, or the thread has something else to do. */
static void sleep_a_while(struct thread *thread, struct pool *pool)
{
    for (bool timed = true; thread_to_asleep(thread, timed); timed = false) {
        int64_t deadline = timed ? platform_now(thread->sub) + 2 * WATCH_FIRST_NS : ARCH_FOREVER;
        thread->sleeps++;
        platform_sleep(thread, deadline);
        thread_must_not_be_left(thread);
        thread_from_asleep(thread);
        if (!pool_seeker(pool) || pool_seeker(pool) == thread)
            return;
    }
}

static struct fibre *find_work(struct thread *thread)
{
    struct pool *pool = thread->pool;
    thread_to_idle(thread);
    while (!done(thread, pool)) {
        if (thread_to_polling(thread)) {
            struct fibre *fibre = seek(thread, pool);
            pool->near.spins = false;
            thread_to_busy(thread);
            return fibre;
        }
        if (pinned_inbox_filled(thread))
            break;
        if (!spin_for_role(thread, pool))
            sleep_a_while(thread, pool);
    }
    thread->now = platform_now(thread->sub);
    if (pool_seeker(pool) == thread) /* the thread got the role while it slept, and must leave */
        thread_to_busy(thread);
    else
        thread_from_idle(thread);
    return pinned_pick(thread);
}

struct fibre *pool_find_work(struct thread *thread)
{
    struct fibre *fibre = NULL;
    if (pool_uring_has_calls(thread->pool)) { /* [UR2] */
        pool_uring_enter_(thread, thread->pool);
        fibre = thread_pick(thread); /* many calls end at once */
    }
    if (!fibre)
        fibre = find_work(thread);
    balance_begin(thread, platform_ticks(thread));
    return fibre;
}
