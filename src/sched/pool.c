/*
 * A pool's making, running and ending, and holding its threads still. Model of its closing: tests/models/closing.pml.
 */
#include "pool.h"

#include "pinned.h"
#include "quiet.h"
#include "rest.h"
#include "runq.h"
#include "stack.h"
#include "thread.h"
#include "timers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- the threads' records -------------------------------------------------------------------------------- */

static struct thread *make_thread(struct pool *pool, int index)
{
    struct subprocess *sub = pool->sub;
    size_t size = (sub->ops->thread_size + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1);
    struct thread *thread = aligned_alloc(CACHE_LINE, size);
    if (!thread)
        return NULL;
    memset(thread, 0, size);
    thread->pool = pool;
    thread->sub = sub;
    thread->index = index;
    thread->rng.state = sub->seed + (uint64_t)index * UINT64_C(0x9E3779B97F4A7C15);
    atomic_init(&thread->held, HELD_RESTS); /* until it has begun */
    runq_open(&thread->runq);
    pinned_open(&thread->pinned);
    if (sub->ops->thread_open(thread) < 0) {
        free(thread);
        return NULL;
    }
    return thread;
}

/* Before a thread of the system begins to live in it. */
static void ready_thread(struct thread *thread)
{
    struct pool *pool = thread->pool;
    struct subprocess *sub = pool->sub;
    thread->shared = sub->shared;
    thread->census = sub->census;
    thread->stealing = pool->scheduler == &scheduler_stealing;
    thread->driver = sub->driver;
    __atomic_store_n(&thread->picks.any, 0, __ATOMIC_RELAXED);
    thread->picks.seeded = sub->driver != NULL;
    __atomic_store_n(&thread->odd.any, 0, __ATOMIC_SEQ_CST);
    thread->limit = ARCH_FOREVER;
    thread->usual = sub->stacks.usual;
    thread->kept = sub->stack_most ? 0 : thread->usual;
    thread->period = thread->ticks = 1;
    thread->state = THREAD_BUSY;
    thread->canaries = false;
    if (atomic_load_explicit(&sub->stacks.warned, memory_order_seq_cst))
        stack_mind_canaries(thread);
    atomic_store_explicit(&thread->life, THREAD_HERE, memory_order_seq_cst);
}

int pool_make_threads(struct pool *pool, int count)
{
    for (int i = pool_count(pool); i < count; i++) {
        struct thread *thread = make_thread(pool, i);
        if (!thread)
            return -ENOMEM;
        pool->threads[i] = thread;
        atomic_store_explicit(&pool->count, i + 1, memory_order_release);
    }
    return 0;
}

static void unmake_threads(struct pool *pool)
{
    for (int i = 0; i < pool_count(pool); i++) {
        pool->sub->ops->thread_close(pool->threads[i]);
        free(pool->threads[i]);
    }
    free(pool->threads);
}

/* ---- making ---------------------------------------------------------------------------------------------- */

static void share(struct subprocess *sub)
{
    sub->shared = true;
    for (int i = 0; i < pool_count(&sub->pool); i++)
        sub->pool.threads[i]->shared = true;
}

void subprocess_share(struct thread *thread)
{
    if (!thread->shared) /* nobody else runs: the caller is the only thread */
        share(thread->sub);
}

/* The record is the caller's: new, or free. What others may look at, whatever it stands for, is left as it is. */
static int prepare(struct pool *pool, const struct pool_plan *plan)
{
    pool->scheduler = plan->scheduler;
    pool->custom = plan->custom;
    pool->spin_ns = plan->spin_ns;
    pool->balance = plan->balance;
    pool->cpus = plan->cpus;
    pool->cpus_count = plan->cpus_count;
    pool->busy = 0;
    pool->parked = pool->eager = false;
    pool->futile = 0;
    pool->gone = NULL; /* if one thread can't be had the others end, and tell nobody */
    pool->above = NULL;
    atomic_store_explicit(&pool->watched, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->keepers, 1, memory_order_relaxed);
    atomic_store_explicit(&pool->stop, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->driving, POOL_UNDRIVEN, memory_order_relaxed);
    atomic_store_explicit(&pool->size, plan->threads, memory_order_relaxed);
    list_init(&pool->sleepers);
    runq_open(&pool->global);
    timers_open(&pool->timers);
    rest_open(pool);
    int error = pool_make_threads(pool, plan->threads);
    return error || !pool->scheduler->open ? error : pool->scheduler->open(pool);
}

