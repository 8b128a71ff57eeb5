/*
 * The states of a pool's threads and the role of the seeker. The page docs/protocols/seeker.md has the diagram; the
 * models are tests/models/seeker.pml and, of what lies in slots, tests/models/slot.pml, of who is roused for what is
 * pinned to it, tests/models/pinned.pml, of kicks at a pool that is closed, tests/models/closing.pml, of what is
 * decided when nobody is busy, tests/models/quiet.pml.
 *
 * PARTIES   the threads of a pool; producers (busy threads that push, anybody that posts).
 * STATE     per thread: busy, idle, polling. Per pool, under its lock: who is the seeker, who sleeps, how many are
 *           busy, whether the seeker is parked. `kick` mirrors for producers, who read it without the lock, whether
 *           somebody has to be woken.
 *
 *             busy --thread_to_idle--> idle --thread_to_polling--> polling --thread_to_busy--> busy
 *                                      idle --thread_to_asleep--> (asleep, still idle) --woken with the role--> polling
 *
 * INVARIANTS [K1] work in a queue, and a thread that is not busy: then somebody awake is going to look, or a wake-up
 *           is on its way. [K2] at most one seeker. [K3] the newest of a queue (its slot) is not counted as work
 *           until it is stale; while anybody is busy, a waiting seeker looks again after a while by itself. [K4] who
 *           sleeps without an end leaves timers, descriptors and slots to a seeker that waits, or to a sleeper that
 *           wakes by itself soon. [K5] whoever posts waits for no lock: it may be the handler of a signal, on the
 *           very thread that holds it. It leaves `rung`, and who gives the lock back does what it wanted. [K6] who
 *           has taken it upon himself to wake the seeker out of the poller does it before that is closed: he is
 *           counted under the lock (kickers), and who closes the pool waits for him. The seeker may wake up by itself
 *           meanwhile, run the pool's last strand, and end.
 * ORDERING  who is about to wait sets kick, then passes a barrier that all running threads pass too (membarrier; a
 *           fence where there is none), then looks once more. A producer pushes, then reads kick, without a fence.
 *           Either the look sees the push or the producer sees the kick [K1]. Posts are a full barrier themselves,
 *           and so is kick's store. Who rings stores `rung`, then tries the lock; who gives it back clears the lock,
 *           then reads `rung`; a full barrier between the two of each [K5].
 * PROGRESS  the lock is held for a few instructions; system calls are made outside of it.
 * NOT DONE  a wake-up for every push: it costs the pusher a system call and mostly finds nothing. Passing the role to a
 *           sleeper at every step to busy: one wake-up per event of a half-loaded server. So the
 *           seeker takes what it will run out of the queue before it gives the role up: it does not count as left, and
 *           nobody steals it meanwhile. Parting this file: what is done under the lock is nobody else's business, and
 *           a dozen of steps that may only be taken here would have to be there for all.
 */
#include "pinned.h"
#include "polled.h"
#include "posts.h"
#include "quiet.h"
#include "service.h"
#include "thread.h"
#include "timers.h"

/* A wait of the seeker while others are busy: a stale slot is not announced by anybody. */
#define WATCH_FIRST_NS INT64_C(1000000)
#define WATCH_MOST_NS INT64_C(8000000)
/* After a wake-up that found nothing, pushes don't wake for this long, doubled each time. */
#define FUTILE_NS INT64_C(50000)
enum { FUTILE_MOST = 5 };
/* What could not be decided for good is looked at again, QUIET_ASKED_MOST times. */
#define UNSURE_NS INT64_C(250000)
/* What is stolen costs both sides some cache misses, and a wake-up: work of less than this is left to its owner. */
#define LOOT_WORTH_NS INT64_C(10000)
/* A timer so near is waited for without a system call, which takes as long. */
#define NEAR_NS INT64_C(5000)
/* Of many timers that come one upon the other, that would be a processor for themselves: an eighth of the time may be
 * waited for so, beside NEAR_MOST_NS. The rest is slept, by as much as the system's own timers are late, and then all
 * that are due are fired. */
#define NEAR_MOST_NS INT64_C(200000)
#define NEAR_NAP_NS INT64_C(50000)
enum { NEAR_SHARE = 8, NEAR_MANY = 256 };

static void lock(struct thread *thread, struct pool *pool)
{
    spin_lock(&pool->lock, thread);
}

static void answer(struct pool *pool);

