/*
 * The default scheduler: a queue per thread, and the seeker steals (rules S-46 to S-61). Only the seeker does, so at
 * most one thread of a pool is a thief at any time. It takes half of what it finds, the oldest first: in a tree of
 * strands those are the biggest. Models: tests/models/seeker.pml,
 * tests/models/slot.pml.
 *
 * INVARIANT [F1] every 61 switches the longest waiting strand comes first, alternately among those that yielded and
 *           those that were woken; every so many milliseconds, the oldest of those that have not started. Not more
 *           often: starting old ones early undoes the depth-first order that keeps fork-join small: each opens another
 *           branch of the tree, and with it all its stacks. In a seeded run the seed chooses at each pick whether these
 *           rules hold or the first of some list, or the oldest of `young`, runs: all orders that the rules allow, and
 *           more.
 * NOT DONE  one FIFO list: a tree of strands would be walked breadth first, and all of it would exist at once (that is
 *           the scheduler `global`). One LIFO list behind the slot: strands that have begun would wait with their
 *           stacks behind all that is spawned meanwhile. The woken in one list with those that yielded: a loop of
 *           yields delays what a timer has woken. A slot that is stealable at once: in most programs the parent is
 *           about to join its newest child and runs it in its own place; else a lone spawn and join would be a trip
 *           between processors. What a timer or another thread has woken does not enter the slot (PUSH_OUTSIDE): the
 *           running strand is not about to wait for it.
 */
#include "stealing.h"

#include "balance.h"
#include "inbox.h"
#include "pool.h"
#include "thread.h"

enum { STEAL_MOST = 32, YOUNG_MS = 10, START_MOST = 61 };
/* How long thieves leave the slot to its owner. */
#define SLOT_STALE_NS INT64_C(50000)

static bool push(struct thread *thread, struct fibre *fibre, enum push how)
{
    return stealing_push(thread, fibre, how);
}

static struct fibre *take_slot(struct runq *queue)
{
    struct fibre *fibre = queue->slot;
    queue->slot = NULL;
    if (fibre)
        atomic_store_explicit(&fibre->in, NULL, memory_order_relaxed);
    return fibre;
}

/* Moves the oldest young fibres to the woken ones if, since the last call, events came and no pick got to the young:
 * under a load of events alone these would never start. Without events, fork-join stays depth-first. */
static void let_old_ones_start(struct thread *thread, struct runq *queue)
{
    bool starved = thread->pass.fed && !thread->pass.young_reached && !list_empty(&queue->woken);
    struct fibre *fibre;
    for (int i = 0; starved && i < START_MOST && (fibre = runq_move_last(queue, &queue->young)); i++)
        runq_append(queue, &queue->woken, fibre);
    thread->pass.fed = thread->pass.young_reached = false;
}

/* Removes and returns the fibre whose turn it is by [F1]; NULL: there is none. */
static struct fibre *pick_fair(struct thread *thread, struct runq *queue)
{
    let_old_ones_start(thread, queue);
    if (thread->pass.at - thread->pass.young_served > YOUNG_MS * platform_ticks_per_ms(thread)) {
        thread->pass.young_served = thread->pass.at;
        struct fibre *fibre = runq_last(queue, &queue->young);
        if (fibre)
            return fibre;
    }
    struct link *lists[] = {&queue->ready, &queue->woken};
    thread->fair_list ^= 1;
    struct fibre *fibre = runq_first(queue, lists[thread->fair_list]);
    return fibre ? fibre : runq_first(queue, lists[thread->fair_list ^ 1]);
}

static struct fibre *pick_usual(struct runq *queue)
{
    struct fibre *fibre = take_slot(queue);
    if (!fibre)
        fibre = runq_first(queue, &queue->woken);
    if (!fibre)
        fibre = runq_first(queue, &queue->young);
    return fibre ? fibre : runq_first(queue, &queue->ready);
}

static struct fibre *pick_by_seed(struct thread *thread, struct runq *queue)
{
    struct fibre *fibre = NULL;
    uint32_t way = platform_choose(thread, 5);
    if (way == 1)
        fibre = runq_first(queue, &queue->ready);
    else if (way == 2)
        fibre = runq_last(queue, &queue->young);
    else if (way == 3)
        fibre = runq_first(queue, &queue->young);
    else if (way == 4)
        fibre = runq_first(queue, &queue->woken);
    return fibre ? fibre : pick_usual(queue);
}

/* Moves what other threads made runnable into the owner's queue. */
static void empty_inbox(struct thread *thread)
{
    struct link taken, *link;
    list_init(&taken);
    if (!inbox_take(&thread->runq.inbox, &taken))
        return;
    runq_enter(thread, &thread->runq);
    while ((link = list_pop_front(&taken)))
        runq_append(&thread->runq, &thread->runq.woken, CONTAINER(link, struct fibre, queued));
    runq_leave(thread, &thread->runq);
}

