/*
 * The watchdog's observation of threads: which strand has been on each thread since when. A strand leaves its thread by
 * a switch, and switches are counted anyway. The protocol block is in watchdog.h.
 */
#include "watch.h"
#include "watchdog.h"

#include "../sched/polled.h"
#include "../sched/timers.h"
#include "../strand/pool.h"
#include "../strand/print.h"

#include <string.h>

/* How often the watchdog tries to find a strand's location before it reports the strand without. */
enum { TRIES = 3 };
/* A timer is not late before a busy thread would have checked it. */
#define TIMER_NS INT64_C(1000000)

/* ---- observation -------------------------------------------------------------------------------------------- */

static bool is_there_still(struct thread *thread, const struct stay *stay)
{
    return stay->fibre && stay->fibre == plain_load(&thread->current, memory_order_acquire) &&
           stay->switches == plain_load(&thread->switches, memory_order_acquire) &&
           !atomic_load_explicit(&thread->hold.state, memory_order_acquire); /* [DG1] [HD1] */
}

static size_t waiting_for(const struct thread *thread)
{
    return thread->pool->scheduler->waiting(thread);
}

/* How many waiting strands other threads have taken: while the number stays the same, the ones that wait have waited
 * all the time. */
static uint64_t taken_in(const struct pool *pool)
{
    uint64_t sum = 0;
    for (int i = 0; i < pool_count(pool); i++) {
        const struct thread *thread = pool->threads[i];
        sum += plain_load(thread->stealing ? &thread->steals : &thread->switches, memory_order_relaxed);
    }
    return sum;
}

/* Whether its strand has called an operation of the library since the last check: then timers and events were served,
 * and it would have yielded to any strand that it yields to. */
static bool has_come_by(const struct thread *thread, struct stay *stay)
{
    int32_t ticks = plain_load(&thread->ticks, memory_order_relaxed);
    uint64_t ticked = plain_load(&thread->ticked, memory_order_relaxed);
    bool has = ticks != stay->ticks || ticked != stay->ticked;
    stay->ticks = ticks;
    stay->ticked = ticked;
    return has;
}

static int64_t lasts(const struct watchdog *w, const struct stay *stay)
{
    return w->time - stay->since;
}

bool stays_has(struct watchdog *w, struct cb *c)
{
    struct fibre *fibre = c->member.fibre;
    struct thread *home = plain_load(&fibre->home, memory_order_relaxed);
    const struct stay *stay = stay_of(home);
    return lasts(w, stay) > 0 && w->limit - lasts(w, stay) <= w->cleanups_limit && stay->fibre == fibre &&
           is_there_still(home, stay) && plain_load(&fibre->active, memory_order_relaxed) == &c->member;
}

/* ---- delays ------------------------------------------------------------------------------------------------- */

static bool is_stalled(const struct watchdog *w, const struct pool *pool)
{
    for (int i = 0; i < pool_count(pool); i++) {
        const struct stay *stay = stay_of(pool->threads[i]);
        if (lasts(w, stay) < w->limit || !is_there_still(pool->threads[i], stay))
            return false;
    }
    return true;
}

static void inspect_delays(struct watchdog *w, struct thread *thread, const struct stay *stay, strand_late *said)
{
    struct pool *pool = thread->pool;
    said->runnable = waiting_for(thread);
    said->runnable_ns = said->runnable && stay->waited_for ? w->time - stay->waited_for : 0;
    said->stalled = is_stalled(w, pool);
    if (!said->stalled)
        return; /* other threads serve timers and events */
    int64_t late = w->clock - timers_next(&pool->timers);
    if (late >= TIMER_NS) {
        said->timers = timers_due(&w->worker.thread, pool, w->clock);
        said->timer_ns = late;
    }
    said->events = pool_has_polled(pool);
}

/* ---- reports --------------------------------------------------------------------------------------------- */

static struct late late_of(const struct watchdog *w, struct thread *thread, const struct stay *stay)
{
    return (struct late){.said = {.kind = STRAND_LATE_HOLDS,
                                  .reports = stay->reports + 1,
                                  .duration_ns = lasts(w, stay),
                                  .limit_ns = w->limit,
                                  .thread = thread->index,
                                  .thread_id = thread->os_id,
                                  .cpu_ns = -1},
                         .pool_is_first = pool_is_first(thread->pool)};
}