static void unlock(struct pool *pool)
{
    spin_unlock(&pool->lock);
    atomic_thread_fence(memory_order_seq_cst); /* [K5] */
    if (UNLIKELY(atomic_load_explicit(&pool->rung, memory_order_relaxed)))
        answer(pool);
}

static struct thread *seeker_of(struct pool *pool)
{
    return atomic_load_explicit(&pool->seeker, memory_order_relaxed);
}

/* Under the lock, after every change of what it mirrors. */
static void show_kick(struct pool *pool)
{
    uint32_t kick = 0;
    if (pool->parked)
        kick = KICK_SEEKER | (pool->eager ? KICK_PUSH : 0);
    else if (!seeker_of(pool) && !list_empty(&pool->sleepers))
        kick = KICK_SLEEPER;
    atomic_store_explicit(&pool->kick, kick, memory_order_seq_cst);
}

/* Before a look that decides about waiting: whatever was pushed before a producer read an old kick is seen after it
 * [K1]. */
static void barrier(struct pool *pool)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (pool->sub->shared && arch_membarrier_works)
        arch_membarrier();
}

/* Under the lock: somebody begins to move. */
static void get_busy(struct thread *thread)
{
    thread->state = THREAD_BUSY;
    thread->pool->busy++;
    thread->pool->stirs++;
}

/* Under the lock. NULL: the role is free. */
static void set_seeker(struct pool *pool, struct thread *thread)
{
    atomic_store_explicit(&pool->seeker, thread, memory_order_relaxed);
    pool->stirs++;
}

static void go_on(struct pool *pool)
{
    pool->parked = false;
    pool->stirs++;
}

bool pool_is_still(struct thread *by, struct pool *pool, uint64_t *stirs)
{
    lock(by, pool);
    bool still = pool->parked && pool->busy == 0 && !pool_stops(pool);
    *stirs += pool->stirs;
    unlock(pool);
    return still;
}

void quiet_stir(struct thread *thread)
{
    lock(thread, thread->pool);
    go_on(thread->pool);
    show_kick(thread->pool);
    unlock(thread->pool);
}

/* ---- transitions ----------------------------------------------------------------------------------------- */

static void thread_to_idle(struct thread *thread)
{
    struct pool *pool = thread->pool;
    lock(thread, pool);
    ASSERT(thread->state == THREAD_BUSY);
    thread->state = THREAD_IDLE;
    pool->busy--;
    bool last = pool->busy == 0 && pool->parked;
    unlock(pool);
    if (last && quiet_is_minded(pool->sub) && quiet_is_near(pool)) /* [Q2] */
        pool_kick_(thread, pool);
}

/* It has work of its own, or is to go: without the role. */
static void thread_from_idle(struct thread *thread)
{
    struct pool *pool = thread->pool;
    lock(thread, pool);
    ASSERT(thread->state == THREAD_IDLE);
    get_busy(thread);
    unlock(pool);
}

void pool_enter(struct thread *thread)
{
    struct pool *pool = thread->pool;
    plain_store(&thread->busy_since, driver_now(thread->sub), memory_order_relaxed);
    lock(NULL, pool);
    get_busy(thread);
    unlock(pool);
}

void pool_leave(struct thread *thread)
{
    thread_to_idle(thread);
}

/* Take the role, if it is free. Also for one that was given it while it slept. */
static bool thread_to_polling(struct thread *thread)
{
    struct pool *pool = thread->pool;
    lock(thread, pool);
    bool mine = seeker_of(pool) == thread;
    if (!seeker_of(pool)) {
        ASSERT(thread->state == THREAD_IDLE);
        set_seeker(pool, thread);
        thread->state = THREAD_POLLING;
        show_kick(pool);
        mine = true;
    }
    unlock(pool);
    return mine;
}

/* Under the lock: the role is free; give it to a sleeper, who is returned, to be woken after the lock. */
static struct thread *give_role(struct pool *pool)
{
    struct link *link = list_pop_front(&pool->sleepers);
    if (!link)
        return NULL;
    struct thread *heir = CONTAINER(link, struct thread, sleeping);
    ASSERT(heir->state == THREAD_IDLE);
    heir->state = THREAD_POLLING;
    set_seeker(pool, heir);
    return heir;
}

static void wake(struct thread *by, struct thread *heir)
{
    if (!heir)
        return;
    if (by)
        by->wakes++;
    driver_wake(heir);
}

/* The sleeper that looks around by itself soon, if there is one, stands in front. */
static bool sleeper_is_timed(struct pool *pool)
{
    return !list_empty(&pool->sleepers) && CONTAINER(pool->sleepers.next, struct thread, sleeping)->timed;
}

