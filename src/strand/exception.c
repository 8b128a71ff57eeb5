/*
 * The exception object: its memory, its trace, and the functions that read it. Throwing is in exception_flight.c;
 * causes and suppressed exceptions are in carry.c.
 */
#include "exception.h"

#include "cancel_reason.h"
#include "hook.h"
#include "misuse.h"

#include "../base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const strand_kind STRAND_ANY = STRAND_KIND("any", NULL);
const strand_kind STRAND_INTERRUPTED = STRAND_KIND("interrupted", &STRAND_ANY);
const strand_kind STRAND_ERROR = STRAND_KIND("error", &STRAND_ANY);
const strand_kind STRAND_TIMED_OUT = STRAND_KIND("timed-out", &STRAND_ERROR);
const strand_kind STRAND_CHILD_CANCELLED = STRAND_KIND("child-cancelled", &STRAND_ERROR);
const strand_kind STRAND_PRUNED = STRAND_KIND("pruned", &STRAND_CHILD_CANCELLED);
const strand_kind STRAND_DEADLOCK = STRAND_KIND("deadlock", &STRAND_ERROR);
const strand_kind STRAND_LIVE_STRANDS = STRAND_KIND("live-strands", &STRAND_ERROR);
const strand_kind STRAND_FOREIGN = STRAND_KIND("foreign", &STRAND_ERROR);
const strand_kind STRAND_SYSTEM = STRAND_KIND("system", &STRAND_ERROR);

/* ---- the object ------------------------------------------------------------------------------------------ */

strand_exception *exception_new_va(const strand_kind *kind, const char *format, va_list args)
{
    strand_exception *e = exception_alloc();
    atomic_init(&e->flying, false);
    atomic_init(&e->listed, false);
    atomic_init(&e->caught, false);
    atomic_init(&e->mistaken, false);
    atomic_flag_clear_explicit(&e->lock, memory_order_relaxed);
    e->kind = kind;
    e->code = 0;
    e->cancel_reason = NULL;
    e->payload = NULL;
    e->payload_free = NULL;
    e->cause = e->ring = e->next = e->walk = NULL;
    e->suppressed_count = 0;
    e->omitted = 0;
    e->source = NULL;
    e->source_serial = e->progress = 0;
    e->ips_count = e->segments_count = 0;
    e->ips_room = TRACE_FIRST;
    e->segments_room = SEGMENTS_FIRST;
    e->ips = e->ips_first;
    e->segments = e->segments_first;
    atomic_init(&e->refs, 1);
    text_format(e->text, sizeof e->text, format, args);
    return e;
}

strand_exception *exception_new(const strand_kind *kind, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    strand_exception *e = exception_new_va(kind, format, args);
    va_end(args);
    return e;
}

void exception_text(strand_exception *e, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    text_format(e->text, sizeof e->text, format, args);
    va_end(args);
}

strand_exception *strand_exception_keep(strand_exception *e)
{
    must_be_there(e, "exception", "strand_exception_keep");
    atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
    return e;
}

void exception_must_hold(const strand_exception *e, const char *function)
{
    if (UNLIKELY(atomic_load_explicit(&e->refs, memory_order_acquire) == 1 && /* [RF1] */
                 atomic_load_explicit(&e->caught, memory_order_relaxed)))
        MISUSE(function, "",
               "the exception '%s' belongs to its catch block, and the caller holds no reference: "
               "strand_exception_keep gives one",
               e->text);
}

/* ---- giving back -------------------------------------------------------------------------------------------- */

/* Frees the object, not what it carries. */
static void give_back(strand_exception *e)
{
    cancel_reason_release(e->cancel_reason);
    if (e->ips != e->ips_first)
        free(e->ips);
    if (e->segments != e->segments_first)
        free(e->segments);
    exception_free(e);
}

static const char *made_of_kind(const struct hook *hook, char *buffer, size_t size)
{
    const strand_exception *e = hook->object;
    snprintf(buffer, size, "the payload belongs to the exception '%s: %s'", e->kind->name, e->text);
    return buffer;
}

static const char *made_of_cxx(const struct hook *hook, char *buffer, size_t size)
{
    const strand_exception *e = hook->object;
    snprintf(buffer, size,
             "it runs wherever the last reference is released, on any thread, and may only free memory; block in the "
             "handler instead; the exception is '%s: %s'",
             e->kind->name, e->text);
    return buffer;
}

static void free_payload(strand_exception *e)
{
    struct hook hook HOOK = {.name = "strand_throw_info.payload_free", .made = made_of_kind, .object = e};
    if (e->payload_free == arch_foreign_drop) {
        hook.name = "the destructor of a C++ exception";
        hook.made = made_of_cxx;
    }
    hook_enter(&hook);
    e->payload_free(e->payload);
    hook_over(&hook);
}

/* Exceptions whose last reference is gone are linked by `walk`: no other holder reaches them. */
static strand_exception *drop(strand_exception *dying, strand_exception *e)
{
    if (!e || atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) != 1) /* [RF1] */
        return dying;
    e->walk = dying;
    return e;
}

/* As soon as `listed` is cleared, another ring may take an exception that others hold, and write its `next` [EX1]. */
static strand_exception *drop_ring(strand_exception *dying, strand_exception *newest)
{
    strand_exception *s = newest ? newest->next : NULL;
    for (strand_exception *next; s; s = next) {
        next = s == newest ? NULL : s->next;
        atomic_store_explicit(&s->listed, false, memory_order_release); /* [EX5] */
        dying = drop(dying, s);
    }
    return dying;
}

