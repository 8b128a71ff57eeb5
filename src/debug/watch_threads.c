/*
 * The watchdog's observation of threads: which strand has been on each thread since when. A strand leaves its thread by
 * a switch, and switches are counted anyway. The protocol block is in watchdog.h.
 */
#include "debug_layer.h"
#include "watchdog.h"

#include "../sched/polled.h"
#include "../sched/pool.h"
#include "../sched/timers.h"

#include <string.h>

/* How often the watchdog tries to find a strand's location before it reports the strand without. */
enum { TRIES = 3 };
/* A timer is not late before a busy thread would have checked it. */
#define TIMER_NS INT64_C(1000000)

/* ---- observation -------------------------------------------------------------------------------------------- */

static bool is_there_still(struct thread *thread, const struct occupancy *occupancy)
{
    return occupancy->fibre && occupancy->fibre == plain_load(&thread->current, memory_order_acquire) &&
           occupancy->switches == plain_load(&thread->switches, memory_order_acquire) &&
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
static bool has_come_by(const struct thread *thread, struct occupancy *occupancy)
{
    int32_t ticks = plain_load(&thread->ticks, memory_order_relaxed);
    uint64_t ticked = plain_load(&thread->ticked, memory_order_relaxed);
    bool has = ticks != occupancy->ticks || ticked != occupancy->ticked;
    occupancy->ticks = ticks;
    occupancy->ticked = ticked;
    return has;
}

static int64_t lasts(const struct watchdog *w, const struct occupancy *occupancy)
{
    return w->time - occupancy->since;
}

bool watch_threads_has(struct watchdog *w, struct cb *c, int64_t limit)
{
    struct fibre *fibre = c->member.fibre;
    struct thread *home = plain_load(&fibre->home, memory_order_relaxed);
    const struct occupancy *occupancy = occupancy_of(home);
    return lasts(w, occupancy) > 0 && w->limit - lasts(w, occupancy) <= limit && occupancy->fibre == fibre &&
           is_there_still(home, occupancy) && plain_load(&fibre->current, memory_order_relaxed) == &c->member;
}

/* ---- delays ------------------------------------------------------------------------------------------------- */

static bool is_stalled(const struct watchdog *w, const struct pool *pool)
{
    for (int i = 0; i < pool_count(pool); i++) {
        const struct occupancy *occupancy = occupancy_of(pool->threads[i]);
        if (lasts(w, occupancy) < w->limit || !is_there_still(pool->threads[i], occupancy))
            return false;
    }
    return true;
}

static void inspect_delays(struct watchdog *w, struct thread *thread, const struct occupancy *occupancy,
                           strand_watchdog_report *said)
{
    struct pool *pool = thread->pool;
    said->runnable = waiting_for(thread);
    said->runnable_ns = said->runnable && occupancy->waited_for ? w->time - occupancy->waited_for : 0;
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

static struct watch_report report_of(const struct watchdog *w, struct thread *thread, const struct occupancy *occupancy)
{
    return (struct watch_report){.said = {.kind = STRAND_WATCHDOG_OCCUPIES,
                                          .reports = occupancy->reports + 1,
                                          .duration_ns = lasts(w, occupancy),
                                          .limit_ns = w->limit,
                                          .thread = thread->index,
                                          .thread_id = thread->os_id,
                                          .cpu_ns = -1},
                                 .pool_is_first = pool_is_first(thread->pool)};
}

/* Returns false if the strand has left the thread meanwhile. */
static bool inspect_one(struct watchdog *w, struct thread *thread, const struct occupancy *occupancy,
                        struct watch_report *report)
{
    int64_t cpu = arch_thread_cpu_ns(thread->os_id);
    if (cpu >= 0 && occupancy->cpu >= 0)
        report->said.cpu_ns = cpu - occupancy->cpu;
    watchdog_read_begin(w);
    watch_report_record_pool(report, thread->pool);
    bool there = is_there_still(thread, occupancy) && watch_report_inspect_fibre(report, occupancy->fibre);
    if (there)
        watch_report_inspect_runner(report, w->scratch, thread, WATCHDOG_ANSWER_NS);
    inspect_delays(w, thread, occupancy, &report->said);
    there = there && is_there_still(thread, occupancy);
    watchdog_read_end(w);
    return there;
}

/* Returns false if it is too early to report. */
static bool report_one(struct watchdog *w, struct thread *thread, struct occupancy *occupancy)
{
    struct watch_report report = report_of(w, thread, occupancy);
    if (!inspect_one(w, thread, occupancy, &report))
        return false;
    if (!report.said.frame_count && ++occupancy->tries < TRIES)
        return false; /* another thread asks for a trace, or the thread was not scheduled */
    occupancy->tries = 0;
    occupancy->id = report.said.id;
    memcpy(occupancy->name, report.name, sizeof occupancy->name);
    memcpy(occupancy->pool, report.pool, sizeof occupancy->pool);
    occupancy->reports++;
    watchdog_report(w, &report);
    return true;
}

static void report_end(struct watchdog *w, struct thread *thread, const struct occupancy *occupancy)
{
    if (!occupancy->reports)
        return;
    struct watch_report report = report_of(w, thread, occupancy);
    report.said.over = true;
    report.said.id = occupancy->id;
    memcpy(report.name, occupancy->name, sizeof report.name);
    memcpy(report.pool, occupancy->pool, sizeof report.pool); /* which may have ended */
    watchdog_report(w, &report);
}

/* ---- checks ------------------------------------------------------------------------------------------------- */

static void begin(struct watchdog *w, struct thread *thread, struct occupancy *occupancy)
{
    bool moves = !atomic_load_explicit(&thread->hold.state, memory_order_acquire); /* [HD1] */
    report_end(w, thread, occupancy);
    occupancy->switches = plain_load(&thread->switches, memory_order_acquire);            /* [DG1] */
    occupancy->fibre = moves ? plain_load(&thread->current, memory_order_acquire) : NULL; /* [DG1] */
    occupancy->cpu = occupancy->fibre ? arch_thread_cpu_ns(thread->os_id) : -1;
    occupancy->since = w->time;
    occupancy->waited_for = 0;
    occupancy->due = w->limit;
    occupancy->reports = occupancy->tries = 0;
    occupancy->counted = false;
}

static void check_thread(struct watchdog *w, struct thread *thread, uint64_t taken)
{
    struct occupancy *occupancy = occupancy_of(thread);
    bool waited_for = waiting_for(thread) != 0, comes_by = has_come_by(thread, occupancy);
    if (!is_there_still(thread, occupancy) || (comes_by && !waited_for))
        begin(w, thread, occupancy);
    if (!waited_for)
        occupancy->waited_for = 0;
    else if (!occupancy->waited_for || occupancy->taken != taken)
        occupancy->waited_for = w->time;
    occupancy->taken = taken;
    if (!occupancy->fibre || lasts(w, occupancy) < w->limit)
        return;
    watchdog_count(w, lasts(w, occupancy), !occupancy->counted);
    occupancy->counted = true;
    if (lasts(w, occupancy) >= occupancy->due && (!watchdog_may_report(w) || report_one(w, thread, occupancy)))
        occupancy->due = watchdog_next(occupancy->due, lasts(w, occupancy));
}

static bool check_pool(struct watchdog *w, struct pool *pool)
{
    uint64_t taken = taken_in(pool);
    for (int i = 0; i < pool_count(pool); i++)
        check_thread(w, pool->threads[i], taken);
    return true;
}

void watch_threads_check(struct watchdog *w)
{
    (void)watchdog_each_pool(w, check_pool);
}

static bool end_in_pool(struct watchdog *w, struct pool *pool)
{
    for (int i = 0; i < pool_count(pool); i++)
        report_end(w, pool->threads[i], occupancy_of(pool->threads[i]));
    return true;
}

void watch_threads_end(struct watchdog *w)
{
    (void)watchdog_each_pool(w, end_in_pool);
}