static bool any_event(struct thread *thread, struct pool *pool)
{
    return posts_any(&pool->posts, memory_order_relaxed) || pool_stops(pool) ||
           (timers_next(&pool->timers) != ARCH_FOREVER && timers_next(&pool->timers) <= driver_now(thread->sub));
}

static bool any_work(struct thread *thread, struct pool *pool)
{
    return pool->scheduler->work(pool) || any_event(thread, pool);
}

/* What only this thread can do. */
static bool any_own(struct thread *thread)
{
    return pinned_has_mail(thread) || thread_is_to_go(thread);
}

static bool done(struct thread *thread, struct pool *pool)
{
    bool late = thread->limit != ARCH_FOREVER && driver_now(thread->sub) >= thread->limit;
    return late || pool_stops(pool) || thread_is_to_go(thread);
}

/* The role is free and somebody sleeps: what came while nobody was told to announce it. */
static void look_again(struct thread *thread, struct pool *pool)
{
    barrier(pool);
    if (any_work(thread, pool))
        pool_kick_(thread, pool);
}

static void thread_to_busy(struct thread *thread)
{
    struct pool *pool = thread->pool;
    struct thread *heir = NULL;
    bool left = pool->count > 1 && pool->scheduler->work(pool);
    lock(thread, pool);
    ASSERT(thread->state == THREAD_POLLING && seeker_of(pool) == thread);
    get_busy(thread);   /* S-54: before the role is free */
    thread->unsure = 0; /* what is to be decided next is another thing */
    plain_store(&thread->busy_since, thread->now, memory_order_relaxed);
    set_seeker(pool, NULL);
    if (left || !sleeper_is_timed(pool)) /* [K4] */
        heir = give_role(pool);
    show_kick(pool);
    bool exposed = atomic_load_explicit(&pool->kick, memory_order_relaxed) & KICK_SLEEPER;
    unlock(pool);
    wake(thread, heir);
    if (exposed)
        look_again(thread, pool);
}

/* Returns true if it is asleep (among the sleepers), false if it has better to do. */
static bool thread_to_asleep(struct thread *thread, bool timed)
{
    struct pool *pool = thread->pool;
    lock(thread, pool);
    struct thread *seeker = seeker_of(pool);
    /* A busy thread that has the role for one look does not count: it does not wait. */
    bool sleep = seeker && seeker != thread && seeker->state == THREAD_POLLING && !pool_stops(pool);
    sleep = sleep && !pinned_doze(thread) && !thread_is_to_go(thread); /* [P2] */
    if (sleep) {
        thread->timed = timed;
        atomic_store_explicit(&thread->wake, 0, memory_order_relaxed);
        if (timed)
            list_push_front(&pool->sleepers, &thread->sleeping);
        else
            list_push_back(&pool->sleepers, &thread->sleeping);
        show_kick(pool);
    }
    unlock(pool);
    if (!sleep)
        pinned_wake(thread);
    return sleep;
}

static void thread_from_asleep(struct thread *thread)
{
    struct pool *pool = thread->pool;
    lock(thread, pool);
    if (thread->sleeping.next) /* nobody woke it: its time was over */
        list_remove(&thread->sleeping);
    show_kick(pool);
    unlock(pool);
    pinned_wake(thread);
}

/* ---- waking ---------------------------------------------------------------------------------------------- */

/* Who has to be woken: out of the poller, or as the new seeker. */
struct kicked {
    bool parked;
    struct thread *seeker, *heir;
};

/* Under the lock: whether the seeker is parked, and if so it is the caller's to wake, by unpoll. */
static bool unpark(struct pool *pool)
{
    bool parked = pool->parked;
    go_on(pool);
    if (parked)
        atomic_fetch_add_explicit(&pool->kickers, 1, memory_order_relaxed); /* [K6] */
    return parked;
}

/* After the lock. It may have woken up by itself since, and ended; who closes the pool waits for the last step. */
static void unpoll(struct pool *pool, struct thread *seeker)
{
    driver_unpoll(pool, seeker);
    arch_note_release(&pool->kickers);
    atomic_fetch_sub_explicit(&pool->kickers, 1, memory_order_release);
}

void pool_await_kickers(struct pool *pool)
{
    while (atomic_load_explicit(&pool->kickers, memory_order_acquire))
        driver_await(NULL);
    arch_note_acquire(&pool->kickers); /* [K6], for TSan, which sees the descriptor's write and close */
}