struct fibre *stealing_pick_slow_(struct thread *thread)
{
    struct runq *queue = &thread->runq;
    empty_inbox(thread);
    runq_enter(thread, queue);
    struct fibre *fibre = NULL;
    if (thread->platform)
        fibre = pick_by_seed(thread, queue);
    else if (thread->slow_pick.own & PICK_FAIR)
        fibre = pick_fair(thread, queue);
    if (!fibre)
        fibre = pick_usual(queue);
    runq_leave(thread, queue);
    return fibre;
}

/* Returns whether the slot has held the same fibre for long enough [K3]. The seeker records what it saw in the victim's
 * queue. */
static bool slot_is_stale(struct thread *thief, struct runq *queue, int64_t now)
{
    struct fibre *slot = plain_load(&queue->slot, memory_order_relaxed);
    if (!slot || slot != queue->stale) {
        thief->search.saw_slot |= slot != NULL;
        queue->stale = slot;
        queue->stale_since = now;
        return false;
    }
    return thief->platform || now - queue->stale_since >= SLOT_STALE_NS;
}

/* Moves some fibres from the victim's lists, or else the stale slot, to `loot`. Returns how many. The caller is
 * inside. */
static int rob(struct runq *queue, bool slot_too, struct link *loot)
{
    uint32_t count = runq_length(queue);
    int most = (int)(count + 1) / 2 < STEAL_MOST ? (int)(count + 1) / 2 : STEAL_MOST, got = 0;
    while (got < most) {
        struct fibre *fibre = runq_move_last(queue, &queue->young);
        if (!fibre && !(fibre = runq_move_first(queue, &queue->woken)) &&
            !(fibre = runq_move_first(queue, &queue->ready)))
            break;
        list_push_back(loot, &fibre->queued);
        got++;
    }
    if (!got && slot_too) {
        struct fibre *fibre = take_slot(queue);
        if (fibre) {
            list_push_back(loot, &fibre->queued);
            got = 1;
        }
        queue->stale = NULL;
    }
    return got;
}

static bool steal_from(struct thread *thief, struct thread *victim)
{
    struct runq *queue = &victim->runq;
    struct link loot, *link;
    list_init(&loot);
    int got = 0;
    bool slot_too = slot_is_stale(thief, queue, platform_now(thief->sub));
    if ((slot_too || runq_length(queue)) && runq_break_in(thief, queue)) {
        got = rob(queue, slot_too, &loot);
        runq_break_out(queue);
    }
    if (!got && inbox_take(&queue->inbox, &loot))
        got = 1;
    if (!got)
        return false;
    thief->steals += (uint64_t)got;
    runq_enter(thief, &thief->runq);
    while ((link = list_pop_front(&loot)))
        runq_append(&thief->runq, &thief->runq.ready, CONTAINER(link, struct fibre, queued));
    runq_leave(thief, &thief->runq);
    return true;
}

/* Steals from the first victim with work, beginning at a random one (S-56). Returns whether there is work. */
static bool steal(struct thread *thief)
{
    struct pool *pool = thief->pool;
    uint32_t count = (uint32_t)pool_count(pool), first = platform_choose(thief, count);
    empty_inbox(thief);
    if (runq_length(&thief->runq))
        return true;
    for (uint32_t i = 0; i < count; i++) {
        struct thread *victim = pool->threads[(first + i) % count];
        if (victim != thief && steal_from(thief, victim))
            return true;
    }
    return false;
}

/* ---- evening out: balance.h ------------------------------------------------------------------------------- */

enum { PIECE = 64, PULLED_MOST = 512, EXAMINED = 8, PULLED_BY_SEED = 4 };

/* By list, each in the order of the list that it comes from. */
struct pulled {
    struct link young, woken, ready;
    uint32_t count;
};

static uint32_t pull_list(struct runq *queue, struct link *from, struct link *to, uint32_t most)
{
    uint32_t got = 0;
    struct fibre *fibre;
    while (got < most && (fibre = runq_move_last(queue, from))) {
        list_push_front(to, &fibre->queued);
        got++;
    }
    return got;
}

/* Takes the fibres that would wait longest out of the victim's queue, up to `most`. */
static void pull(struct thread *thread, struct runq *queue, struct pulled *pulled, uint32_t most)
{
    if (!runq_break_in(thread, queue))
        return;
    pulled->count = pull_list(queue, &queue->young, &pulled->young, most);
    pulled->count += pull_list(queue, &queue->ready, &pulled->ready, most - pulled->count);
    pulled->count += pull_list(queue, &queue->woken, &pulled->woken, most - pulled->count);
    runq_break_out(queue);
}

static void put_list(struct runq *queue, struct link *from, struct link *to)
{
    struct link *link;
    while ((link = list_pop_front(from)))
        runq_append(queue, to, CONTAINER(link, struct fibre, queued));
}

