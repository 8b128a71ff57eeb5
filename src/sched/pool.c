/*
 * A pool's making, running and ending, and holding its threads still.
 */
#include "pool.h"

#include "rest.h"
#include "runq.h"
#include "stack.h"
#include "thread.h"
#include "timers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- making ---------------------------------------------------------------------------------------------- */

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
    thread->shared = sub->shared;
    thread->census = sub->census;
    thread->stealing = pool->scheduler == &scheduler_stealing;
    thread->driver = sub->driver;
    thread->usual = sub->stacks.usual;
    thread->period = thread->ticks = 1;
    thread->rng.state = sub->seed + (uint64_t)index * UINT64_C(0x9E3779B97F4A7C15);
    thread->state = THREAD_BUSY;
    atomic_init(&thread->held, 1); /* until it has begun */
    runq_open(&thread->runq);
    if (sub->ops->thread_open(thread) < 0) {
        free(thread);
        return NULL;
    }
    return thread;
}

static void unmake_threads(struct pool *pool)
{
    for (int i = 0; i < pool->count; i++) {
        pool->sub->ops->thread_close(pool->threads[i]);
        free(pool->threads[i]);
    }
    free(pool->threads);
}

int pool_open(struct subprocess *sub, struct pool *pool, const struct scheduler *scheduler, int count, int64_t spin_ns)
{
    memset(pool, 0, sizeof *pool);
    pool->sub = sub;
    pool->scheduler = scheduler;
    pool->spin_ns = spin_ns;
    pool->busy = count;
    if (count > 1 || ARCH_NOTES_SEPARATE) /* what orders strands is to be seen by TSan */
        sub->shared = true;
    list_init(&pool->sleepers);
    runq_open(&pool->global);
    timers_open(&pool->timers);
    rest_open(pool);
    int error = sub->driver ? 0 : arch_poller_open(&pool->poller);
    if (error)
        return error;
    pool->threads = calloc((size_t)count, sizeof *pool->threads);
    while (pool->threads && pool->count < count) {
        struct thread *thread = make_thread(pool, pool->count);
        if (!thread)
            break;
        pool->threads[pool->count++] = thread;
    }
    if (pool->count == count)
        return 0;
    pool_close(pool);
    return -ENOMEM;
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
    run_late_posts(pool);
    if (pool->threads)
        unmake_threads(pool);
    timers_close(&pool->timers);
    if (!pool->sub->driver)
        arch_poller_close(&pool->poller);
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

/* What the C library has made for the thread, such as its errno, was there before any strand came here. */
static void *thread_main(void *arg)
{
    arch_note_release(&((struct thread *)arg)->sub->pool);
    live(arg);
    return NULL;
}

static int start(struct pool *pool, int first)
{
    for (int i = first; i < pool->count; i++) {
        int error = arch_thread_start(&pool->threads[i]->os, thread_main, pool->threads[i], "strand");
        if (error) {
            /* The ones that did start have to end again; the others must not be waited for. */
            pool_stop(NULL, pool);
            while (i-- > first)
                arch_thread_join(pool->threads[i]->os);
            return error;
        }
    }
    return 0;
}

/* The first fibre, when all threads are there: into the queue of the first thread, which may be running already. */
static void launch(struct pool *pool, struct fibre *root, bool adopt)
{
    struct thread *first = pool->threads[0];
    if (adopt || !first->stealing) {
        pool->scheduler->push(first, root, PUSH_NEW);
        return;
    }
    runq_post(&first->runq, root);
    if (atomic_load_explicit(&pool->kick, memory_order_seq_cst))
        pool_kick_(NULL, pool);
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
    for (int i = 0; i < pool->count; i++) {
        int error = sub->driver->start(pool->threads[i], thread_main);
        if (error)
            return error;
    }
    with_signal_stack(play_threads, sub);
    arch_note_acquire(sub);
    return 0;
}

int pool_run(struct pool *pool, struct fibre *root, bool adopt)
{
    if (pool->sub->driver)
        return play(pool, root);
    int first = adopt ? 1 : 0, error = start(pool, first);
    if (error)
        return error;
    launch(pool, root, adopt);
    if (adopt)
        live(pool->threads[0]);
    for (int i = first; i < pool->count; i++)
        arch_thread_join(pool->threads[i]->os);
    arch_note_acquire(pool->sub);
    return 0;
}

/* ---- holding still --------------------------------------------------------------------------------------- */

void pool_stand_still(struct thread *thread)
{
    uint32_t before =
        atomic_load_explicit(&thread->held, memory_order_relaxed); /* in a handler, of a sleeping one: 1 */
    thread->held_count = 0;
    thread->held_at = __builtin_frame_address(0);
    if (thread->current)
        thread->held_count = arch_trace(thread->held_ips, sizeof thread->held_ips / sizeof *thread->held_ips);
    arch_note_release(thread->sub);
    while (atomic_load_explicit(&thread->hold, memory_order_seq_cst)) {
        atomic_store_explicit(&thread->held, 1, memory_order_seq_cst);
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
    atomic_store_explicit(&thread->held, 1, memory_order_seq_cst);
}

void pool_move(struct thread *thread)
{
    atomic_store_explicit(&thread->held, 0, memory_order_seq_cst);
    if (UNLIKELY(atomic_load_explicit(&thread->hold, memory_order_seq_cst)))
        pool_stand_still(thread);
}

static bool is_held(struct thread *thread)
{
    return atomic_load_explicit(&thread->held, memory_order_seq_cst) != 0;
}

int pool_hold(struct thread *thread, struct pool *pool, int64_t deadline)
{
    int loose = 0;
    for (int i = 0; i < pool->count; i++)
        if (pool->threads[i] != thread)
            atomic_store_explicit(&pool->threads[i]->hold, 1, memory_order_seq_cst);
    for (int i = 0; i < pool->count; i++) {
        struct thread *other = pool->threads[i];
        while (other != thread && !is_held(other) && driver_now(pool->sub) < deadline)
            driver_await(thread);
        loose += other != thread && !is_held(other);
    }
    return loose;
}

void pool_release(struct thread *thread, struct pool *pool)
{
    for (int i = 0; i < pool->count; i++) {
        struct thread *other = pool->threads[i];
        if (other == thread)
            continue;
        atomic_store_explicit(&other->hold, 0, memory_order_seq_cst);
        if (!thread->driver)
            arch_futex_wake(&other->hold, 1);
    }
}