/* Under the lock. */
static struct kicked take_kicked(struct pool *pool)
{
    struct kicked kicked = {.parked = unpark(pool)};
    if (!kicked.parked && !seeker_of(pool))
        kicked.heir = give_role(pool);
    show_kick(pool);
    kicked.seeker = seeker_of(pool);
    return kicked;
}

static void wake_kicked(struct thread *by, struct pool *pool, const struct kicked *kicked)
{
    if (kicked->parked && by)
        by->wakes++;
    if (kicked->parked)
        unpoll(pool, kicked->seeker);
    wake(by, kicked->heir);
}

COLD void pool_kick_(struct thread *thread, struct pool *pool)
{
    lock(thread, pool);
    struct kicked kicked = take_kicked(pool);
    unlock(pool);
    wake_kicked(thread, pool, &kicked);
}

/* Whoever holds the lock looks at `rung` when it has given it back, this one too. */
static COLD void answer(struct pool *pool)
{
    while (atomic_load_explicit(&pool->rung, memory_order_seq_cst) &&
           !atomic_flag_test_and_set_explicit(&pool->lock, memory_order_seq_cst)) {
        arch_note_acquire(&pool->lock);
        atomic_store_explicit(&pool->rung, 0, memory_order_relaxed);
        struct kicked kicked = take_kicked(pool);
        spin_unlock(&pool->lock);
        atomic_thread_fence(memory_order_seq_cst); /* [K5] */
        wake_kicked(NULL, pool, &kicked);
    }
}

/* As pool_kick_, by anybody. */
static void ring(struct pool *pool)
{
    atomic_store_explicit(&pool->rung, 1, memory_order_seq_cst);
    answer(pool);
}

/* If it does not sleep yet, it looks once more before it does. */
void pool_rouse(struct thread *by, struct thread *sleeper)
{
    struct pool *pool = sleeper->pool;
    lock(by, pool);
    bool parked = seeker_of(pool) == sleeper && unpark(pool), asleep = sleeper->sleeping.next != NULL;
    if (!parked && asleep)
        list_remove(&sleeper->sleeping);
    show_kick(pool);
    unlock(pool);
    if (by && (parked || asleep))
        by->wakes++;
    if (parked)
        unpoll(pool, sleeper);
    else if (asleep)
        driver_wake(sleeper);
}

void pool_post(struct pool *pool, struct post *post)
{
    posts_put(&pool->posts, post);
    if (atomic_load_explicit(&pool->kick, memory_order_seq_cst))
        ring(pool);
}

void pool_retime(struct thread *thread, struct pool *pool, int64_t when)
{
    pool_fence(thread);
    if ((atomic_load_explicit(&pool->kick, memory_order_seq_cst) & KICK_SEEKER) && /* or [K4] somebody looks soon */
        when < atomic_load_explicit(&pool->until, memory_order_seq_cst))
        pool_kick_(thread, pool);
}

void pool_stop(struct thread *thread, struct pool *pool)
{
    atomic_store_explicit(&pool->stop, 1, memory_order_seq_cst);
    for (;;) {
        lock(thread, pool);
        bool parked = unpark(pool);
        struct link *link = list_pop_front(&pool->sleepers);
        show_kick(pool);
        struct thread *seeker = seeker_of(pool);
        unlock(pool);
        if (parked)
            unpoll(pool, seeker);
        if (!link)
            return;
        wake(thread, CONTAINER(link, struct thread, sleeping));
    }
}

/* ---- looking ---------------------------------------------------------------------------------------------- */

void pool_look(struct thread *thread)
{
    struct pool *pool = thread->pool;
    if (!thread->shared) {
        pool_take_events(thread, pool);
        return;
    }
    if (seeker_of(pool))
        return; /* it looks */
    lock(thread, pool);
    bool mine = !seeker_of(pool);
    if (mine) {
        set_seeker(pool, thread);
        show_kick(pool);
    }
    unlock(pool);
    if (!mine)
        return;
    pool_take_events(thread, pool);
    if (pool->scheduler->even_out && !thread_is_to_go(thread))
        pool->scheduler->even_out(thread); /* [E1] */
    lock(thread, pool);
    set_seeker(pool, NULL);
    show_kick(pool);
    bool exposed = atomic_load_explicit(&pool->kick, memory_order_relaxed) & KICK_SLEEPER;
    unlock(pool);
    if (exposed)
        look_again(thread, pool);
}

/* Nobody of the pool is busy, and its seeker is about to wait: whether that ends somebody's wait, who is in a queue
 * then. */