/* Returns false if the strand has left the thread meanwhile. */
static bool inspect_one(struct watchdog *w, struct thread *thread, const struct stay *stay, struct late *late)
{
    int64_t cpu = arch_thread_cpu_ns(thread->os_id);
    if (cpu >= 0 && stay->cpu >= 0)
        late->said.cpu_ns = cpu - stay->cpu;
    watchdog_read_begin(w);
    late_record_pool(late, thread->pool);
    bool there = is_there_still(thread, stay) && late_inspect_fibre(late, stay->fibre);
    if (there)
        late_inspect_runner(late, w->scratch, thread, WATCHDOG_ANSWER_NS);
    inspect_delays(w, thread, stay, &late->said);
    there = there && is_there_still(thread, stay);
    watchdog_read_end(w);
    return there;
}

/* Returns false if it is too early to report. */
static bool report(struct watchdog *w, struct thread *thread, struct stay *stay)
{
    struct late late = late_of(w, thread, stay);
    if (!inspect_one(w, thread, stay, &late))
        return false;
    if (!late.said.frame_count && ++stay->tries < TRIES)
        return false; /* another thread asks for a trace, or the thread was not scheduled */
    stay->tries = 0;
    stay->id = late.said.id;
    memcpy(stay->name, late.name, sizeof stay->name);
    memcpy(stay->pool, late.pool, sizeof stay->pool);
    stay->reports++;
    watchdog_report(w, &late);
    return true;
}

static void report_end(struct watchdog *w, struct thread *thread, const struct stay *stay)
{
    if (!stay->reports)
        return;
    struct late late = late_of(w, thread, stay);
    late.said.over = true;
    late.said.id = stay->id;
    memcpy(late.name, stay->name, sizeof late.name);
    memcpy(late.pool, stay->pool, sizeof late.pool); /* which may have ended */
    watchdog_report(w, &late);
}

/* ---- checks ------------------------------------------------------------------------------------------------- */

static void begin(struct watchdog *w, struct thread *thread, struct stay *stay)
{
    bool moves = !atomic_load_explicit(&thread->hold.state, memory_order_acquire); /* [HD1] */
    report_end(w, thread, stay);
    stay->switches = plain_load(&thread->switches, memory_order_acquire);            /* [DG1] */
    stay->fibre = moves ? plain_load(&thread->current, memory_order_acquire) : NULL; /* [DG1] */
    stay->cpu = stay->fibre ? arch_thread_cpu_ns(thread->os_id) : -1;
    stay->since = w->time;
    stay->waited_for = 0;
    stay->due = w->limit;
    stay->reports = stay->tries = 0;
    stay->counted = false;
}

static void check_thread(struct watchdog *w, struct thread *thread, uint64_t taken)
{
    struct stay *stay = stay_of(thread);
    bool waited_for = waiting_for(thread) != 0, comes_by = has_come_by(thread, stay);
    if (!is_there_still(thread, stay) || (comes_by && !waited_for))
        begin(w, thread, stay);
    if (!waited_for)
        stay->waited_for = 0;
    else if (!stay->waited_for || stay->taken != taken)
        stay->waited_for = w->time;
    stay->taken = taken;
    if (!stay->fibre || lasts(w, stay) < w->limit)
        return;
    watchdog_count(w, lasts(w, stay), !stay->counted);
    stay->counted = true;
    if (lasts(w, stay) >= stay->due && (!watchdog_may_report(w) || report(w, thread, stay)))
        stay->due = watchdog_next(stay->due, lasts(w, stay));
}

static bool check_pool(struct watchdog *w, struct pool *pool)
{
    uint64_t taken = taken_in(pool);
    for (int i = 0; i < pool_count(pool); i++)
        check_thread(w, pool->threads[i], taken);
    return true;
}

void stays_check(struct watchdog *w)
{
    (void)watchdog_each_pool(w, check_pool);
}

static bool end_in_pool(struct watchdog *w, struct pool *pool)
{
    for (int i = 0; i < pool_count(pool); i++)
        report_end(w, pool->threads[i], stay_of(pool->threads[i]));
    return true;
}

void stays_end(struct watchdog *w)
{
    (void)watchdog_each_pool(w, end_in_pool);
}
