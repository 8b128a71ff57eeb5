/*
 * Rounds over the shared fibres that were in use. A round trims each fibre on which no strand has run since the round
 * before: shared_fibre_trim_idle does it. The protocol block is in shared_fibre.h. A round also gives pages of free
 * stacks back to the system, of as many stacks as were spare all the time since the round before (stack.c).
 *
 * There is no round without cause: the first use after the last round starts the timer, and so do many spare stacks. A
 * round that leaves neither a fibre in the list nor many stacks that were used does not start it again. So at most two
 * wake-ups follow the last use: one that finds the use too recent, and one that trims. A round is made in pieces;
 * between two of them its thread does its other work.
 */
#include "trim.h"

#include "../stack/saved.h"
#include "platform.h"
#include "timers.h"

/* The time from one round to the next: a fibre is trimmed when it has been idle for so long, or up to twice as long. */
#define ROUND_NS INT64_C(250000000)
/* The most that one piece of a round does: fibres examined, fibres trimmed, chunks of saved stacks and stacks given
 * back. */
enum { EXAMINED = 256, TRIMS = 16, CHUNKS = 16, STACKS = 32 };

/* The caller has the role of the seeker. */
struct member *trim_is_due(struct timer *timer)
{
    CONTAINER(timer, struct trimmer, timer)->due = true;
    return NULL;
}

void trim_open(struct pool *pool)
{
    struct trimmer *trimmer = &pool->trimmer;
    atomic_flag_clear_explicit(&trimmer->lock, memory_order_relaxed);
    list_init(&trimmer->used);
    timer_init(&trimmer->timer, TIMER_TRIM, 0);
    atomic_init(&pool->trim_round, 1);
}

void trim_close(struct pool *pool)
{
    struct trimmer *trimmer = &pool->trimmer;
    struct link *link;
    spin_lock(&trimmer->lock, NULL);
    while ((link = list_pop_front(&trimmer->used)))
        trimmer->count--;
    trimmer->due = trimmer->under_way = false;
    atomic_store_explicit(&trimmer->armed, false, memory_order_relaxed);
    spin_unlock(&trimmer->lock);
}

/* Starts the timer; `armed` is set already. Without memory for a timer, what was used stays until a fibre is recorded
 * again. */
static void arm(struct thread *thread, struct pool *pool, int64_t when)
{
    struct trimmer *trimmer = &pool->trimmer;
    if (timer_start(thread, pool, &trimmer->timer, when) == 0)
        return;
    spin_lock(&trimmer->lock, thread);
    atomic_store_explicit(&trimmer->armed, false, memory_order_relaxed);
    spin_unlock(&trimmer->lock);
}

COLD void trim_record_(struct thread *thread, struct shared_fibre *shared)
{
    struct pool *pool = thread->pool;
    struct trimmer *trimmer = &pool->trimmer;
    spin_lock(&trimmer->lock, thread);
    uint32_t round = atomic_load_explicit(&pool->trim_round, memory_order_relaxed);
    atomic_store_explicit(&shared->used, round, memory_order_relaxed);
    if (!shared->in_trimmer.next) {
        list_push_back(&trimmer->used, &shared->in_trimmer);
        trimmer->count++;
    }
    bool start = !atomic_exchange_explicit(&trimmer->armed, true, memory_order_relaxed);
    spin_unlock(&trimmer->lock);
    if (start)
        arm(thread, pool, platform_now(thread->sub) + ROUND_NS);
}

COLD void trim_record_stacks_(struct thread *thread, struct pool *pool)
{
    struct trimmer *trimmer = &pool->trimmer;
    if (atomic_load_explicit(&trimmer->armed, memory_order_relaxed))
        return;
    if (!atomic_exchange_explicit(&trimmer->armed, true, memory_order_relaxed))
        arm(thread, pool, platform_now(pool->sub) + ROUND_NS);
}

static void leave_list(struct trimmer *trimmer, struct shared_fibre *shared)
{
    list_remove(&shared->in_trimmer);
    trimmer->count--;
}

void trim_forget(struct thread *thread, struct shared_fibre *shared)
{
    struct trimmer *trimmer = &shared->fibre.pool->trimmer;
    spin_lock(&trimmer->lock, thread);
    if (shared->in_trimmer.next)
        leave_list(trimmer, shared);
    spin_unlock(&trimmer->lock);
}

/* Returns whether the fibre must be trimmed. If so, the fibre has left the list, and the caller has a reference. Under
 * the lock. */
