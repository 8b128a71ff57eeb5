/*
 * The exception object and its throwing. How frames are unwound is src/arch/unwind.c; where a try block stops it is
 * try.c.
 */
#include "exception.h"

#include "cxx.h"
#include "exception_print.h"
#include "handle.h"
#include "misuse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const strand_kind STRAND_ANY = {"any", NULL};
const strand_kind STRAND_INTERRUPTED = {"interrupted", &STRAND_ANY};
const strand_kind STRAND_ERROR = {"error", &STRAND_ANY};
const strand_kind STRAND_TIMED_OUT = {"timed-out", &STRAND_ERROR};
const strand_kind STRAND_CHILD_CANCELLED = {"child-cancelled", &STRAND_ERROR};
const strand_kind STRAND_PRUNED = {"pruned", &STRAND_CHILD_CANCELLED};
const strand_kind STRAND_DEADLOCK = {"deadlock", &STRAND_ERROR};
const strand_kind STRAND_LIVE_STRANDS = {"live-strands", &STRAND_ERROR};
const strand_kind STRAND_FOREIGN = {"foreign", &STRAND_ERROR};
const strand_kind STRAND_SYSTEM = {"system", &STRAND_ERROR};

/* ---- notes: who cancelled, and why ----------------------------------------------------------------------- */

struct note *note_new(struct thread *thread, struct cb *who, const char *why)
{
    struct note *note = driver_malloc(thread, sizeof *note);
    if (!note)
        return NULL; /* the cancel goes on without its provenance */
    atomic_init(&note->refs, 1);
    note->who_id = who ? cb_id(who) : 0;
    note->pruned = false;
    snprintf(note->who, sizeof note->who, "%s", who ? cb_name(who) : "the run itself");
    snprintf(note->why, sizeof note->why, "%s", why ? why : "");
    arch_note_release(note);
    return note;
}

struct note *note_keep(struct note *note)
{
    if (note)
        atomic_fetch_add_explicit(&note->refs, 1, memory_order_relaxed);
    return note;
}

void note_release(struct note *note)
{
    if (!note)
        return;
    arch_note_release(note);
    if (atomic_fetch_sub_explicit(&note->refs, 1, memory_order_acq_rel) != 1)
        return;
    arch_note_acquire(note);
    free(note);
}

struct note *note_of(struct cb *c)
{
    struct note *note = atomic_load_explicit(&c->note, memory_order_acquire);
    if (note)
        arch_note_acquire(note);
    return note;
}

/* ---- the object ------------------------------------------------------------------------------------------ */

strand_exception *exception_new_va(const strand_kind *kind, const char *format, va_list args)
{
    strand_exception *e = exception_alloc();
    atomic_init(&e->flying, false);
    atomic_init(&e->listed, false);
    atomic_init(&e->caught, false);
    atomic_flag_clear_explicit(&e->lock, memory_order_relaxed);
    e->kind = kind;
    e->code = 0;
    e->note = NULL;
    e->payload = NULL;
    e->payload_free = NULL;
    e->cause = e->ring = e->next = e->walk = NULL;
    e->ring_count = 0;
    e->omitted = 0;
    e->source = NULL;
    e->source_serial = e->progress = 0;
    e->ips_count = e->segments_count = 0;
    e->ips_room = TRACE_FIRST;
    e->segments_room = SEGMENTS_FIRST;
    e->ips = e->ips_first;
    e->segments = e->segments_first;
    atomic_init(&e->refs, 1);
    if (strchr(format, '%')) {
        vsnprintf(e->text, sizeof e->text, format, args);
    } else {
        size_t size = strnlen(format, sizeof e->text - 1);
        memcpy(e->text, format, size);
        e->text[size] = '\0';
    }
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
    vsnprintf(e->text, sizeof e->text, format, args);
    va_end(args);
}

strand_exception *strand_exception_keep(strand_exception *e)
{
    must_be_there(e, "exception", "strand_exception_keep");
    atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
    return e;
}

