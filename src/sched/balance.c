/*
 * The measurement of how long strands wait. Its meaning and its use are in balance.h.
 */
#include "balance.h"

#include "platform.h"
#include "runq.h"
#include "scheduler.h"

/* A sum loses a sixty-fourth at each record. The time since the last record counts as RECORD_MS at most. */
enum { FADES = 64, RECORD_MS = 2, WHOLE = 256, HELD_MS = 100, HELD_TIMES = 4 };
/* A wait that is longer than another is left as it is if the difference is less than an eighth of it, or less than a
 * two-hundredth of a millisecond. */
enum { UNEVEN = 8, WORTH = 200 };

static const struct runq *queue_of(const struct thread *thread)
{
    return thread->pool->scheduler->common ? &thread->pool->global : &thread->runq;
}

static uint64_t get(const uint64_t *field)
{
    return plain_load(field, memory_order_relaxed);
}

static void set(uint64_t *field, uint64_t value)
{
    plain_store(field, value, memory_order_relaxed);
}

static void add(uint64_t *sum, uint64_t part)
{
    set(sum, *sum - *sum / FADES + part);
}

/* The time since the last record, and how many fibres were dispatched in it, in 256ths. */
struct part {
    uint64_t time, dispatched;
};

static struct part part_of(uint64_t time, uint32_t dispatched, uint64_t ms)
{
    uint64_t most = RECORD_MS * ms;
    struct part part = {.time = time, .dispatched = (uint64_t)dispatched * WHOLE};
    if (time > most)
        part = (struct part){.time = most,
                             .dispatched = (uint64_t)((double)part.dispatched * (double)most / (double)time)};
    return part;
}

static uint32_t served_by(const struct runq *queue)
{
    return atomic_load_explicit(&queue->served, memory_order_relaxed);
}

static void begin_record(struct balance_sums *sums, const struct runq *queue, uint64_t now)
{
    plain_store(&sums->served, served_by(queue), memory_order_relaxed);
    set(&sums->recorded, now);
}

void balance_begin(struct thread *thread, uint64_t now)
{
    begin_record(&thread->balance, queue_of(thread), now);
}

/* While no strand waits, there is nothing to measure. */
void balance_record(struct thread *thread, uint64_t now, uint64_t ms)
{
    struct balance_sums *sums = &thread->balance;
    const struct runq *queue = queue_of(thread);
    uint32_t dispatched = served_by(queue) - sums->served;
    uint64_t time = now - sums->recorded, faded = sums->slowest - sums->slowest / FADES;
    sums->slowest = time > faded ? time : faded;
    if (dispatched || runq_length(queue)) {
        struct part part = part_of(time, dispatched, ms);
        add(&sums->time, part.time);
        add(&sums->dispatched, part.dispatched);
    }
    begin_record(sums, queue, now);
}

static bool is_busy(struct thread *thread)
{
    return plain_load(&thread->state, memory_order_relaxed) == THREAD_BUSY;
}

static uint64_t since(uint64_t then, uint64_t now)
{
    return now > then ? now - then : 0; /* the other thread's clock may be a little ahead */
}

/* Returns the time without a record after which a thread counts as occupied. A machine under full load takes processors
 * from all threads for long, so the delays of the asking thread count. */
static uint64_t patience_of(const struct thread *by, uint64_t ms)
{
    uint64_t times = HELD_TIMES * by->balance.slowest;
    return times > HELD_MS * ms ? times : HELD_MS * ms;
}

struct balance_sample balance_sample_of(const struct thread *by, struct thread *thread, uint64_t now, uint64_t ms)
{
    const struct balance_sums *sums = &thread->balance;
    const struct runq *queue = queue_of(thread);
    uint64_t late = since(get(&sums->recorded), now);
    uint32_t dispatched = served_by(queue) - plain_load(&sums->served, memory_order_relaxed);
    struct balance_sample sample = {.length = runq_length(queue), .occupied = late > patience_of(by, ms)};
    sample.occupied = sample.occupied && is_busy(thread);
    if (sample.occupied)
        sample.length = thread->pool->scheduler->waiting(thread);
    struct part part = part_of(dispatched || sample.length ? late : 0, dispatched, ms);
    uint64_t whole = get(&sums->dispatched) + part.dispatched;
    sample.interval = whole ? (get(&sums->time) + part.time) * WHOLE / whole : 0;
    if (sample.occupied && sample.interval < late)
        sample.interval = late;
    return sample;
}

uint64_t balance_excess(const struct balance_sample *theirs, const struct balance_sample *mine, uint64_t ms)
{
    uint64_t some = ms / 1000 + 1;
    uint64_t interval = theirs->interval ? theirs->interval : mine->interval ? mine->interval : some;
    uint64_t own = mine->interval ? mine->interval : interval;
    uint64_t wait = theirs->length * interval, own_wait = mine->length * own;
    if (wait <= own_wait)
        return 0;
    uint64_t more = wait - own_wait, both = 2 * (interval > own ? interval : own);
    if (more < ms / WORTH || more < wait / UNEVEN)
        return 0;
    /* [LB2] A thread that one strand occupies serves no other: rounding up leaves none behind it. */
    return theirs->occupied ? (more + both - 1) / both : more / both;
}

/* ---- figures --------------------------------------------------------------------------------------------- */

/* A thread with an empty queue serves its one strand all the time. It counts as if that strand waited one
 * interval of the average thread that has a queue. */
struct balance_figures balance_figures_of(struct thread *by, struct pool *pool)
{
    uint64_t now = platform_ticks(by), ms = platform_ticks_per_ms(by), longest = 0, shortest = UINT64_MAX,
             intervals = 0;
    int queues = 0;
    for (int i = 0; i < atomic_load_explicit(&pool->count, memory_order_acquire); i++) { /* [PB1] */
        if (!is_busy(pool->threads[i]))
            continue;
        struct balance_sample sample = balance_sample_of(by, pool->threads[i], now, ms);
        uint64_t wait = balance_sample_wait(&sample);
        longest = wait > longest ? wait : longest;
        shortest = wait < shortest ? wait : shortest;
        intervals += wait ? sample.interval : 0;
        queues += wait != 0;
    }
    struct balance_figures figures = {.wait_ns = (int64_t)((double)longest * 1e6 / (double)ms), .unequal = 1};
    if (queues && !pool->scheduler->common) {
        double interval = (double)intervals / queues;
        figures.unequal = ((double)longest + interval) / ((double)shortest + interval);
    }
    return figures;
}
