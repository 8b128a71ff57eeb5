/*
 * The text of the watchdog's reports. A running strand is read while it runs, and the result may be garbage: so only
 * memory that stays mapped is read directly, and the caller checks whether the strand was there all the time.
 */
#include "watch_report.h"

#include "../strand/exception.h"
#include "../strand/hook.h"
#include "../strand/pool.h"

#include <stdio.h>
#include <string.h>

/* ---- the strand --------------------------------------------------------------------------------------------- */

void watch_report_record_pool(struct watch_report *report, const struct pool *pool)
{
    report->said.pool = pool_handle(pool);
    report->pool_is_first = pool_is_first(pool);
    (void)pool_name(pool, report->pool);
}

void watch_report_name(struct watch_report *report, struct cb *c)
{
    report->said.id = cb_id(c);
    report->site = c->site;
    snprintf(report->name, sizeof report->name, "%s", cb_name(c));
}

/* Describe the no-suspend section. A hook's record is on the stack of its strand. */
static void inspect_section(struct watch_report *report, const char *file, int line)
{
    char text[160];
    if (line == SECTION_OF_HOOK) {
        const char *name;
        if (arch_peek(&name, file + offsetof(struct hook, name), sizeof name) &&
            arch_peek_text(text, sizeof text, name))
            snprintf(report->section, sizeof report->section, "inside %s", text);
    } else if (file && arch_peek_text(text, sizeof text, file)) {
        snprintf(report->section, sizeof report->section, "%s:%d", text, line);
    }
}

bool watch_report_inspect_fibre(struct watch_report *report, struct fibre *fibre)
{
    struct member *current = plain_load(&fibre->current, memory_order_relaxed);
    if (!current)
        return false;
    struct cb *c = cb_of(current);
    const struct own *own = (const struct own *)(const void *)fibre->own;
    const struct extra *extra = plain_load(&c->extra, memory_order_acquire); /* [PB1] */
    report->said.id = cb_id(c);
    report->site = c->site;
    report->said.unwinding = plain_load(&own->flight, memory_order_relaxed) != NULL;
    inspect_section(report, plain_load(&own->section_file, memory_order_relaxed),
                    plain_load(&own->section_line, memory_order_relaxed));
    if (!extra || !arch_peek_text(report->name, sizeof report->name, extra->name) || !report->name[0])
        snprintf(report->name, sizeof report->name, "%s",
                 plain_load(&c->anchor, memory_order_relaxed) ? "strand" : "root");
    return true;
}

/* ---- its location ------------------------------------------------------------------------------------------- */

static void take_frames(struct watch_report *report, size_t count)
{
    report->said.frames = report->ips;
    report->said.frame_count = count;
}

void watch_report_inspect_runner(struct watch_report *report, struct scratch *scratch, struct thread *thread,
                                 int64_t wait_ns)
{
    struct sighting sighting;
    snprintf(report->where, sizeof report->where, "it runs");
    if (!inspect_runner(scratch, thread, wait_ns, &sighting) || sighting.id != report->said.id)
        return;
    report->said.waits = sighting.waits;
    snprintf(report->where, sizeof report->where, "%s", sighting.waits ? "it waits in the system" : "it computes");
    memcpy(report->ips, sighting.ips, sizeof report->ips);
    take_frames(report, sighting.count);
}

struct thread *watch_report_inspect_other(struct watch_report *report, const struct view *view, struct cb *c)
{
    struct frame_span span = inspect_span(view, c);
    struct output words;
    char line[400];
    if (span.runner)
        return span.runner;
    output_open_streaming(&words, -1, line, sizeof line);
    inspect_say_blocked(&words, view->thread, c, 0);
    if (words.used) /* without the end of the line */
        snprintf(report->where, sizeof report->where, "%.*s", (int)words.used - 1, line);
    take_frames(report, inspect_frames(view, c, &span, report->ips, FRAMES_MOST));
    return NULL;
}

static const char *duration(char *buffer, size_t size, int64_t ns)
{
    if (ns < INT64_C(10) * STRAND_S)
        snprintf(buffer, size, "%lld ms", (long long)(ns / STRAND_MS));
    else
        snprintf(buffer, size, "%lld.%lld s", (long long)(ns / STRAND_S), (long long)(ns / (STRAND_S / 10) % 10));
    return buffer;
}

/* ---- a process that is stopped ------------------------------------------------------------------------------ */

static const char *code_name(int code)
{
    const char *name = strerrorname_np(-code);
    return name ? name : "unknown";
}