void exception_give_back(strand_exception *e)
{
    note_release(e->note);
    if (e->ips != e->ips_first)
        free(e->ips);
    if (e->segments != e->segments_first)
        free(e->segments);
    exception_free(e);
}

void strand_exception_release(strand_exception *e)
{
    if (!e)
        return;
    arch_note_release(e);
    if (atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) != 1)
        return;
    arch_note_acquire(e);
    exception_destroy_(e);
}

void exception_must_hold(const strand_exception *e, const char *function)
{
    if (UNLIKELY(atomic_load_explicit(&e->refs, memory_order_acquire) == 1 &&
                 atomic_load_explicit(&e->caught, memory_order_relaxed)))
        MISUSE(function, "",
               "the exception '%s' belongs to its catch block, and the caller holds no reference: "
               "strand_exception_keep gives one",
               e->text);
}

/* ---- traces ---------------------------------------------------------------------------------------------- */

/* A seed refuses no memory here: how often it is asked for depends on the frames, which are the compiler's. */

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

/* Makes room for `count` more frames; returns for how many there is. */
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

static void add_segment(strand_exception *e, enum segment_kind kind, struct cb *c, size_t first, size_t count)
{
    if (!room_for_segment(e))
        return;
    struct segment *segment = &e->segments[e->segments_count++];
    segment->kind = (uint8_t)kind;
    segment->first = (uint16_t)first;
    segment->count = (uint16_t)count;
    segment->id = cb_id(c);
    const char *name = cb_name(c); /* always fits */
    memcpy(segment->name, name, strlen(name) + 1);
    segment->name[sizeof segment->name - 1] = '\0';
}

