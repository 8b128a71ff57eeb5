/*
 * The watchdog's life: its sleep, its checks, its limit of reports. The protocol block is in watchdog.h.
 */
#include "watchdog.h"
#include "debug_layer.h"

#include "../sched/pool.h"
#include "../strand/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { CHECKS = 4, CREDIT_MOST = 10 };
#define PERIOD_MOST_NS INT64_C(1000000000)
#define CREDIT_NS INT64_C(1000000000) /* for one report more */
#define LIMIT_MOST_NS (INT64_MAX / 4)
/* If the watchdog checks so much later than planned, and not because other threads ran, then the process was
 * stopped. */
#define LATE_NS INT64_C(20000000)

bool watchdog_each_pool(struct watchdog *w, bool (*fn)(struct watchdog *w, struct pool *pool))
{
    bool all = true;
    struct pool *pool = atomic_load_explicit(&w->runtime->sub.pools, memory_order_acquire); /* [PB1] */
    for (; pool; pool = atomic_load_explicit(&pool->older, memory_order_relaxed))
        all &= fn(w, pool);
    return all;
}

/* ---- checks and reports ------------------------------------------------------------------------------------- */

void watchdog_read_begin(struct watchdog *w)
{
    readers_enter(&w->runtime->sub.memory.readers);
}

void watchdog_read_end(struct watchdog *w)
{
    if (w->runtime->sub.concurrent)
        shared_fibre_readers_leave(&w->worker.thread);
    else
        readers_leave_unfreed(&w->runtime->sub.memory.readers);
}

void watchdog_count(struct watchdog *w, int64_t ns, bool first)
{
    if (first)
        atomic_fetch_add_explicit(&w->late, 1, memory_order_relaxed);
    if ((uint64_t)ns > atomic_load_explicit(&w->late_ns, memory_order_relaxed))
        atomic_store_explicit(&w->late_ns, (uint64_t)ns, memory_order_relaxed);
}

bool watchdog_may_report(struct watchdog *w)
{
    int64_t more = (w->time - w->credited) / CREDIT_NS;
    w->credited += more * CREDIT_NS;
    w->credit = more < CREDIT_MOST - w->credit ? w->credit + (int)more : CREDIT_MOST;
    w->left_out += !w->credit;
    return w->credit > 0;
}

void watchdog_report(struct watchdog *w, struct watch_report *report)
{
    const strand_options *options = &w->runtime->options;
    struct view view = {.thread = &w->worker.thread, .scratch = w->scratch, .out = &w->out};
    w->credit -= !report->said.over;
    report->said.size = sizeof report->said;
    report->said.left_out = w->left_out;
    w->left_out = 0;
    w->out.used = 0;
    w->out.error = 0;
    watch_report_say(report, &view);
    if (!options->on_watchdog && !options->on_log) {
        output_flush(&w->out);
        return;
    }
    w->out.text[w->out.used - 1] = '\0'; /* the end of the last line */
    if (options->on_watchdog)
        options->on_watchdog(&report->said, options->hook_arg);
    else
        options->on_log(report->said.text, options->hook_arg);
}

int64_t watchdog_next(int64_t due, int64_t ns)
{
    while (due <= ns && due <= LIMIT_MOST_NS)
        due *= 2;
    return due;
}

/* ---- sleeping -------------------------------------------------------------------------------------------- */

static bool all_parked(struct watchdog *w, struct pool *pool)
{
    (void)w;
    for (int i = 0; i < pool_count(pool); i++)
        if (atomic_load_explicit(&pool->threads[i]->hold.state, memory_order_seq_cst) != HOLD_PARKED) /* [WD1] */
            return false;
    return true;
}

/* Advance the time. It does not count if the watchdog should have been here much earlier: a debugger, or another
 * process, has stopped the process. */
static void pass(struct watchdog *w, int64_t wanted)
{
    int64_t clock = platform_now(&w->runtime->sub), delayed = arch_thread_delayed_ns();
    int64_t late = clock - wanted, most = w->period > LATE_NS ? w->period : LATE_NS;
    if (late > most && delayed - w->delayed < late / 2)
        watch_episodes_put_off(w, clock - w->clock);
    else
        w->time += clock - w->clock;
    w->clock = clock;
    w->delayed = delayed;
}

static void sleep_until(struct watchdog *w, int64_t until)
{
    arch_futex_wait(&w->wake, 0, until);
    bool woken = atomic_load_explicit(&w->wake, memory_order_seq_cst); /* [PB1] */
    int64_t when = woken ? atomic_load_explicit(&w->woken, memory_order_relaxed) : until;
    pass(w, when < until ? when : until);
}