static const char *state_in_words(char state)
{
    switch (state) {
    case 'D':
        return ": it waits in the system, uninterruptibly";
    case 'T':
    case 't':
        return ": it is suspended, or held by a debugger";
    case 'Z':
        return ": it has ended, and its status is not there yet";
    default:
        return "";
    }
}

/* The number has no other process meanwhile, or the report says so a moment too late: nothing depends on it. */
void watch_report_inspect_process(struct watch_report *report)
{
    strand_watchdog_report *said = &report->said;
    char refused[48] = "", kill[64] = "", ns[32];
    said->state = arch_exec_state(said->pid);
    if (said->signal_error)
        snprintf(refused, sizeof refused, ", which the system refused (%s)", code_name(said->signal_error));
    if (said->kill_ns > 0)
        snprintf(kill, sizeof kill, "%s SIGKILL follows in %s", *refused ? ";" : ",",
                 duration(ns, sizeof ns, said->kill_ns));
    snprintf(report->where, sizeof report->where, "signal %d was sent%s%s%s", said->signal, refused, kill,
             state_in_words(said->state));
}

/* ---- in words -------------------------------------------------------------------------------------------- */

static const char prefix[] = "libstrand: ";
/* While it lasts, and when it is over. */
static const char *const deeds[][2] = {
    [STRAND_WATCHDOG_OCCUPIES] = {"has occupied", "occupied"},
    [STRAND_WATCHDOG_CLEANUPS] = {"has been unwinding", "was unwinding"},
    [STRAND_WATCHDOG_PROCESS] = {"has been stopping", "stopped"},
};

static void say_head(const struct watch_report *report, struct output *out)
{
    const strand_watchdog_report *said = &report->said;
    char object[96] = "", pool[48] = "", ns[32], cpu[64] = "", used[32];
    bool occupies = said->kind == STRAND_WATCHDOG_OCCUPIES;
    if (!report->pool_is_first)
        snprintf(pool, sizeof pool, " of pool '%s'", report->pool);
    if (occupies)
        snprintf(object, sizeof object, " thread %d%s (%u)", said->thread, pool, said->thread_id);
    else if (said->pid)
        snprintf(object, sizeof object, " process %d", said->pid);
    if (said->cpu_ns >= 0 && occupies && !said->over)
        snprintf(cpu, sizeof cpu, ", %s of a processor", duration(used, sizeof used, said->cpu_ns));
    output_say(out, 0, "%sstrand '%s' #%llu %s%s for %s%s%s%s\n", prefix, report->name, (unsigned long long)said->id,
               deeds[said->kind][said->over], object, duration(ns, sizeof ns, said->duration_ns), cpu,
               *report->where ? ": " : "", report->where);
}

static void say_delays(const strand_watchdog_report *said, struct output *out)
{
    char ns[32];
    if (said->runnable)
        output_say(out, 4, "it delays %zu runnable strand%s, for %s at least\n", said->runnable,
                   said->runnable == 1 ? "" : "s", duration(ns, sizeof ns, said->runnable_ns));
    if (said->stalled)
        output_say(out, 4, "the pool is stalled: all its threads are occupied\n");
    if (said->timers)
        output_say(out, 4, "%zu timer%s due, since %s\n", said->timers, said->timers == 1 ? " is" : "s are",
                   duration(ns, sizeof ns, said->timer_ns));
    if (said->events)
        output_say(out, 4, "descriptors have events\n");
}

void watch_report_say(struct watch_report *report, const struct view *view)
{
    strand_watchdog_report *said = &report->said;
    struct output *out = view->out;
    char function[120];
    uintptr_t offset;
    if (report->site) {
        (void)arch_symbol(report->site, function, sizeof function, &offset);
        snprintf(report->spawned, sizeof report->spawned, "%s+0x%zx", function, (size_t)offset);
    }
    said->name = report->name;
    said->pool_name = report->pool;
    said->spawned = report->spawned;
    said->where = report->where;
    said->section = report->section;
    said->scope = report->scope;
    say_head(report, out);
    if (!said->over) {
        if (*report->spawned)
            output_say(out, 4, "spawned in %s\n", report->spawned);
        if (*report->scope)
            output_say(out, 4, "in the scope of %s\n", report->scope);
        if (said->unwinding && said->kind == STRAND_WATCHDOG_OCCUPIES)
            output_say(out, 4, "in a clean-up: it unwinds\n");
        if (*report->section)
            output_say(out, 4, "in a no-suspend section: %s\n", report->section);
        say_delays(said, out);
    }
    if (said->left_out)
        output_say(out, 4, "%llu reports before this one were left out\n", (unsigned long long)said->left_out);
    inspect_say_frames(view, said->frames, said->frame_count, 6);
    said->text = out->text + sizeof prefix - 1;
}
