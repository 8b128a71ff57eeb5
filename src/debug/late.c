/*
 * The text of the watchdog's reports. A running strand is read while it runs, and the result may be garbage: so only
 * memory that stays mapped is read directly, and the caller checks whether the strand was there all the time.
 */
#include "late.h"

#include "../strand/exception.h"
#include "../strand/hook.h"
#include "../strand/pool.h"

#include <stdio.h>
#include <string.h>

/* ---- the strand --------------------------------------------------------------------------------------------- */

void late_record_pool(struct late *late, const struct pool *pool)
{
    late->said.pool = pool_handle(pool);
    late->pool_is_first = pool_is_first(pool);
    (void)pool_name(pool, late->pool);
}

void late_name(struct late *late, struct cb *c)
{
    late->said.id = cb_id(c);
    late->site = c->site;
    snprintf(late->name, sizeof late->name, "%s", cb_name(c));
}

/* Describe the no-suspend section. A hook's record is on the stack of its strand. */
static void inspect_section(struct late *late, const char *file, int line)
{
    char text[160];
    if (line == SECTION_OF_HOOK) {
        const char *name;
        if (arch_peek(&name, file + offsetof(struct hook, name), sizeof name) &&
            arch_peek_text(text, sizeof text, name))
            snprintf(late->section, sizeof late->section, "inside %s", text);
    } else if (file && arch_peek_text(text, sizeof text, file)) {
        snprintf(late->section, sizeof late->section, "%s:%d", text, line);
    }
}

bool late_inspect_fibre(struct late *late, struct fibre *fibre)
{
    struct member *active = plain_load(&fibre->active, memory_order_relaxed);
    if (!active)
        return false;
    struct cb *c = cb_of(active);
    const struct own *own = (const struct own *)(const void *)fibre->own;
    const struct extra *extra = plain_load(&c->extra, memory_order_acquire); /* [PB1] */
    late->said.id = cb_id(c);
    late->site = c->site;
    late->said.unwinding = plain_load(&own->flight, memory_order_relaxed) != NULL;
    inspect_section(late, plain_load(&own->section_file, memory_order_relaxed),
                    plain_load(&own->section_line, memory_order_relaxed));
    if (!extra || !arch_peek_text(late->name, sizeof late->name, extra->name) || !late->name[0])
        snprintf(late->name, sizeof late->name, "%s", plain_load(&c->anchor, memory_order_relaxed) ? "strand" : "root");
    return true;
}

/* ---- its location ------------------------------------------------------------------------------------------- */

static void take_frames(struct late *late, size_t count)
{
    late->said.frames = late->ips;
    late->said.frame_count = count;
}

void late_inspect_runner(struct late *late, struct scratch *scratch, struct thread *thread, int64_t wait_ns)
{
    struct sighting sighting;
    snprintf(late->where, sizeof late->where, "it runs");
    if (!inspect_runner(scratch, thread, wait_ns, &sighting) || sighting.id != late->said.id)
        return;
    late->said.waits = sighting.waits;
    snprintf(late->where, sizeof late->where, "%s", sighting.waits ? "it waits in the system" : "it computes");
    memcpy(late->ips, sighting.ips, sizeof late->ips);
    take_frames(late, sighting.count);
}

struct thread *late_inspect_other(struct late *late, const struct view *view, struct cb *c)
{
    struct frame_span span = inspect_span(view, c);
    struct out words;
    char line[400];
    if (span.runner)
        return span.runner;
    out_open_streaming(&words, -1, line, sizeof line);
    inspect_say_blocked(&words, view->thread, c, 0);
    if (words.used) /* without the end of the line */
        snprintf(late->where, sizeof late->where, "%.*s", (int)words.used - 1, line);
    take_frames(late, inspect_frames(view, c, &span, late->ips, FRAMES_MOST));
    return NULL;
}

/* ---- in words -------------------------------------------------------------------------------------------- */

static const char prefix[] = "libstrand: ";

static const char *duration(char *buffer, size_t size, int64_t ns)
{
    if (ns < INT64_C(10) * STRAND_S)
        snprintf(buffer, size, "%lld ms", (long long)(ns / STRAND_MS));
    else
        snprintf(buffer, size, "%lld.%lld s", (long long)(ns / STRAND_S), (long long)(ns / (STRAND_S / 10) % 10));
    return buffer;
}

static void say_head(const struct late *late, struct out *out)
{
    const strand_late *said = &late->said;
    char thread[96] = "", pool[48] = "", ns[32], cpu[64] = "", used[32];
    bool holds = said->kind == STRAND_LATE_HOLDS;
    if (!late->pool_is_first)
        snprintf(pool, sizeof pool, " of pool '%s'", late->pool);
    if (holds)
        snprintf(thread, sizeof thread, " thread %d%s (%u)", said->thread, pool, said->thread_id);
    if (said->cpu_ns >= 0 && holds && !said->over)
        snprintf(cpu, sizeof cpu, ", %s of a processor", duration(used, sizeof used, said->cpu_ns));
    out_say(out, 0, "%sstrand '%s' #%llu %s%s%s for %s%s%s%s\n", prefix, late->name, (unsigned long long)said->id,
            said->over ? "" : "has ",
            holds        ? "held"
            : said->over ? "was unwinding"
                         : "been unwinding",
            thread, duration(ns, sizeof ns, said->duration_ns), cpu, *late->where ? ": " : "", late->where);
}

static void say_delays(const strand_late *said, struct out *out)
{
    char ns[32];
    if (said->runnable)
        out_say(out, 4, "it delays %zu runnable strand%s, for %s at least\n", said->runnable,
                said->runnable == 1 ? "" : "s", duration(ns, sizeof ns, said->runnable_ns));
    if (said->stalled)
        out_say(out, 4, "the pool is stalled: all its threads are held\n");
    if (said->timers)
        out_say(out, 4, "%zu timer%s due, since %s\n", said->timers, said->timers == 1 ? " is" : "s are",
                duration(ns, sizeof ns, said->timer_ns));
    if (said->events)
        out_say(out, 4, "descriptors have events\n");
}

void late_say(struct late *late, const struct view *view)
{
    strand_late *said = &late->said;
    struct out *out = view->out;
    char function[120];
    uintptr_t offset;
    if (late->site) {
        (void)arch_symbol(late->site, function, sizeof function, &offset);
        snprintf(late->spawned, sizeof late->spawned, "%s+0x%zx", function, (size_t)offset);
    }
    said->name = late->name;
    said->pool_name = late->pool;
    said->spawned = late->spawned;
    said->where = late->where;
    said->section = late->section;
    say_head(late, out);
    if (!said->over) {
        if (*late->spawned)
            out_say(out, 4, "spawned in %s\n", late->spawned);
        if (said->unwinding && said->kind == STRAND_LATE_HOLDS)
            out_say(out, 4, "in a clean-up: it unwinds\n");
        if (*late->section)
            out_say(out, 4, "in a no-suspend section: %s\n", late->section);
        say_delays(said, out);
    }
    if (said->left_out)
        out_say(out, 4, "%llu reports before this one were left out\n", (unsigned long long)said->left_out);
    inspect_say_frames(view, said->frames, said->frame_count, 6);
    said->text = out->text + sizeof prefix - 1;
}