/* A record that nobody knows yet. */
static int make_record(struct subprocess *sub, struct pool *pool, int room)
{
    pool->sub = sub;
    pool->room = room;
    pool->threads = calloc((size_t)room, sizeof *pool->threads);
    if (!pool->threads)
        return -ENOMEM;
    struct pool *older = atomic_load_explicit(&sub->pools, memory_order_relaxed);
    do
        atomic_store_explicit(&pool->older, older, memory_order_relaxed);
    while (
        !atomic_compare_exchange_weak_explicit(&sub->pools, &older, pool, memory_order_release, memory_order_relaxed));
    return 0;
}

static int open_record(struct pool *pool, const struct pool_plan *plan)
{
    struct subprocess *sub = pool->sub;
    int error = prepare(pool, plan);
    if (!error && !sub->driver && (error = arch_poller_open(&pool->poller)) && pool->scheduler->close)
        pool->scheduler->close(pool);
    if (error)
        return error;
    atomic_store_explicit(&pool->state, POOL_OPEN, memory_order_seq_cst);
    return 0;
}

static int room_for(const struct pool_plan *plan)
{
    return plan->scheduler->alone ? 1 : THREADS_MOST;
}

/* A free record, which is the caller's from now on; NULL: there is none. */
static struct pool *take_record(struct subprocess *sub, int room)
{
    struct pool *pool = atomic_load_explicit(&sub->pools, memory_order_acquire);
    for (; pool; pool = atomic_load_explicit(&pool->older, memory_order_acquire)) {
        uint32_t none = POOL_NONE;
        if (pool != &sub->pool && pool->room == room &&
            atomic_compare_exchange_strong_explicit(&pool->state, &none, POOL_CLOSING, memory_order_acquire,
                                                    memory_order_relaxed))
            return pool;
    }
    return NULL;
}

int pool_open_first(struct subprocess *sub, const struct pool_plan *plan)
{
    if (plan->threads > 1 || ARCH_NOTES_SEPARATE) /* what orders strands is to be seen by TSan */
        sub->shared = true;
    int error = make_record(sub, &sub->pool, room_for(plan));
    return error ? error : open_record(&sub->pool, plan);
}

/* ---- closing --------------------------------------------------------------------------------------------- */

/* Strands that were counted out, then those that were counted in: none of the numbers ever falls, and the first never
 * overtakes the second. So if they are equal as they are read, in this order, they were equal in between. */
uint64_t pool_live(struct pool *pool)
{
    uint64_t out = atomic_load_explicit(&pool->refused, memory_order_seq_cst), in = 0;
    for (int i = 0; i < pool_count(pool); i++)
        out += atomic_load_explicit(&pool->threads[i]->ended, memory_order_acquire) +
               atomic_load_explicit(&pool->threads[i]->departed, memory_order_acquire);
    for (int i = 0; i < pool_count(pool); i++)
        in += atomic_load_explicit(&pool->threads[i]->spawned, memory_order_acquire);
    return in + atomic_load_explicit(&pool->arrived, memory_order_seq_cst) - out;
}

static bool is_closing(struct pool *pool)
{
    return atomic_load_explicit(&pool->state, memory_order_seq_cst) == POOL_CLOSING;
}

