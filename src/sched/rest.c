/*
 * Rounds over the shared fibres that were in use. A round trims each fibre on which no strand has run since the round
 * before: shared_fibre_rest does it. The protocol block is in shared_fibre.h. A round also gives pages of free stacks
 * back to the system, of as many stacks as were spare all the time since the round before (stack.c).
 *
 * There is no round without cause: the first use after the last round starts the timer, and so do many spare stacks. A
 * round that leaves neither a fibre in the list nor many stacks that were used does not start it again. So at most two
 * wake-ups follow the last use: one that finds the use too recent, and one that trims. A round is made in pieces;
 * between two of them its thread does its other work.
 */
#include "rest.h"

#include "../stack/saved.h"
#include "driver.h"
#include "timers.h"

/* From one round to the next: a fibre is trimmed when it has rested for so long, or up to twice as long. */
#define ERA_NS INT64_C(250000000)
/* In one piece: fibres that are looked at, fibres that are trimmed, chunks of saved stacks and stacks that go back. */
enum { LOOKS = 256, TRIMS = 16, CHUNKS = 16, STACKS = 32 };

/* Called by the seeker. */
struct member *rest_comes(struct timer *timer)
{
    CONTAINER(timer, struct rests, timer)->due = true;
    return NULL;
}

void rest_open(struct pool *pool)
{
    struct rests *rests = &pool->rests;
    atomic_flag_clear_explicit(&rests->lock, memory_order_relaxed);
    list_init(&rests->used);
    timer_init(&rests->timer, TIMER_REST, 0);
    atomic_init(&pool->era, 1);
}

void rest_close(struct pool *pool)
{
    struct rests *rests = &pool->rests;
    struct link *link;
    spin_lock(&rests->lock, NULL);
    while ((link = list_pop_front(&rests->used)))
        rests->count--;
    rests->due = rests->under_way = false;
    atomic_store_explicit(&rests->armed, false, memory_order_relaxed);
    spin_unlock(&rests->lock);
}

/* `armed` is set. Without memory for a timer what was used stays until somebody is noted again. */
static void arm(struct thread *thread, struct pool *pool, int64_t when)
{
    struct rests *rests = &pool->rests;
    if (timer_start(thread, pool, &rests->timer, when) == 0)
        return;
    spin_lock(&rests->lock, thread);
    atomic_store_explicit(&rests->armed, false, memory_order_relaxed);
    spin_unlock(&rests->lock);
}

COLD void rest_note_(struct thread *thread, struct shared_fibre *shared)
{
    struct pool *pool = thread->pool;
    struct rests *rests = &pool->rests;
    spin_lock(&rests->lock, thread);
    uint32_t era = atomic_load_explicit(&pool->era, memory_order_relaxed);
    atomic_store_explicit(&shared->used, era, memory_order_relaxed);
    if (!shared->rest.next) {
        list_push_back(&rests->used, &shared->rest);
        rests->count++;
    }
    bool start = !atomic_exchange_explicit(&rests->armed, true, memory_order_relaxed);
    spin_unlock(&rests->lock);
    if (start)
        arm(thread, pool, driver_now(thread->sub) + ERA_NS);
}

COLD void rest_note_stacks_(struct thread *thread, struct pool *pool)
{
    struct rests *rests = &pool->rests;
    if (atomic_load_explicit(&rests->armed, memory_order_relaxed))
        return;
    if (!atomic_exchange_explicit(&rests->armed, true, memory_order_relaxed))
        arm(thread, pool, driver_now(pool->sub) + ERA_NS);
}

static void leave_list(struct rests *rests, struct shared_fibre *shared)
{
    list_remove(&shared->rest);
    rests->count--;
}

void rest_forget(struct thread *thread, struct shared_fibre *shared)
{
    struct rests *rests = &shared->fibre.pool->rests;
    spin_lock(&rests->lock, thread);
    if (shared->rest.next)
        leave_list(rests, shared);
    spin_unlock(&rests->lock);
}

