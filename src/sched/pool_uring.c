/*
 * The ring of io_uring of a pool. The protocol block is in pool_uring.h.
 */
#include "pool_uring.h"

#include "deliver.h"
#include "polled.h"
#include "pool.h"
#include "thread.h"

#include <errno.h>
#include <stdlib.h>

enum { ENDS_AT_ONCE = 64 };
/* How long the end of a pool waits between two looks at a ring that it may not enter. */
#define LOOK_NS INT64_C(1000000)

enum uring_state { URING_NONE, URING_OPENING, URING_OPEN, URING_REFUSED };

struct pool_uring {
    struct polled polled; /* first: an event names it */
    struct pool *pool;
    atomic_flag lock;
    uint32_t under_way; /* calls that were queued and have not ended */
    int inside;         /* threads that enter the ring now */
    struct arch_uring ring;
};

void pool_uring_lock(struct thread *thread, struct pool *pool)
{
    if (!thread || thread->concurrent)
        spin_lock(&pool->uring->lock, thread);
}

void pool_uring_unlock(struct thread *thread, struct pool *pool)
{
    if (!thread || thread->concurrent)
        spin_unlock(&pool->uring->lock);
}

/* ---- ends ----------------------------------------------------------------------------------------------------- */

/* Ends a call, under the lock, and adds what has to be done without it to the two lists. */
static void end(struct pool_uring *uring, struct uring_entry *entry, int32_t result, struct batch *woken,
                struct uring_entry **dropped)
{
    bool drops = entry->drop != NULL;
    uring->under_way--;
    batch_add(woken, entry->end(entry, result)); /* [UR3]; unless it drops, its memory may be gone now */
    if (drops) {
        entry->next_dropped = *dropped;
        *dropped = entry;
    }
}

static void drop_all(struct uring_entry *dropped)
{
    while (dropped) {
        struct uring_entry *entry = dropped;
        dropped = entry->next_dropped;
        entry->drop(entry);
    }
}

/* Takes some of the ends. thread: NULL at the end of the pool. */
static void take_some(struct thread *thread, struct pool_uring *uring, struct batch *woken)
{
    struct arch_uring_end ends[ENDS_AT_ONCE];
    struct uring_entry *dropped = NULL;
    pool_uring_lock(thread, uring->pool);
    int count = arch_uring_take(&uring->ring, ends, ENDS_AT_ONCE);
    for (int i = 0; i < count; i++)
        end(uring, ends[i].data, ends[i].result, woken, &dropped);
    pool_uring_unlock(thread, uring->pool);
    drop_all(dropped);
}

/* polled.fire: the caller has the role of the seeker. */
static void fire(struct thread *thread, struct polled *polled, uint32_t events)
{
    struct pool_uring *uring = (struct pool_uring *)polled;
    struct batch woken;
    struct member *member;
    (void)events;
    batch_init(&woken);
    while (arch_uring_has_ends(&uring->ring))
        take_some(thread, uring, &woken);
    while ((member = batch_take(&woken)))
        pool_deliver(thread, member);
}

/* ---- opening and closing -------------------------------------------------------------------------------------- */

static int make(struct pool *pool)
{
    struct pool_uring *uring = calloc(1, sizeof *uring);
    if (!uring)
        return -ENOMEM;
    uring->polled.fire = fire;
    uring->pool = pool;
    int error = arch_uring_open(&uring->ring);
    if (!error && (error = arch_poller_add_in(&pool->poller, uring->ring.fd, (uint64_t)(uintptr_t)&uring->polled)))
        arch_uring_close(&uring->ring);
    if (error)
        free(uring);
    else
        pool->uring = uring;
    return error;
}

int pool_uring_open(struct pool *pool)
{
    int error = make(pool);
    atomic_store_explicit(&pool->uring_state, error ? URING_REFUSED : URING_OPEN, memory_order_release); /* [PB1] */
    return error;
}

/* A kernel that refuses once is not asked again by this pool. Strands that come meanwhile do without the ring. */
bool pool_uring_can(struct pool *pool, enum arch_uring_kind kind)
{
    uint32_t state = atomic_load_explicit(&pool->uring_state, memory_order_acquire); /* [PB1] */
    if (state == URING_NONE && !pool->sub->uring_off &&
        atomic_compare_exchange_strong_explicit(&pool->uring_state, &state, URING_OPENING, memory_order_relaxed,
                                                memory_order_relaxed))
        state = pool_uring_open(pool) ? URING_REFUSED : URING_OPEN;
    return state == URING_OPEN && pool->uring->ring.able >> kind & 1;
}

void pool_uring_close(struct pool *pool)
{
    struct pool_uring *uring = pool->uring;
    if (!uring)
        return;
    pool_uring_enter_(NULL, pool);
    while (uring->under_way) { /* [UR4] */
        if (uring->ring.refuses || arch_uring_waiting(&uring->ring) || arch_uring_enter(&uring->ring, 0, true) < 0)
            arch_nap(LOOK_NS);
        pool_uring_enter_(NULL, pool);
    }
    arch_uring_close(&uring->ring);
    free(uring);
    pool->uring = NULL;
    atomic_store_explicit(&pool->uring_state, URING_NONE, memory_order_relaxed);
}