void pool_close_begin(struct thread *thread, struct pool *pool, void (*gone)(struct pool *pool))
{
    pool->gone = gone;
    arch_note_release(&pool->gone);
    spin_lock(&pool->resizing, thread);
    atomic_store_explicit(&pool->state, POOL_CLOSING, memory_order_seq_cst);
    for (int i = 0; i < pool_count(pool); i++) /* whose strands end the slow way, which looks at the state */
        __atomic_store_n(&pool->threads[i]->odd.always, true, __ATOMIC_SEQ_CST);
    spin_unlock(&pool->resizing);
    if (arch_membarrier_works)
        arch_membarrier(); /* a strand that ended without looking was counted out before this */
    else
        atomic_thread_fence(memory_order_seq_cst);
}

void pool_close_look(struct thread *thread, struct pool *pool)
{
    if (is_closing(pool) && !pool_live(pool))
        pool_stop(thread, pool);
}

void pool_note_end_(struct thread *thread)
{
    if (thread->shared && !arch_membarrier_works)
        atomic_thread_fence(memory_order_seq_cst);
    pool_close_look(thread, thread->pool);
}

bool pool_arrive(struct thread *thread, struct pool *pool)
{
    atomic_fetch_add_explicit(&pool->arrived, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&pool->state, memory_order_seq_cst) == POOL_OPEN)
        return true;
    pool_turn_back(thread, pool);
    return false;
}

void pool_turn_back(struct thread *thread, struct pool *pool)
{
    atomic_fetch_add_explicit(&pool->refused, 1, memory_order_seq_cst);
    pool_close_look(thread, pool);
}

/* What was posted when nobody took it any more. */
static void run_late_posts(struct pool *pool)
{
    struct post *post = atomic_exchange_explicit(&pool->posts, NULL, memory_order_acquire);
    while (post) {
        struct post *next = post->next;
        (void)post->run(post);
        post = next;
    }
}

void pool_close(struct pool *pool)
{
    pool_await_kickers(pool);
    atomic_store_explicit(&pool->state, POOL_CLOSED, memory_order_seq_cst);
    run_late_posts(pool);
    rest_close(pool);
    timers_close(&pool->timers);
    if (pool->scheduler->close)
        pool->scheduler->close(pool);
    if (!pool->sub->driver)
        arch_poller_close(&pool->poller);
}

void pool_keep(struct pool *pool)
{
    atomic_fetch_add_explicit(&pool->keepers, 1, memory_order_relaxed);
}

void pool_let_go(struct pool *pool)
{
    if (atomic_fetch_sub_explicit(&pool->keepers, 1, memory_order_acq_rel) == 1)
        atomic_store_explicit(&pool->state, POOL_NONE, memory_order_release);
}

void pools_free(struct subprocess *sub)
{
    struct pool *pool = atomic_load_explicit(&sub->pools, memory_order_acquire), *older;
    for (; pool; pool = older) {
        older = atomic_load_explicit(&pool->older, memory_order_acquire);
        run_late_posts(pool);
        unmake_threads(pool);
        if (pool != &sub->pool)
            free(pool);
    }
}

/* ---- running --------------------------------------------------------------------------------------------- */

/* fn(arg) on the calling thread of the system, with a stack for its signals. */
static void with_signal_stack(void (*fn)(void *), void *arg)
{
    void *memory;
    if (arch_signals_thread_enter(&memory) < 0)
        memory = NULL; /* an overflow then ends the program without a report */
    fn(arg);
    if (memory)
        arch_signals_thread_leave(memory);
}

static void loop(void *thread)
{
    thread_loop(thread);
}

static void live(struct thread *thread)
{
    struct thread *before = thread_self();
    thread_adopt(thread);
    thread->os_id = arch_thread_id();
    if (thread->driver) {
        thread_loop(thread);
    } else {
        pool_move(thread);
        with_signal_stack(loop, thread);
        pool_rest(thread);
    }
    thread_adopt(before);
}

/* The last one says so. Thread 0 stays until the pool is stopped, so then that is what has come. */
static void leave_pool(struct pool *pool)
{
    if (atomic_fetch_sub_explicit(&pool->alive, 1, memory_order_acq_rel) != 1)
        return;
    arch_note_acquire(&pool->gone);
    if (pool->gone)
        pool->gone(pool);
}