/* The last reference is gone: frees the exception, and releases all that it carries. */
static NOINLINE void destroy(strand_exception *e)
{
    if (UNLIKELY(atomic_load_explicit(&e->caught, memory_order_relaxed)))
        MISUSE("strand_exception_release", "", "the exception '%s' belongs to its catch block, which releases it",
               e->text);
    e->walk = NULL;
    for (strand_exception *dying = e; (e = dying);) {
        dying = drop(e->walk, e->cause); /* [EX4] */
        dying = drop_ring(dying, e->ring);
        if (e->payload_free)
            free_payload(e);
        give_back(e);
    }
}

void strand_exception_release(strand_exception *e)
{
    if (!e)
        return;
    arch_san_release(e);
    uint32_t before = atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel); /* [RF1] */
    if (UNLIKELY(!before))
        MISUSE("strand_exception_release", "",
               "the exception is gone: its last reference was released before. Release each reference once");
    if (before != 1)
        return;
    arch_san_acquire(e);
    destroy(e);
}

/* ---- what users read of it ---------------------------------------------------------------------------------- */

bool strand_exception_is(const strand_exception *e, const strand_kind *kind)
{
    must_be_there(e, "exception", "strand_exception_is");
    return kind_is_below(e->kind, kind);
}

const char *strand_exception_text(const strand_exception *e)
{
    must_be_there(e, "exception", "strand_exception_text");
    return e->text;
}

int strand_exception_code(const strand_exception *e)
{
    must_be_there(e, "exception", "strand_exception_code");
    return e->code;
}

const strand_kind *strand_exception_kind(const strand_exception *e)
{
    must_be_there(e, "exception", "strand_exception_kind");
    return e->kind;
}

void *strand_exception_payload(const strand_exception *e)
{
    must_be_there(e, "exception", "strand_exception_payload");
    return e->payload;
}

const strand_exception *strand_exception_cause(const strand_exception *e)
{
    must_be_there(e, "exception", "strand_exception_cause");
    return e->cause;
}

const char *strand_exception_who(const strand_exception *e)
{
    must_be_there(e, "exception", "strand_exception_who");
    return e->cancel_reason ? e->cancel_reason->who : "";
}

const char *strand_exception_why(const strand_exception *e)
{
    must_be_there(e, "exception", "strand_exception_why");
    return e->cancel_reason ? e->cancel_reason->why : "";
}

uint64_t strand_exception_progress(const strand_exception *e)
{
    must_be_there(e, "exception", "strand_exception_progress");
    return e->progress;
}

/* ---- traces ---------------------------------------------------------------------------------------------- */

/* Seeded runs do not refuse memory here: the number of allocations depends on the frames, and so on the compiler. */

static bool room_for_segment(strand_exception *e)
{
    if (e->segments_count < e->segments_room)
        return true;
    if (e->segments_room >= TRACE_MOST)
        return false;
    size_t room = (size_t)e->segments_room * 2;
    struct segment *more = malloc(room * sizeof *more);
    if (!more)
        return false;
    memcpy(more, e->segments, e->segments_count * sizeof *more);
    if (e->segments != e->segments_first)
        free(e->segments);
    e->segments = more;
    e->segments_room = (uint16_t)room;
    return true;
}

/* Makes room for `count` more frames. Returns for how many there is room. */
static size_t room_for_frames(strand_exception *e, size_t count)
{
    size_t free_room = (size_t)(e->ips_room - e->ips_count);
    if (free_room >= count || e->ips_room >= TRACE_MOST)
        return free_room < count ? free_room : count;
    size_t room = e->ips_room;
    while (room < e->ips_count + count && room < TRACE_MOST)
        room *= 2;
    void **more = malloc(room * sizeof *more);
    if (!more)
        return free_room;
    memcpy(more, e->ips, e->ips_count * sizeof *more);
    if (e->ips != e->ips_first)
        free(e->ips);
    e->ips = more;
    e->ips_room = (uint16_t)room;
    free_room = room - e->ips_count;
    return free_room < count ? free_room : count;
}

static void add_segment(strand_exception *e, enum segment_type type, struct cb *c, size_t first, size_t count)
{
    if (!room_for_segment(e))
        return;
    struct segment *segment = &e->segments[e->segments_count++];
    segment->type = (uint8_t)type;
    segment->first = (uint16_t)first;
    segment->count = (uint16_t)count;
    segment->id = cb_id(c);
    const char *name = cb_name(c); /* always fits */
    memcpy(segment->name, name, strlen(name) + 1);
    segment->name[sizeof segment->name - 1] = '\0';
}

NOINLINE uint32_t exception_trace(strand_exception *e, enum segment_type type, struct cb *c)
{
    uint32_t generation = 0;
    exception_lock(e);
    size_t first = e->ips_count, room = room_for_frames(e, TRACE_FIRST), count = 0;
    if (room)
        count = arch_trace_throw(e->ips + first, room, &generation);
    e->ips_count = (uint16_t)(first + count);
    add_segment(e, type, c, first, count);
    exception_unlock(e);
    return generation;
}

void exception_left(strand_exception *e, struct cb *c)
{
    exception_lock(e);
    size_t first = e->ips_count, room = c->site ? room_for_frames(e, 1) : 0;
    if (room)
        e->ips[e->ips_count++] = c->site;
    add_segment(e, SEGMENT_STRAND, c, first, room ? 1 : 0);
    exception_unlock(e);
}
