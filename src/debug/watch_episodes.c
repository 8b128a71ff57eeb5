/*
 * The watchdog's observation of episodes: episode.h has their lists, the oldest first. A late one is taken out of its
 * list, and reported until it is over. Without a note for it, it stays in the list until there is one. The protocol
 * block is in watchdog.h.
 */
#include "watchdog.h"

#include "../io/process.h"
#include "../strand/pool.h"
#include "../strand/print.h"

#include <stdio.h>
#include <string.h>

void watch_episodes_open(struct watchdog *w, int64_t cleanups_limit)
{
    struct io_run *io = w->runtime->parts[IO_PART];
    w->watched[0] = (struct watched){
        .episodes = &w->runtime->unwindings, .kind = STRAND_WATCHDOG_CLEANUPS, .limit = cleanups_limit};
    w->watched[1] = (struct watched){.episodes = &io->stops, .kind = STRAND_WATCHDOG_PROCESS, .limit = w->limit};
    for (int i = 0; i < WATCHED_KINDS; i++)
        list_init(&w->watched[i].episodes->all);
}

void watch_episodes_keep(struct runtime *runtime, bool kept)
{
    struct io_run *io = runtime->parts[IO_PART];
    runtime->unwindings.kept = io->stops.kept = kept;
}

static void lock(struct watchdog *w, struct episodes *episodes)
{
    spin_lock(&episodes->lock, &w->worker.thread);
}

static void unlock(struct episodes *episodes)
{
    spin_unlock(&episodes->lock);
}

static int64_t lasts(const struct watchdog *w, const struct note *note)
{
    return w->clock - note->since;
}

/* ---- reports --------------------------------------------------------------------------------------------- */

static struct watch_report report_of(const struct watchdog *w, const struct watched *watched, const struct note *note)
{
    struct watch_report report = {.said = {.kind = watched->kind,
                                           .reports = note->reports + 1,
                                           .id = note->id,
                                           .pid = note->pid,
                                           .duration_ns = lasts(w, note),
                                           .limit_ns = watched->limit,
                                           .unwinding = watched->kind == STRAND_WATCHDOG_CLEANUPS,
                                           .thread = -1,
                                           .cpu_ns = -1}};
    memcpy(report.name, note->name, sizeof report.name);
    return report;
}

/* Record the process that the strand stops, and its scope [PC8]. */
static void inspect_process(struct watchdog *w, struct episode *episode, struct watch_report *report)
{
    strand_watchdog_report *said = &report->said;
    const struct process *process = CONTAINER(episode, struct process, stopping);
    said->pid = process->end.pid;
    said->signal = plain_load(&process->last_signal, memory_order_relaxed);        /* [PC8] */
    said->signal_error = plain_load(&process->signal_error, memory_order_relaxed); /* [PC8] */
    said->kill_ns = process->killed_at.ns > w->clock ? process->killed_at.ns - w->clock : 0;
    spin_lock(&w->runtime->hand_off, &w->worker.thread);
    snprintf(report->scope, sizeof report->scope, BLOCK_LOCATION, BLOCK_LOCATION_OF(&episode->c->anchor->block));
    spin_unlock(&w->runtime->hand_off);
}

/* Inspect a strand that can't end meanwhile: under the lock. Returns the thread that it runs on, if its place has to be
 * found there, or NULL. */
static struct thread *inspect_strand(struct watchdog *w, struct episode *episode, struct watch_report *report)
{
    struct cb *c = episode->c;
    struct view view = {.thread = &w->worker.thread, .loose = true, .scratch = w->scratch, .out = &w->out};
    watch_report_name(report, c);
    watch_report_record_pool(report, c->member.fibre->pool);
    if (report->said.kind == STRAND_WATCHDOG_CLEANUPS)
        return watch_report_inspect_other(report, &view, c);
    inspect_process(w, episode, report);
    return NULL;
}

/* Returns false if it is over. */
static bool inspect_one(struct watchdog *w, struct episodes *episodes, const struct note *note,
                        struct watch_report *report)
{
    watchdog_read_begin(w);
    lock(w, episodes);
    struct episode *episode = note->episode;
    struct thread *runner = episode ? inspect_strand(w, episode, report) : NULL;
    unlock(episodes);
    if (runner) {
        report->said.thread = runner->index;
        report->said.thread_id = runner->os_id;
        watch_report_inspect_runner(report, w->scratch, runner, WATCHDOG_ANSWER_NS);
    }
    watchdog_read_end(w);
    if (episode && report->said.pid)
        watch_report_inspect_process(report);
    return episode != NULL;
}

static void report(struct watchdog *w, struct watched *watched, struct note *note)
{
    struct watch_report report = report_of(w, watched, note);
    if (!inspect_one(w, watched->episodes, note, &report))
        return;
    note->id = report.said.id;
    note->pid = report.said.pid;
    memcpy(note->name, report.name, sizeof note->name);
    note->due = watchdog_next(note->due, lasts(w, note));
    note->reports++;
    watchdog_report(w, &report);
}

