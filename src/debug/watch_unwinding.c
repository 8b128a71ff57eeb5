/*
 * The watchdog's observation of unwinding strands: unwinding.h has their list, the oldest first. A late one is taken
 * out of it, and reported until it is over, or left out. The protocol block is in watchdog.h.
 */
#include "watchdog.h"

#include "../strand/pool.h"
#include "../strand/print.h"

#include <string.h>

static struct unwindings *lock(struct watchdog *w)
{
    struct unwindings *unwindings = &w->runtime->unwindings;
    spin_lock(&unwindings->lock, &w->worker.thread);
    return unwindings;
}

static void unlock(struct unwindings *unwindings)
{
    spin_unlock(&unwindings->lock);
}

static int64_t lasts(const struct watchdog *w, const struct cleanup *cleanup)
{
    return w->clock - cleanup->since;
}

/* ---- reports --------------------------------------------------------------------------------------------- */

static struct watch_report report_of(const struct watchdog *w, const struct cleanup *cleanup)
{
    struct watch_report report = {.said = {.kind = STRAND_WATCHDOG_CLEANUPS,
                                           .reports = cleanup->reports + 1,
                                           .id = cleanup->id,
                                           .duration_ns = lasts(w, cleanup),
                                           .limit_ns = w->cleanups_limit,
                                           .unwinding = true,
                                           .thread = -1,
                                           .cpu_ns = -1}};
    memcpy(report.name, cleanup->name, sizeof report.name);
    return report;
}

/* Inspect a strand that can't end meanwhile: under the lock. Returns the thread that it runs on, or NULL. */
static struct thread *inspect_strand(struct watchdog *w, struct cb *c, struct watch_report *report)
{
    struct view view = {.thread = &w->worker.thread, .loose = true, .scratch = w->scratch, .out = &w->out};
    watch_report_name(report, c);
    watch_report_record_pool(report, c->member.fibre->pool);
    return watch_report_inspect_other(report, &view, c);
}

/* Returns false if it is over. */
static bool inspect_one(struct watchdog *w, const struct cleanup *cleanup, struct watch_report *report)
{
    watchdog_read_begin(w);
    struct unwindings *unwindings = lock(w);
    struct unwinding *unwinding = cleanup->unwinding;
    struct thread *runner = unwinding ? inspect_strand(w, unwinding->c, report) : NULL;
    unlock(unwindings);
    if (runner) {
        report->said.thread = runner->index;
        report->said.thread_id = runner->os_id;
        watch_report_inspect_runner(report, w->scratch, runner, WATCHDOG_ANSWER_NS);
    }
    watchdog_read_end(w);
    return unwinding != NULL;
}

static void report(struct watchdog *w, struct cleanup *cleanup)
{
    struct watch_report report = report_of(w, cleanup);
    if (!inspect_one(w, cleanup, &report))
        return;
    cleanup->id = report.said.id;
    memcpy(cleanup->name, report.name, sizeof cleanup->name);
    cleanup->due = watchdog_next(cleanup->due, lasts(w, cleanup));
    cleanup->reports++;
    watchdog_report(w, &report);
}

static void report_end(struct watchdog *w, struct cleanup *cleanup)
{
    struct watch_report report = report_of(w, cleanup);
    report.said.over = true;
    cleanup->used = false;
    if (cleanup->reports)
        watchdog_report(w, &report);
}

/* ---- checks ------------------------------------------------------------------------------------------------- */

static struct cleanup *free_cleanup(struct watchdog *w)
{
    for (int i = 0; i < CLEANUPS_MOST; i++)
        if (!w->cleanups[i].used)
            return &w->cleanups[i];
    return NULL;
}

/* Under the lock: unlink the first late unwinding of the list. */
static struct unwinding *take_late(struct watchdog *w, struct unwindings *unwindings)
{
    for (struct link *link = unwindings->all.next; link != &unwindings->all; link = link->next) {
        struct unwinding *unwinding = CONTAINER(link, struct unwinding, link);
        if (w->clock - unwinding->since < w->cleanups_limit)
            return NULL;
        if (watch_threads_has(w, unwinding->c))
            continue;
        list_remove(link);
        return unwinding;
    }
    return NULL;
}

/* Returns whether there was one more that is late. It is recorded, unless there is no room for it. */
static bool record_late(struct watchdog *w, struct cleanup *cleanup)
{
    struct unwindings *unwindings = lock(w);
    struct unwinding *unwinding = take_late(w, unwindings);
    int64_t since = unwinding ? unwinding->since : 0;
    if (unwinding && cleanup) {
        *cleanup = (struct cleanup){.used = true, .unwinding = unwinding, .since = since, .due = w->cleanups_limit};
        unwinding->watchdog_ref = &cleanup->unwinding;
    }
    unlock(unwindings);
    if (!unwinding)
        return false;
    watchdog_count(w, w->clock - since, true);
    w->left_out += !cleanup;
    return true;
}

static void check_noted(struct watchdog *w, struct cleanup *cleanup)
{
    struct unwindings *unwindings = lock(w);
    bool over = !cleanup->unwinding;
    unlock(unwindings);
    watchdog_count(w, lasts(w, cleanup), false);
    if (over)
        report_end(w, cleanup);
    else if (lasts(w, cleanup) < cleanup->due)
        return;
    else if (watchdog_may_report(w))
        report(w, cleanup);
    else
        cleanup->due = watchdog_next(cleanup->due, lasts(w, cleanup));
}

void watch_unwinding_check(struct watchdog *w)
{
    struct cleanup *cleanup;
    do
        cleanup = free_cleanup(w);
    while (record_late(w, cleanup));
    for (int i = 0; i < CLEANUPS_MOST; i++)
        if (w->cleanups[i].used)
            check_noted(w, &w->cleanups[i]);
}

int64_t watch_unwinding_due(struct watchdog *w)
{
    int64_t due = ARCH_FOREVER;
    struct unwindings *unwindings = lock(w);
    if (!list_empty(&unwindings->all))
        due = CONTAINER(unwindings->all.next, struct unwinding, link)->since + w->cleanups_limit;
    unlock(unwindings);
    for (int i = 0; i < CLEANUPS_MOST; i++) {
        const struct cleanup *cleanup = &w->cleanups[i];
        if (cleanup->used && cleanup->since + cleanup->due < due)
            due = cleanup->since + cleanup->due;
    }
    return due;
}

void watch_unwinding_put_off(struct watchdog *w, int64_t ns)
{
    struct unwindings *unwindings = lock(w);
    for (struct link *link = unwindings->all.next; link != &unwindings->all; link = link->next)
        CONTAINER(link, struct unwinding, link)->since += ns;
    unlock(unwindings);
    for (int i = 0; i < CLEANUPS_MOST; i++)
        w->cleanups[i].since += ns;
}

void watch_unwinding_end(struct watchdog *w)
{
    for (int i = 0; i < CLEANUPS_MOST; i++)
        if (w->cleanups[i].used)
            report_end(w, &w->cleanups[i]);
}