/* Sleep until a thread moves [WD1], or an episode is late [WD2]: that time is read after all were seen
 * parked. */
static void sleep_while_all_parked(struct watchdog *w)
{
    struct subprocess *sub = &w->runtime->sub;
    atomic_store_explicit(&sub->drowsy, true, memory_order_seq_cst); /* [WD1] */
    if (watchdog_each_pool(w, all_parked)) {
        int64_t until = watch_episodes_due(w), least = w->clock + w->period;
        sleep_until(w, until > least ? until : least);
    }
    atomic_store_explicit(&sub->drowsy, false, memory_order_relaxed);
}

static bool stops(struct watchdog *w)
{
    return atomic_load_explicit(&w->stop, memory_order_seq_cst); /* [WD3] */
}

static void *watch(void *arg)
{
    struct watchdog *w = arg;
    while (!stops(w)) {
        watch_threads_check(w);
        watch_episodes_check(w);
        pass(w, w->clock);
        atomic_store_explicit(&w->wake, 0, memory_order_seq_cst); /* [WD3] */
        if (stops(w))
            break;
        if (watchdog_each_pool(w, all_parked))
            sleep_while_all_parked(w);
        else
            sleep_until(w, w->clock + w->period);
    }
    watch_threads_end(w);
    watch_episodes_end(w);
    return NULL;
}

static void wake(struct watchdog *w)
{
    atomic_store_explicit(&w->woken, platform_now(&w->runtime->sub), memory_order_relaxed);
    atomic_store_explicit(&w->wake, 1, memory_order_seq_cst); /* [WD3] [PB1] */
    arch_futex_wake(&w->wake, 1);
}

void watchdog_moved(struct subprocess *sub)
{
    if (atomic_exchange_explicit(&sub->drowsy, false, memory_order_seq_cst)) /* [WD1] */
        wake(debug_run_of((struct runtime *)sub)->watchdog);
}

/* ---- life --------------------------------------------------------------------------------------------------- */

static void unmake(struct watchdog *w)
{
    output_close(&w->out);
    if (w->scratch)
        arch_unmap(w->scratch, scratch_size());
    free(w);
}

static int64_t limit_of(int64_t ns)
{
    return ns < LIMIT_MOST_NS ? ns : LIMIT_MOST_NS;
}

static int make(struct runtime *runtime, struct watchdog **out)
{
    const strand_options *options = &runtime->options;
    struct watchdog *w = aligned_alloc(CACHE_LINE, (sizeof *w + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1));
    void *memory;
    if (!w)
        return -ENOMEM;
    memset(w, 0, sizeof *w);
    w->runtime = runtime;
    worker_open_outside(&w->worker, runtime);
    w->limit = limit_of(options->watchdog_ns);
    int64_t cleanups = options->watchdog_cleanups_ns ? limit_of(options->watchdog_cleanups_ns) : w->limit;
    int64_t least = w->limit < cleanups ? w->limit : cleanups;
    watch_episodes_open(w, cleanups);
    w->period = least / CHECKS < PERIOD_MOST_NS ? least / CHECKS : PERIOD_MOST_NS;
    w->credit = CREDIT_MOST;
    w->time = 1; /* 0 is no time: struct occupancy */
    w->clock = platform_now(&runtime->sub);
    int error = output_open(&w->out, 2);
    if (!error && !(error = arch_map(scratch_size(), &memory))) {
        w->scratch = memory;
        scratch_init(w->scratch);
    }
    if (error)
        unmake(w);
    else
        *out = w;
    return error;
}

int watchdog_open(struct runtime *runtime)
{
    struct debug_run *debug = debug_run_of(runtime);
    int error = make(runtime, &debug->watchdog);
    if (!error &&
        (error = arch_thread_start_unsignalled(&debug->watchdog->os, watch, debug->watchdog, "strand-watchdog"))) {
        unmake(debug->watchdog);
        debug->watchdog = NULL;
    }
    watch_episodes_keep(runtime, !error);
    return error;
}

void watchdog_close(struct runtime *runtime)
{
    struct debug_run *debug = debug_run_of(runtime);
    struct watchdog *w = debug->watchdog;
    atomic_store_explicit(&w->stop, true, memory_order_seq_cst); /* [WD3] */
    wake(w);
    arch_thread_join(w->os);
    debug->watchdog = NULL;
    watch_episodes_keep(runtime, false);
    unmake(w);
}

void watchdog_figures(const struct watchdog *watchdog, uint64_t *late, uint64_t *late_ns)
{
    *late = atomic_load_explicit(&watchdog->late, memory_order_relaxed);
    *late_ns = atomic_load_explicit(&watchdog->late_ns, memory_order_relaxed);
}