static bool must_be_trimmed(struct trimmer *trimmer, struct shared_fibre *shared, uint32_t round)
{
    uint32_t used = atomic_load_explicit(&shared->used, memory_order_relaxed);
    if (used == round || used == round - 1)
        return false;
    bool in_use = shared_fibre_is_in_use(shared);
    if (in_use) /* its strand began before this round */
        atomic_store_explicit(&shared->used, round, memory_order_relaxed);
    if (in_use || !shared_fibre_keep_if_known(shared))
        return false;
    leave_list(trimmer, shared);
    return true;
}

/* Returns the next fibre that must be trimmed, with a reference; NULL: none of the next ones, or no fibre is left. */
static struct shared_fibre *take_idle(struct thread *thread, struct pool *pool, int *examined)
{
    struct trimmer *trimmer = &pool->trimmer;
    struct shared_fibre *found = NULL;
    spin_lock(&trimmer->lock, thread);
    uint32_t round = atomic_load_explicit(&pool->trim_round, memory_order_relaxed);
    if (trimmer->left > trimmer->count)
        trimmer->left = trimmer->count;
    while (!found && trimmer->left && --*examined >= 0) {
        struct shared_fibre *shared = CONTAINER(trimmer->used.next, struct shared_fibre, in_trimmer);
        trimmer->left--;
        list_remove(&shared->in_trimmer);
        list_push_back(&trimmer->used, &shared->in_trimmer);
        if (must_be_trimmed(trimmer, shared, round))
            found = shared;
    }
    spin_unlock(&trimmer->lock);
    return found;
}

static void begin_round(struct thread *thread, struct pool *pool)
{
    struct trimmer *trimmer = &pool->trimmer;
    spin_lock(&trimmer->lock, thread);
    atomic_fetch_add_explicit(&pool->trim_round, 1, memory_order_relaxed);
    trimmer->left = trimmer->count;
    trimmer->under_way = true;
    trimmer->found = !trimmer->count;
    trimmer->chunks = 0;
    spin_unlock(&trimmer->lock);
    trimmer->stacks = stacks_begin_round(&thread->stacks);
}

/* Counts the chunks to give back. As long as all fibres are in use, free chunks are likely to be needed again. */
static void count_chunks(struct pool *pool)
{
    struct trimmer *trimmer = &pool->trimmer;
    const struct saved_store *saved = &pool->sub->memory.saved;
    if (trimmer->found)
        trimmer->chunks = plain_load(&saved->free_count, memory_order_relaxed) +
                          (plain_load(&saved->kept_bytes, memory_order_relaxed) != 0);
}

/* Gives back the pages of a piece of the spare stacks. */
static void give_stacks(struct thread *thread, struct trimmer *trimmer)
{
    for (int given = 0; given < STACKS && trimmer->stacks; given++)
        trimmer->stacks = stacks_hollow(&thread->stacks) ? trimmer->stacks - 1 : 0;
}

/* Makes a piece of a round. Returns whether the round is over. */
static bool go_on(struct thread *thread, struct pool *pool)
{
    struct trimmer *trimmer = &pool->trimmer;
    struct shared_fibre *shared;
    int examined = EXAMINED;
    if (trimmer->stacks) {
        give_stacks(thread, trimmer);
        return false;
    }
    if (trimmer->chunks) {
        size_t most = trimmer->chunks < CHUNKS ? trimmer->chunks : CHUNKS;
        bool all = saved_store_trim(&thread->stacks, most) >= most * SAVED_CHUNK;
        trimmer->chunks = all ? trimmer->chunks - most : 0;
        return !trimmer->chunks;
    }
    for (int trims = 0; trims < TRIMS && (shared = take_idle(thread, pool, &examined)); trims++) {
        trimmer->found = true;
        shared_fibre_trim_idle(thread, shared);
        shared_fibre_release(thread, shared, SHARED_KNOWN);
    }
    if (!trimmer->left)
        count_chunks(pool);
    return !trimmer->left && !trimmer->chunks;
}

COLD void trim_continue_(struct thread *thread, struct pool *pool)
{
    struct trimmer *trimmer = &pool->trimmer;
    int64_t when = platform_now(pool->sub);
    trimmer->due = false;
    if (!trimmer->under_way)
        begin_round(thread, pool);
    if (go_on(thread, pool)) {
        when += ROUND_NS;
        spin_lock(&trimmer->lock, thread);
        trimmer->under_way = false;
        bool more = trimmer->count > 0 || stacks_are_many(&pool->sub->memory.stacks);
        atomic_store_explicit(&trimmer->armed, more, memory_order_relaxed);
        spin_unlock(&trimmer->lock);
        if (!more)
            return;
    }
    arm(thread, pool, when);
}