static bool decide(struct thread *thread, struct pool *pool)
{
    struct batch batch;
    struct member *member;
    if (!quiet_is_minded(pool->sub))
        return false;
    batch_init(&batch);
    bool unsure = quiet_is_near(pool) && pool->sub->ops->quiet(thread, &batch, thread->unsure);
    bool some = batch.first != NULL;
    thread->unsure = unsure ? thread->unsure + 1 : 0;
    while ((member = batch_take(&batch)))
        pool_deliver(thread, member);
    return some;
}

/* ---- driven from outside: drive.c ------------------------------------------------------------------------- */

/* Under the lock. Returns whether nobody is busy. */
static bool settle(struct pool *pool)
{
    pool->parked = pool->eager = true;
    atomic_store_explicit(&pool->until, timers_next(&pool->timers), memory_order_seq_cst);
    show_kick(pool);
    return pool->busy == 0;
}

bool pool_settle(struct thread *thread)
{
    struct pool *pool = thread->pool;
    lock(thread, pool);
    thread->state = THREAD_POLLING;
    pool->busy--;
    set_seeker(pool, thread);
    bool lull = settle(pool);
    unlock(pool);
    bool own = pinned_doze(thread) || any_own(thread) || pinned_has_work(thread); /* [P2]; it may come back too late */
    barrier(pool);
    if (own || any_work(thread, pool)) /* [K1] */
        return true;
    if (!lull || !decide(thread, pool))
        return false;
    lock(thread, pool);
    settle(pool);
    unlock(pool);
    return true;
}

void pool_unsettle(struct thread *thread)
{
    struct pool *pool = thread->pool;
    lock(thread, pool);
    go_on(pool);
    set_seeker(pool, NULL);
    get_busy(thread);
    show_kick(pool);
    unlock(pool);
    pinned_wake(thread);
}

/* ---- seeking --------------------------------------------------------------------------------------------- */