/* Who closes the pool waits for the last step: the run may end right after that, and knows nothing of this thread. */
static void leave_for_good(struct thread *thread)
{
    leave_pool(thread->pool);
    atomic_store_explicit(&thread->life, THREAD_NONE, memory_order_seq_cst);
}

static void drive_loop(void *thread)
{
    thread_drive(thread);
}

/* As long as nobody drives, thread 0 counts as a seeker that waits: what comes makes the poller's descriptor readable.
 */
static void drive(struct thread *thread, int64_t until)
{
    struct pool *pool = thread->pool;
    thread_adopt(thread);
    thread->os_id = arch_thread_id();
    thread->limit = until;
    pool_move(thread);
    pool_unsettle(thread);
    with_signal_stack(drive_loop, thread);
    thread->limit = ARCH_FOREVER;
    if (pool_settle(thread))
        arch_poller_kick(&pool->poller);
    else
        arch_poller_arm(&pool->poller, timers_next(&pool->timers));
    pool_rest(thread);
    thread_adopt(NULL);
}

int pool_drive(struct pool *pool, int64_t until, bool waits)
{
    struct thread *thread = pool->threads[0];
    uint32_t me = arch_thread_id(), none = 0;
    if (!atomic_compare_exchange_strong_explicit(&pool->driver, &none, me, memory_order_acq_rel,
                                                 memory_order_acquire) &&
        none != me) {
        atomic_store_explicit(&pool->driving, POOL_UNDRIVEN, memory_order_release);
        return -EPERM;
    }
    thread->waits = waits;
    if (!pool_stops(pool))
        drive(thread, until);
    if (!pool_stops(pool)) {
        atomic_store_explicit(&pool->driving, POOL_UNDRIVEN, memory_order_release);
        return 1;
    }
    pool_unsettle(thread); /* the next pool in this record may have a thread of its own */
    atomic_store_explicit(&pool->driving, POOL_DRIVEN_TO_ITS_END, memory_order_release);
    leave_for_good(thread);
    return 0;
}

/* What the C library has made for the thread, such as its errno, was there before any strand came here. */
static void *thread_main(void *arg)
{
    struct thread *thread = arg;
    struct pool *pool = thread->pool;
    arch_note_release(&thread->sub->pool);
    if (pool->cpus && !thread->driver && arch_thread_bind(pool->cpus[thread->index % pool->cpus_count]) < 0)
        thread->sub->ops->warn(thread->sub, "a thread can't be bound to the CPU that it was opened for");
    live(thread);
    leave_pool(pool);
    return NULL;
}

/* A thread that is about to be started while others are held: those who hold or let go may have missed it. */
static void hold_new(struct thread *thread)
{
    struct subprocess *sub = thread->sub;
    if (!atomic_load_explicit(&sub->holding, memory_order_seq_cst))
        return;
    atomic_store_explicit(&thread->hold, 1, memory_order_seq_cst);
    if (!atomic_load_explicit(&sub->holding, memory_order_seq_cst))
        atomic_store_explicit(&thread->hold, 0, memory_order_seq_cst);
}

int pool_start_thread(struct pool *pool, int index)
{
    struct thread *thread = pool->threads[index];
    struct subprocess *sub = pool->sub;
    ready_thread(thread);
    hold_new(thread);
    pool_enter(thread);
    atomic_fetch_add_explicit(&pool->alive, 1, memory_order_relaxed);
    int error = sub->driver ? sub->driver->start(thread, thread_main)
                            : arch_thread_start(&thread->os, thread_main, thread, "strand");
    if (error) {
        atomic_fetch_sub_explicit(&pool->alive, 1, memory_order_relaxed);
        atomic_store_explicit(&thread->life, THREAD_NONE, memory_order_seq_cst);
        pool_pass_on(thread); /* [Z1] it was here for a moment, and others may have posted to it */
        pool_leave(thread);
        if (atomic_load_explicit(&pool->kick, memory_order_seq_cst))
            pool_kick_(NULL, pool);
    }
    return error;
}