/* Under the lock: whether it must be trimmed. Then it is not in the list any more, and the caller has a reference. */
static bool has_rested(struct rests *rests, struct shared_fibre *shared, uint32_t era)
{
    uint32_t used = atomic_load_explicit(&shared->used, memory_order_relaxed);
    if (used == era || used == era - 1)
        return false;
    bool in_use = shared_fibre_is_in_use(shared);
    if (in_use) /* by somebody who came before this era */
        atomic_store_explicit(&shared->used, era, memory_order_relaxed);
    if (in_use || !shared_fibre_keep_if_known(shared))
        return false;
    leave_list(rests, shared);
    return true;
}

/* The next one that has rested; NULL: there is none among some, or none at all. */
static struct shared_fibre *take_rested(struct thread *thread, struct pool *pool, int *looks)
{
    struct rests *rests = &pool->rests;
    struct shared_fibre *found = NULL;
    spin_lock(&rests->lock, thread);
    uint32_t era = atomic_load_explicit(&pool->era, memory_order_relaxed);
    if (rests->left > rests->count)
        rests->left = rests->count;
    while (!found && rests->left && --*looks >= 0) {
        struct shared_fibre *shared = CONTAINER(rests->used.next, struct shared_fibre, rest);
        rests->left--;
        list_remove(&shared->rest);
        list_push_back(&rests->used, &shared->rest);
        if (has_rested(rests, shared, era))
            found = shared;
    }
    spin_unlock(&rests->lock);
    return found;
}

static void begin_round(struct thread *thread, struct pool *pool)
{
    struct rests *rests = &pool->rests;
    spin_lock(&rests->lock, thread);
    atomic_fetch_add_explicit(&pool->era, 1, memory_order_relaxed);
    rests->left = rests->count;
    rests->under_way = true;
    rests->found = !rests->count;
    rests->chunks = 0;
    spin_unlock(&rests->lock);
    rests->stacks = stacks_begin_round(&thread->stacks);
}

/* Chunks that no fibre has now are likely to be needed again as long as all fibres are in use. */
static void count_chunks(struct pool *pool)
{
    struct rests *rests = &pool->rests;
    const struct saved_store *saved = &pool->sub->memory.saved;
    if (rests->found)
        rests->chunks = plain_load(&saved->free_count, memory_order_relaxed) +
                        (plain_load(&saved->kept_bytes, memory_order_relaxed) != 0);
}

/* A piece of the stacks that have rested. */
static void give_stacks(struct thread *thread, struct rests *rests)
{
    for (int given = 0; given < STACKS && rests->stacks; given++)
        rests->stacks = stacks_hollow(&thread->stacks) ? rests->stacks - 1 : 0;
}

/* True: the round is over. */
static bool go_on(struct thread *thread, struct pool *pool)
{
    struct rests *rests = &pool->rests;
    struct shared_fibre *shared;
    int looks = LOOKS;
    if (rests->stacks) {
        give_stacks(thread, rests);
        return false;
    }
    if (rests->chunks) {
        size_t most = rests->chunks < CHUNKS ? rests->chunks : CHUNKS;
        bool all = saved_store_trim(&thread->stacks, most) >= most * SAVED_CHUNK;
        rests->chunks = all ? rests->chunks - most : 0;
        return !rests->chunks;
    }
    for (int trims = 0; trims < TRIMS && (shared = take_rested(thread, pool, &looks)); trims++) {
        rests->found = true;
        shared_fibre_rest(thread, shared);
        shared_fibre_release(thread, shared, SHARED_KNOWN);
    }
    if (!rests->left)
        count_chunks(pool);
    return !rests->left && !rests->chunks;
}

COLD void rest_look_(struct thread *thread, struct pool *pool)
{
    struct rests *rests = &pool->rests;
    int64_t when = driver_now(pool->sub);
    rests->due = false;
    if (!rests->under_way)
        begin_round(thread, pool);
    if (go_on(thread, pool)) {
        when += ERA_NS;
        spin_lock(&rests->lock, thread);
        rests->under_way = false;
        bool more = rests->count > 0 || stacks_are_many(&pool->sub->memory.stacks);
        atomic_store_explicit(&rests->armed, more, memory_order_relaxed);
        spin_unlock(&rests->lock);
        if (!more)
            return;
    }
    arm(thread, pool, when);
}