static void report_end(struct watchdog *w, const struct watched *watched, struct note *note)
{
    struct watch_report report = report_of(w, watched, note);
    report.said.over = true;
    note->used = false;
    if (note->reports)
        watchdog_report(w, &report);
}

/* ---- checks ------------------------------------------------------------------------------------------------- */

static struct note *free_note(struct watched *watched)
{
    for (int i = 0; i < NOTES_MOST; i++)
        if (!watched->notes[i].used)
            return &watched->notes[i];
    return NULL;
}

/* Under the lock: unlink the first late episode of the list; or, without a note for it, find the first that was not
 * left out before. */
static struct episode *take_late(struct watchdog *w, const struct watched *watched, bool has_note)
{
    struct link *all = &watched->episodes->all;
    for (struct link *link = all->next; link != all; link = link->next) {
        struct episode *episode = CONTAINER(link, struct episode, link);
        if (w->clock - episode->since < watched->limit)
            return NULL;
        if ((!has_note && episode->left_out) || watch_threads_has(w, episode->c, watched->limit))
            continue;
        if (has_note)
            list_remove(link);
        return episode;
    }
    return NULL;
}

/* Returns whether there was one more that is late. It is recorded, or left out until there is a note for it. */
static bool record_late(struct watchdog *w, struct watched *watched, struct note *note)
{
    lock(w, watched->episodes);
    struct episode *episode = take_late(w, watched, note != NULL);
    int64_t since = episode ? episode->since : 0;
    bool first = episode && !episode->left_out;
    if (episode && note) {
        *note = (struct note){.used = true, .episode = episode, .since = since, .due = watched->limit};
        episode->watchdog_ref = &note->episode;
    } else if (episode) {
        episode->left_out = true;
    }
    unlock(watched->episodes);
    if (!episode)
        return false;
    if (first)
        watchdog_count(w, w->clock - since, true);
    w->left_out += !note;
    return true;
}

static void check_noted(struct watchdog *w, struct watched *watched, struct note *note)
{
    lock(w, watched->episodes);
    bool over = !note->episode;
    unlock(watched->episodes);
    watchdog_count(w, lasts(w, note), false);
    if (over)
        report_end(w, watched, note);
    else if (lasts(w, note) < note->due)
        return;
    else if (watchdog_may_report(w))
        report(w, watched, note);
    else
        note->due = watchdog_next(note->due, lasts(w, note));
}

static void check(struct watchdog *w, struct watched *watched)
{
    struct note *note;
    do
        note = free_note(watched);
    while (record_late(w, watched, note));
    for (int i = 0; i < NOTES_MOST; i++)
        if (watched->notes[i].used)
            check_noted(w, watched, &watched->notes[i]);
}

void watch_episodes_check(struct watchdog *w)
{
    for (int i = 0; i < WATCHED_KINDS; i++)
        check(w, &w->watched[i]);
}

/* Under the lock: the oldest episode that a check may record. One that was left out waits for a note. */
static const struct episode *next_of(struct watched *watched)
{
    bool has_note = free_note(watched) != NULL;
    struct link *all = &watched->episodes->all;
    for (struct link *link = all->next; link != all; link = link->next) {
        const struct episode *episode = CONTAINER(link, struct episode, link);
        if (has_note || !episode->left_out)
            return episode;
    }
    return NULL;
}

static int64_t due_of(struct watchdog *w, struct watched *watched)
{
    int64_t due = ARCH_FOREVER;
    lock(w, watched->episodes);
    const struct episode *next = next_of(watched);
    if (next)
        due = next->since + watched->limit;
    unlock(watched->episodes);
    for (int i = 0; i < NOTES_MOST; i++) {
        const struct note *note = &watched->notes[i];
        if (note->used && note->since + note->due < due)
            due = note->since + note->due;
    }
    return due;
}

int64_t watch_episodes_due(struct watchdog *w)
{
    int64_t due = ARCH_FOREVER;
    for (int i = 0; i < WATCHED_KINDS; i++) {
        int64_t of_kind = due_of(w, &w->watched[i]);
        due = of_kind < due ? of_kind : due;
    }
    return due;
}

static void put_off(struct watchdog *w, struct watched *watched, int64_t ns)
{
    struct link *all = &watched->episodes->all;
    lock(w, watched->episodes);
    for (struct link *link = all->next; link != all; link = link->next)
        CONTAINER(link, struct episode, link)->since += ns;
    unlock(watched->episodes);
    for (int i = 0; i < NOTES_MOST; i++)
        watched->notes[i].since += ns;
}

void watch_episodes_put_off(struct watchdog *w, int64_t ns)
{
    for (int i = 0; i < WATCHED_KINDS; i++)
        put_off(w, &w->watched[i], ns);
}

void watch_episodes_end(struct watchdog *w)
{
    for (int kind = 0; kind < WATCHED_KINDS; kind++)
        for (int i = 0; i < NOTES_MOST; i++)
            if (w->watched[kind].notes[i].used)
                report_end(w, &w->watched[kind], &w->watched[kind].notes[i]);
}