/* Moves a piece of the victim's fibres to the thread's queue. Returns how many. */
static uint32_t pull_piece(struct thread *thread, struct thread *victim, uint32_t most)
{
    struct pulled pulled = {.count = 0};
    struct runq *mine = &thread->runq;
    list_init(&pulled.young);
    list_init(&pulled.woken);
    list_init(&pulled.ready);
    pull(thread, &victim->runq, &pulled, most < PIECE ? most : PIECE);
    runq_enter(thread, mine);
    put_list(mine, &pulled.young, &mine->young);
    put_list(mine, &pulled.woken, &mine->woken);
    put_list(mine, &pulled.ready, &mine->ready);
    runq_leave(thread, mine);
    thread->steals += pulled.count;
    return pulled.count;
}

/* Moves up to `most` fibres of the victim, piece by piece, but not more than take a tenth of a millisecond or so: the
 * thread keeps others from the role. If the victim is occupied and its lists are empty after that, also takes what the
 * victim itself would have run next. */
static void pull_from(struct thread *thread, struct thread *victim, bool occupied, uint64_t most)
{
    uint32_t got = PIECE;
    for (uint64_t left = most < PULLED_MOST ? most : PULLED_MOST; left && got == PIECE; left -= got)
        got = pull_piece(thread, victim, left < PIECE ? (uint32_t)left : PIECE);
    if (occupied && most && !runq_length(&victim->runq))
        steal_from(thread, victim);
}

static void even_out_by_seed(struct thread *thread, uint32_t count)
{
    struct thread *victim = thread->pool->threads[platform_choose(thread, count)];
    if (victim == thread)
        return;
    uint32_t most = platform_choose(thread, PULLED_BY_SEED); /* chosen first: arguments have no order of evaluation */
    pull_from(thread, victim, platform_choose(thread, 2), most);
}

/* Returns the thread whose strands wait longest, among up to EXAMINED others; NULL: no strand waits there. */
static struct thread *slowest_of(struct thread *thread, uint32_t count, uint64_t ms, struct balance_sample *longest)
{
    uint32_t first = platform_choose(thread, count);
    struct thread *slowest = NULL;
    for (uint32_t i = 0; i < count && i < EXAMINED; i++) {
        struct thread *other = thread->pool->threads[(first + i) % count];
        struct balance_sample sample = balance_sample_of(thread, other, thread->pass.at, ms);
        if (other == thread || !sample.length ||
            (slowest && balance_sample_wait(&sample) <= balance_sample_wait(longest)))
            continue;
        slowest = other;
        *longest = sample;
    }
    return slowest;
}

static void even_out(struct thread *thread)
{
    struct pool *pool = thread->pool;
    uint64_t ms = platform_ticks_per_ms(thread);
    uint32_t count = (uint32_t)pool_count(pool);
    if (count == 1 || pool->balance == BALANCE_NONE)
        return;
    if (UNLIKELY(thread->platform != NULL)) {
        even_out_by_seed(thread, count);
        return;
    }
    if (thread->pass.at - thread->balance.evened_out < ms)
        return;
    thread->balance.evened_out = thread->pass.at;
    struct balance_sample mine = balance_sample_of(thread, thread, thread->pass.at, ms), theirs;
    struct thread *slowest = slowest_of(thread, count, ms, &theirs);
    if (!slowest)
        return;
    uint64_t excess = balance_excess(&theirs, &mine, ms);
    if (!excess && pool->balance == BALANCE_STIR)
        excess = theirs.length > mine.length;
    pull_from(thread, slowest, theirs.occupied, excess); /* [LB3] */
}

static bool work(struct pool *pool)
{
    for (int i = 0; i < pool_count(pool); i++) {
        struct runq *queue = &pool->threads[i]->runq;
        if (runq_length(queue) || runq_inbox_filled(queue))
            return true;
    }
    return false;
}

/* Posts a fibre to the thread that ran it last: weak affinity. */
static void post(struct pool *pool, struct thread *by, struct fibre *fibre)
{
    pool_post_fibre(pool, by, fibre->home, fibre);
}

/* Posts all that the thread has to those that stay, round robin. Thieves may take some of it meanwhile. */
static void leave(struct thread *thread)
{
    struct runq *queue = &thread->runq;
    struct pool *pool = thread->pool;
    int size = atomic_load_explicit(&pool->size, memory_order_relaxed), next = 0;
    struct fibre *fibre;
    do {
        empty_inbox(thread);
        runq_enter(thread, queue);
        fibre = pick_usual(queue);
        runq_leave(thread, queue);
        if (fibre)
            pool_post_fibre(pool, thread, pool->threads[next++ % size], fibre);
    } while (fibre);
}

/* The fibres in the inbox can't be counted; they count as one. */
static size_t waiting(const struct thread *thread)
{
    const struct runq *queue = &thread->runq;
    return runq_length(queue) + (plain_load(&queue->slot, memory_order_relaxed) != NULL) +
           (atomic_load_explicit(&queue->inbox, memory_order_relaxed) != NULL);
}

/* There is no `pick` or `take`: threads call stealing_pick and stealing_take directly (thread_pick, thread_take). */
const struct scheduler scheduler_stealing = {.name = "stealing",
                                             .push = push,
                                             .post = post,
                                             .steal = steal,
                                             .even_out = even_out,
                                             .work = work,
                                             .leave = leave,
                                             .waiting = waiting};