/* One of a pool that is driven is somebody else's, and says itself that it has ended. */
static void await_driver(struct thread *thread)
{
    while (thread_life(thread) != THREAD_NONE)
        driver_await(thread_self());
}

void pool_join_thread(struct thread *thread)
{
    if (thread_life(thread) == THREAD_NONE)
        return;
    if (pool_is_driven(thread->pool))
        await_driver(thread);
    else if (thread->driver)
        thread->driver->join(thread);
    else
        arch_thread_join(thread->os);
    atomic_store_explicit(&thread->life, THREAD_NONE, memory_order_seq_cst);
}

void pool_join_threads(struct pool *pool, int first)
{
    for (int i = first; i < pool_count(pool); i++)
        pool_join_thread(pool->threads[i]);
}

static int start(struct pool *pool, int first)
{
    int size = atomic_load_explicit(&pool->size, memory_order_relaxed);
    for (int i = first; i < size; i++) {
        int error = pool_start_thread(pool, i);
        if (error) {
            /* The ones that did start have to end again; the others must not be waited for. */
            pool_stop(NULL, pool);
            pool_join_threads(pool, first);
            return error;
        }
    }
    return 0;
}

/* Nobody drives it yet. */
static void settle(struct pool *pool)
{
    ready_thread(pool->threads[0]);
    atomic_store_explicit(&pool->driver, 0, memory_order_relaxed);
    atomic_fetch_add_explicit(&pool->alive, 1, memory_order_relaxed); /* whoever will */
    pool_enter(pool->threads[0]);
    (void)pool_settle(pool->threads[0]);
}

int pool_make(struct thread *thread, const struct pool_plan *plan, struct pool **out)
{
    struct subprocess *sub = thread->sub;
    struct pool *pool = take_record(sub, room_for(plan));
    int error = 0;
    subprocess_share(thread);
    if (!pool) {
        pool = driver_refuses(thread) ? NULL : aligned_alloc(CACHE_LINE, sizeof *pool);
        if (!pool)
            return -ENOMEM;
        memset(pool, 0, sizeof *pool);
        atomic_store_explicit(&pool->state, POOL_CLOSING, memory_order_relaxed);
        if ((error = make_record(sub, pool, room_for(plan)))) {
            free(pool);
            return error;
        }
    }
    error = open_record(pool, plan);
    if (!error && (error = pool_is_driven(pool) ? 0 : start(pool, 0)))
        pool_close(pool);
    if (!error && pool_is_driven(pool))
        settle(pool);
    if (error)
        pool_let_go(pool);
    *out = pool;
    return error;
}

void pool_unmake(struct thread *thread, struct pool *pool)
{
    pool_stop(thread, pool);
    if (pool_is_driven(pool)) {
        pool_unsettle(pool->threads[0]);
        leave_for_good(pool->threads[0]);
    }
    pool_join_threads(pool, 0);
    pool_close(pool);
}

/* The first fibre, when all threads are there: into the queue of the first thread, which may be running already. Before
 * that nobody is to take the run for one that is out of work. */
static void launch(struct pool *pool, struct fibre *root, bool adopt)
{
    struct subprocess *sub = pool->sub;
    if (adopt)
        pool->scheduler->push(pool->threads[0], root, PUSH_NEW);
    else
        pool_send(NULL, root);
    if (!sub->ends_dry)
        return;
    atomic_fetch_or_explicit(&sub->minds_quiet, QUIET_VERDICT, memory_order_seq_cst);
    if (!adopt)
        pool_kick_(NULL, pool); /* it may be dry by now, without anybody having minded */
}

static void play_threads(void *arg)
{
    struct subprocess *sub = arg;
    sub->driver->play(sub);
}

static int play(struct pool *pool, struct fibre *root)
{
    struct subprocess *sub = pool->sub;
    launch(pool, root, true);
    int error = start(pool, 0);
    if (error)
        return error;
    with_signal_stack(play_threads, sub);
    arch_note_acquire(sub);
    return 0;
}