void pool_uring_orphan(struct pool *pool)
{
    if (pool->uring)
        arch_uring_orphan(&pool->uring->ring, pool->poller.kick);
}

/* ---- calls ---------------------------------------------------------------------------------------------------- */

/* Under the lock. */
static void show_waiting(struct pool_uring *uring)
{
    atomic_store_explicit(&uring->pool->unentered, arch_uring_waiting(&uring->ring), memory_order_relaxed); /* [UR2] */
}

static bool is_passing(int error)
{
    return error == -EAGAIN || error == -EBUSY || error == -EINTR;
}

/* Under the lock, if no thread is about to begin them: ends the calls that have not begun and never will. */
static void refuse_all(struct pool_uring *uring, struct batch *woken, struct uring_entry **dropped)
{
    struct uring_entry *entry;
    while (!uring->inside && (entry = arch_uring_take_refused(&uring->ring)))
        end(uring, entry, -ECANCELED, woken, dropped);
}

/* Under the lock, which it releases meanwhile: begins the calls that wait. Returns whether more may begin at once. */
static bool begin_calls(struct thread *thread, struct pool_uring *uring)
{
    uint32_t count = uring->ring.refuses ? 0 : arch_uring_waiting(&uring->ring);
    atomic_store_explicit(&uring->pool->unentered, 0, memory_order_relaxed); /* [UR2] */
    uring->inside++;
    pool_uring_unlock(thread, uring->pool);
    int begun = count ? arch_uring_enter(&uring->ring, count, false) : 0;
    pool_uring_lock(thread, uring->pool);
    uring->inside--;
    uring->ring.refuses |= begun < 0 && !is_passing(begun);
    return begun > 0 && arch_uring_waiting(&uring->ring); /* the kernel stops behind a call that it refuses */
}

void pool_uring_enter_(struct thread *thread, struct pool *pool)
{
    struct pool_uring *uring = pool->uring;
    struct uring_entry *dropped = NULL;
    struct batch woken;
    batch_init(&woken);
    pool_uring_lock(thread, pool);
    while (begin_calls(thread, uring))
        ;
    if (uring->ring.refuses)
        refuse_all(uring, &woken, &dropped);
    show_waiting(uring);
    pool_uring_unlock(thread, pool);
    drop_all(dropped);
    while (arch_uring_has_ends(&uring->ring))
        take_some(thread, uring, &woken);
    batch_deliver(thread, &woken);
}

void pool_uring_pass(struct thread *thread, struct pool *pool)
{
    if (atomic_load_explicit(&pool->uring_state, memory_order_acquire) != URING_OPEN) /* [PB1] */
        return;
    pool_uring_enter(thread, pool);
    if (!arch_uring_has_ends(&pool->uring->ring))
        return;
    fire(thread, &pool->uring->polled, ARCH_IN);
    thread->pass.fed = true;
}

/* Under the lock. Returns the position, or -EAGAIN. */
static int64_t add(struct pool *pool, const struct arch_uring_call *call, void *data)
{
    struct pool_uring *uring = pool->uring;
    int64_t position = uring->ring.refuses ? -ENOSYS : arch_uring_add(&uring->ring, call, data);
    show_waiting(uring);
    return position;
}

int pool_uring_queue(struct thread *thread, struct pool *pool, const struct arch_uring_call *call,
                     struct uring_entry *entry)
{
    struct pool_uring *uring = pool->uring;
    for (int tries = 0;; tries++) {
        pool_uring_lock(thread, pool);
        entry->position = add(pool, call, entry);
        bool alone = entry->position >= 0 && uring->under_way++ == 0;
        pool_uring_unlock(thread, pool);
        if (alone || entry->position == -EAGAIN)
            pool_uring_enter_(thread, pool);
        if (entry->position != -EAGAIN || tries)
            return entry->position < 0 ? (int)entry->position : 0;
    }
}

bool pool_uring_take_back(struct pool *pool, struct uring_entry *entry)
{
    struct pool_uring *uring = pool->uring;
    bool mine = !uring->inside && arch_uring_take_back(&uring->ring, entry->position);
    if (mine)
        uring->under_way--;
    return mine;
}

bool pool_uring_has_begun(struct pool *pool, struct uring_entry *entry)
{
    const struct arch_uring *ring = &pool->uring->ring;
    return (uint64_t)entry->position < ring->added - arch_uring_waiting(ring);
}

void pool_uring_cancel(struct thread *thread, struct pool *pool, struct uring_entry *entry)
{
    const struct arch_uring_call call = {.kind = ARCH_URING_CANCEL, .fd = -1, .pointer = entry};
    for (int tries = 0; tries < 2; tries++) {
        pool_uring_lock(thread, pool);
        bool full = add(pool, &call, NULL) == -EAGAIN;
        pool_uring_unlock(thread, pool);
        pool_uring_enter_(thread, pool);
        if (!full)
            return;
    }
}

bool pool_uring_has_any(struct pool *pool)
{
    if (atomic_load_explicit(&pool->uring_state, memory_order_acquire) != URING_OPEN) /* [PB1] */
        return false;
    return pool_uring_has_calls(pool) || arch_uring_has_ends(&pool->uring->ring);
}