/* How long the seeker may wait: until the next timer; a little while if others are busy. */
static int64_t waiting_time(struct thread *thread, struct pool *pool, bool eager, int rounds)
{
    int64_t until = timers_next(&pool->timers), now = driver_now(thread->sub), watch = ARCH_FOREVER;
    until = until < thread->limit ? until : thread->limit;
    bool again = thread->saw_slot && !thread->looked_twice; /* once: to see whether it goes stale */
    thread->looked_twice = again;
    thread->saw_slot = false;
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

/* Whether a near timer is to be waited for without sleeping. */
static bool spins_for_timer(struct thread *thread, struct pool *pool, int64_t now)
{
    if (timers_next(&pool->timers) - now >= NEAR_NS)
        return false;
    if (thread->driver || atomic_load_explicit(&pool->timers.count, memory_order_relaxed) < NEAR_MANY)
        return true;
    int64_t passed = now - pool->near_seen;
    int64_t credit = pool->near_credit + (pool->near_spins ? -passed : passed / NEAR_SHARE);
    pool->near_credit = credit < NEAR_MOST_NS ? credit : NEAR_MOST_NS;
    pool->near_seen = now;
    pool->near_spins = pool->near_credit > 0;
    return pool->near_spins;
}

/* A thread of the process that ends just then is one too many for those who look: they look again, but not for ever. */
static int64_t soon(struct thread *thread, int64_t next)
{
    if (LIKELY(!thread->unsure) || thread->unsure > QUIET_ASKED_MOST)
        return next;
    int64_t when = driver_now(thread->sub) + (UNSURE_NS << 2 * thread->unsure);
    return when < next ? when : next;
}

/* The seeker waits in the poller, at least for `nap`, unless it is told. Returns whether it was kicked. */
static bool park(struct thread *thread, struct pool *pool, bool eager, int rounds, int64_t nap)
{
    lock(thread, pool);
    pool->parked = true;
    pool->eager = eager;
    bool lull = pool->busy == 0, decided = false;
    int64_t until = waiting_time(thread, pool, eager, rounds);
    atomic_store_explicit(&pool->until, until, memory_order_seq_cst);
    show_kick(pool);
    unlock(pool);
    bool own = pinned_doze(thread) || any_own(thread); /* [P2] */
    barrier(pool);
    bool waits = !own && !(eager ? any_work(thread, pool) : any_event(thread, pool));
    if (waits && lull)
        waits = !(decided = decide(thread, pool));
    if (waits) {                                                 /* else it looks by itself, soon [K1] */
        int64_t next = soon(thread, timers_next(&pool->timers)); /* it may have been started before the kick showed */
        until = next < until ? next : until;
        atomic_store_explicit(&pool->until, until, memory_order_seq_cst);
        thread->sleeps++;
        pool_wait_polled(thread, pool, nap > until ? nap : until);
    }
    lock(thread, pool);
    bool kicked = !pool->parked && !decided;
    go_on(pool);
    show_kick(pool);
    unlock(pool);
    pinned_wake(thread);
    return kicked;
}

/* Whether what this thread stole last was worth no theft: it has run dry at once. Then the others do better without it
 * for a while. */
static bool judge_loot(struct thread *thread, struct pool *pool)
{
    if (!thread->robbed)
        return false;
    bool poor = driver_now(thread->sub) - thread->robbed < LOOT_WORTH_NS;
    thread->robbed = 0;
    if (!poor)
        pool->futile = 0;
    else if (pool->futile < FUTILE_MOST)
        pool->futile++;
    return poor;
}

/* The role is this thread's: look everywhere, until there is something to run, which is returned, or the pool is to
 * stop.
 */
static struct fibre *seek(struct thread *thread, struct pool *pool)
{
    int64_t since = thread->now = driver_now(thread->sub);
    bool eager = true, kicked = false, poor = judge_loot(thread, pool);
    for (int rounds = 0; !done(thread, pool);) {
        thread_must_not_be_left(thread);
        pool_take_events(thread, pool);
        struct fibre *fibre = thread_pick(thread);
        if (fibre)
            return fibre;
        if (pool->scheduler->steal(thread)) {
            thread->robbed = driver_now(thread->sub);
            if ((fibre = thread_pick(thread)))
                return fibre;
        }
        if (UNLIKELY(atomic_load_explicit(&thread->hold, memory_order_relaxed)))
            pool_stand_still(thread);
        if (posts_any(&pool->posts, memory_order_relaxed)) { /* [N3] or one that is not linked yet [N2] */
            driver_await(thread);
            continue;
        }
        int64_t now = thread->now = driver_now(thread->sub);
        bool near = spins_for_timer(thread, pool, now);
        bool asked = atomic_load_explicit(&pool->sub->minds_quiet, memory_order_relaxed) >= QUIET_WAITER;
        if (near || (thread->shared && !poor && !asked && now - since < pool->spin_ns)) { /* who waits decides */
            driver_relax(thread);
            continue;
        }
        int64_t nap = timers_next(&pool->timers) - now < NEAR_NS ? now + NEAR_NAP_NS : 0;
        if (kicked && pool->futile < FUTILE_MOST)
            pool->futile++;
        eager = !kicked && !poor;
        poor = false;
        kicked = park(thread, pool, eager, rounds++, nap) && eager;
        thread->now = driver_now(thread->sub);
        if (kicked)
            since = thread->now;
    }
    return NULL;
}

/* Others may spin on the role for a while, in the hope that the seeker finds more than it can do. */
static bool spin_for_role(struct thread *thread, struct pool *pool)
{
    int64_t since = driver_now(thread->sub);
    do {
        if (!seeker_of(pool) || pool_stops(pool) || any_own(thread))
            return true;
        for (int i = 0; i < 32; i++)
            driver_relax(thread);
    } while (driver_now(thread->sub) - since < pool->spin_ns);
    return false;
}

static void sleep_a_while(struct thread *thread, struct pool *pool)
{
    for (bool timed = true; thread_to_asleep(thread, timed); timed = false) {
        int64_t deadline = timed ? driver_now(thread->sub) + 2 * WATCH_FIRST_NS : ARCH_FOREVER;
        thread->sleeps++;
        driver_sleep(thread, deadline);
        thread_must_not_be_left(thread);
        thread_from_asleep(thread);
        if (!seeker_of(pool) || seeker_of(pool) == thread)
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
            pool->near_spins = false;
            thread_to_busy(thread);
            return fibre;
        }
        if (pinned_has_mail(thread))
            break;
        if (!spin_for_role(thread, pool))
            sleep_a_while(thread, pool);
    }
    thread->now = driver_now(thread->sub);
    if (seeker_of(pool) == thread) /* it was given the role while it slept, and is to go */
        thread_to_busy(thread);
    else
        thread_from_idle(thread);
    return pinned_pick(thread);
}

struct fibre *pool_find_work(struct thread *thread)
{
    struct fibre *fibre = find_work(thread);
    service_begin(thread, driver_ticks(thread));
    return fibre;
}