int pool_run(struct pool *pool, struct fibre *root, bool adopt)
{
    if (pool->sub->driver)
        return play(pool, root);
    int first = adopt ? 1 : 0;
    if (adopt) {
        ready_thread(pool->threads[0]);
        pool_enter(pool->threads[0]);
    }
    int error = start(pool, first);
    if (error)
        return error;
    launch(pool, root, adopt);
    if (adopt)
        live(pool->threads[0]);
    pool_join_threads(pool, first);
    arch_note_acquire(pool->sub);
    return 0;
}

/* ---- holding still --------------------------------------------------------------------------------------- */

void pool_stand_still(struct thread *thread)
{
    uint32_t before =
        atomic_load_explicit(&thread->held, memory_order_relaxed); /* in a handler, of a sleeping one: HELD_RESTS */
    thread->held_count = 0;
    thread->held_at = __builtin_frame_address(0);
    if (thread->current)
        thread->held_count = arch_trace(thread->held_ips, sizeof thread->held_ips / sizeof *thread->held_ips);
    arch_note_release(thread->sub);
    while (atomic_load_explicit(&thread->hold, memory_order_seq_cst)) {
        atomic_store_explicit(&thread->held, HELD_STANDS, memory_order_seq_cst);
        if (thread->driver)
            thread->driver->relax(thread);
        else
            arch_futex_wait(&thread->hold, 1, ARCH_FOREVER);
        atomic_store_explicit(&thread->held, before, memory_order_seq_cst);
    }
    arch_note_acquire(&thread->sub->pool);
}

void pool_rest(struct thread *thread)
{
    atomic_store_explicit(&thread->held, HELD_RESTS, memory_order_seq_cst);
}

void pool_move(struct thread *thread)
{
    struct subprocess *sub = thread->sub;
    atomic_store_explicit(&thread->held, 0, memory_order_seq_cst); /* [G1], docs/protocols/watchdog.md */
    if (UNLIKELY(atomic_load_explicit(&sub->drowsy, memory_order_seq_cst)))
        sub->ops->moved(sub);
    if (UNLIKELY(atomic_load_explicit(&thread->hold, memory_order_seq_cst)))
        pool_stand_still(thread);
}

static bool is_held(struct thread *thread)
{
    return atomic_load_explicit(&thread->held, memory_order_seq_cst) != 0;
}

int pool_hold(struct thread *thread, struct subprocess *sub, int64_t deadline)
{
    int loose = 0;
    atomic_store_explicit(&sub->holding, 1, memory_order_seq_cst);
    for (struct thread *other = thread_first(sub); other; other = thread_after(other))
        if (other != thread)
            atomic_store_explicit(&other->hold, 1, memory_order_seq_cst);
    for (struct thread *other = thread_first(sub); other; other = thread_after(other)) {
        while (other != thread && !is_held(other) && driver_now(sub) < deadline)
            driver_await(thread);
        loose += other != thread && !is_held(other);
    }
    return loose;
}

void pool_release(struct thread *thread, struct subprocess *sub)
{
    atomic_store_explicit(&sub->holding, 0, memory_order_seq_cst);
    for (struct thread *other = thread_first(sub); other; other = thread_after(other)) {
        if (other == thread)
            continue;
        atomic_store_explicit(&other->hold, 0, memory_order_seq_cst);
        if (!thread->driver)
            arch_futex_wake(&other->hold, 1);
    }
}

struct thread *thread_first(struct subprocess *sub)
{
    struct pool *pool = atomic_load_explicit(&sub->pools, memory_order_acquire);
    while (pool && !pool_count(pool))
        pool = atomic_load_explicit(&pool->older, memory_order_acquire);
    return pool ? pool->threads[0] : NULL;
}

struct thread *thread_after(struct thread *thread)
{
    struct pool *pool = thread->pool;
    if (thread->index + 1 < pool_count(pool))
        return pool->threads[thread->index + 1];
    do
        pool = atomic_load_explicit(&pool->older, memory_order_acquire);
    while (pool && !pool_count(pool));
    return pool ? pool->threads[0] : NULL;
}