NOINLINE void exception_trace(strand_exception *e, enum segment_kind kind, struct cb *c)
{
    exception_lock(e);
    size_t first = e->ips_count, room = room_for_frames(e, TRACE_FIRST), count = 0;
    if (room)
        count = arch_trace(e->ips + first, room);
    e->ips_count = (uint16_t)(first + count);
    add_segment(e, kind, c, first, count);
    exception_unlock(e);
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

/* ---- in flight ------------------------------------------------------------------------------------------- */

/* No handler has it any more, and nobody unwinds it. Its exception's reference is the caller's. */
static strand_exception *finish(struct flight *flight)
{
    strand_exception *e = flight->exception, *vehicle = flight->vehicle;
    atomic_store_explicit(&CONTAINER(flight, strand_exception, flight)->flying, false, memory_order_release);
    strand_exception_release(vehicle);
    return e;
}

static void launch(struct cb *me, struct flight *flight)
{
    struct own *own = own_of(me);
    flight->outer = own->flight;
    flight->floor = own->floor;
    flight->unwinding.c = NULL;
    if (UNLIKELY(runtime_of(me->member.fibre->home)->watchdog != NULL) && !flight->outer)
        unwinding_begins_(me, &flight->unwinding);
    own->flight = flight;
    if (own->floor < own->depth + 1)
        own->floor = own->depth + 1; /* clean-ups may block: docs/protocols/interrupt.md */
}

static void unlaunch(struct cb *me, struct flight *flight)
{
    own_of(me)->flight = flight->outer;
    if (UNLIKELY(flight->unwinding.c != NULL))
        unwinding_ends_(&flight->unwinding);
    flight->unwinding.c = NULL;
}

static COLD __attribute__((noreturn)) void die_of_escape(strand_exception *e, strand_exception *other)
{
    print_and_die("an exception would leave a clean-up that runs because of another one (catch it there: "
                  "strand_suppress keeps it)",
                  e, other);
}

strand_exception *exception_land(struct cb *me, const struct flight *outer)
{
    struct flight *flight = own_of(me)->flight;
    unlaunch(me, flight);
    if (UNLIKELY(flight->outer != outer))
        die_of_escape(flight->exception, flight->outer->exception);
    if (LIKELY(arch_flight_land(&flight->arch)))
        return finish(flight);
    return strand_exception_keep(flight->exception);
}

/* ---- in flight, in C++ ----------------------------------------------------------------------------------- */

void exception_set_aside(struct cb *me)
{
    struct flight *flight;
    while ((flight = own_of(me)->flight) && arch_flight_is_caught(&flight->arch)) {
        unlaunch(me, flight);
        flight->arch.thrown->aside = true;
    }
}

/* A catch (...) of C++ has ended, on the strand that threw it. */
static void swallowed(struct arch_flight *arch, bool aside)
{
    struct flight *flight = CONTAINER(arch, struct flight, arch);
    struct cb *me = current_of(must_be_strand("strand_throw"));
    if (!aside) {
        struct own *own = own_of(me);
        ASSERT(own->flight == flight);
        own->floor = flight->floor <= own->depth + 1 ? flight->floor : own->depth + 1;
        unlaunch(me, flight);
    }
    strand_exception_release(finish(flight));
}

/* The handler has rethrown it. */
static void again(struct arch_flight *arch)
{
    struct cb *me = current_of(must_be_strand("strand_throw"));
    exception_set_aside(me);
    launch(me, CONTAINER(arch, struct flight, arch));
}

static void escapes(struct arch_flight *arch)
{
    struct flight *flight = CONTAINER(arch, struct flight, arch);
    die_of_escape(flight->exception, flight->outer->exception);
}

static void keep(void *e)
{
    strand_exception_keep(e);
}

static void release(void *e)
{
    strand_exception_release(e);
}

/* Where a handler of C++ may stop it, the unwinding itself has to tell whether it leaves a clean-up: it may get to the
 * frame whose clean-up runs. */
static COLD void wrap(struct flight *flight, bool in_clean_up)
{
    static const struct arch_thrown_ops ops = {keep, release, again, escapes};
    const struct arch_thrown *outer = in_clean_up ? flight->outer->arch.thrown : NULL;
    if (!arch_flight_wrap(&flight->arch, flight->exception, &ops)) {
        if (in_clean_up)
            escapes(&flight->arch);
    } else if (outer) {
        flight->arch.thrown->limit = outer->frame;
    }
}

/* ---- throwing -------------------------------------------------------------------------------------------- */

/* Thrown in a clean-up that runs because of another one, with no try block in between: nothing of ours could catch it
 * in time. */
static bool is_in_clean_up(struct cb *me)
{
    struct own *own = own_of(me);
    return own->flight && (!own->tries || own->tries->in_flight != own->flight);
}

/* What carries e: itself, unless it is kept by somebody who throws it elsewhere at this moment. */
static struct flight *vehicle_for(strand_exception *e)
{
    bool flying = atomic_exchange_explicit(&e->flying, true, memory_order_acquire);
    strand_exception *vehicle = flying ? exception_new(e->kind, "%s", e->text) : e;
    atomic_store_explicit(&vehicle->flying, true, memory_order_relaxed);
    vehicle->flight.exception = e;
    vehicle->flight.vehicle = flying ? vehicle : NULL;
    return &vehicle->flight;
}

struct arch_flight *exception_start(struct cb *me, strand_exception *e)
{
    struct thread *thread = me->member.fibre->home;
    if (UNLIKELY(thread->cxx != NULL))
        cxx_settle_(thread, me);
    bool in_clean_up = is_in_clean_up(me);
    if (UNLIKELY(in_clean_up) && !thread->cxx)
        die_of_escape(e, own_of(me)->flight->exception);
    struct flight *flight = vehicle_for(e);
    flight->arch.caught = swallowed;
    flight->arch.thrown = NULL;
    launch(me, flight);
    if (UNLIKELY(thread->cxx != NULL))
        wrap(flight, in_clean_up);
    return &flight->arch;
}

strand_exception *exception_swap(struct cb *me, strand_exception *with)
{
    struct flight *flight = own_of(me)->flight;
    strand_exception *old = flight->exception;
    if (!flight->vehicle)
        flight->vehicle = strand_exception_keep(old); /* the unwinder goes on in the old object */
    flight->exception = with;
    arch_flight_swap(&flight->arch, with);
    return old;
}
