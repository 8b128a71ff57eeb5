/*
 * Exceptions: the object, throwing, catching, swapping the one in flight.
 */
#ifndef STRAND_EXCEPTION_H
#define STRAND_EXCEPTION_H

#include "core.h"

#include <stdarg.h>

enum { EXCEPTION_TEXT = 201, TRACE_FIRST = 32, TRACE_MOST = 1024, SEGMENTS_FIRST = 4 };

/* A part of a trace: where the exception was thrown; a strand that it left, and where that was spawned; or where that
 * strand was joined. */
enum segment_type { SEGMENT_THROWN, SEGMENT_STRAND, SEGMENT_JOINED };
struct segment {
    uint8_t type;
    uint16_t first, count; /* in ips */
    uint64_t id;
    char name[32];
};

/* One unwinding. It lies in an exception object, its vehicle. The vehicle may differ from the exception that is thrown,
 * which may be swapped on the way, or may be in flight in another strand already. */
struct flight {
    struct arch_flight arch;
    struct flight *outer;        /* the next older one of the same strand */
    strand_exception *exception; /* a reference */
    strand_exception *vehicle;   /* a reference, if it is not the exception itself */
    uint32_t floor;              /* the thrower's, before the throw */
    struct episode unwinding;
};

struct strand_exception {
    struct flight flight;
    _Atomic uint32_t refs;
    _Atomic bool flying; /* `flight` is in use */
    atomic_flag lock;    /* of the trace */
    _Atomic bool listed; /* carry.h */
    _Atomic bool caught; /* a catch block holds it, for exception_must_hold */
    const strand_kind *kind;
    int code;
    uint32_t omitted; /* carry.h */
    struct cancel_reason *cancel_reason;
    void *payload;
    void (*payload_free)(void *);
    struct strand_exception *cause, *ring, *next, *walk; /* carry.h */
    const void *source; /* of an interruption: the block, or the control block, that caused it */
    uint64_t source_serial;
    uint64_t progress;
    uint16_t ips_count, ips_room, segments_count, segments_room;
    void **ips;
    struct segment *segments;
    void *ips_first[TRACE_FIRST];
    struct segment segments_first[SEGMENTS_FIRST];
    char text[EXCEPTION_TEXT];
    uint16_t suppressed_count; /* carry.h */
    _Atomic bool mistaken;     /* a catch block named a different kind with the same name */
};
_Static_assert(sizeof(struct strand_exception) <= 912, "every thread keeps some, and a failing child costs one");

/* Whether the kind is `other` or is below it. */
static inline bool kind_is_below(const strand_kind *kind, const strand_kind *other)
{
    for (; kind; kind = kind->parent)
        if (kind == other)
            return true;
    return false;
}

/* Returns a new exception with one reference and without a trace. Never NULL. */
strand_exception *exception_new(const strand_kind *kind, const char *format, ...) __attribute__((format(printf, 2, 3)));
strand_exception *exception_new_va(const strand_kind *kind, const char *format, va_list args);
void exception_text(strand_exception *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The lock protects the trace: several strands may throw one exception at once, and each appends to it. A holder takes
 * one trace, and does not suspend. */
static inline void exception_lock(strand_exception *e)
{
    spin_lock(&e->lock, thread_self());
}

static inline void exception_unlock(strand_exception *e)
{
    spin_unlock(&e->lock);
}

/* Appends the calling strand's frames. Returns what a flight that begins here needs (ARCH_FLIGHT_GENERATION). */
uint32_t exception_trace(strand_exception *e, enum segment_type type, struct cb *c);
/* Appends that the exception left strand c, and where c was spawned. */
void exception_left(strand_exception *e, struct cb *c);

/* Puts e (one reference is taken over) in flight. If it would leave a clean-up that runs during unwinding, the program
 * ends. */
struct arch_flight *exception_start(struct cb *me, strand_exception *e);
/* Throw e. Inline: every frame between the thrower and the unwinder is one more to unwind. */
__attribute__((noreturn, always_inline)) static inline void exception_throw(struct cb *me, strand_exception *e)
{
    arch_unwind(exception_start(me, e));
}
/* Likewise, after exception_trace. */
struct arch_flight *exception_start_traced(struct cb *me, strand_exception *e, enum segment_type type);
__attribute__((noreturn, always_inline)) static inline void exception_throw_traced(struct cb *me, strand_exception *e,
                                                                                   enum segment_type type)
{
    arch_unwind(exception_start_traced(me, e, type));
}
/* Takes the newest exception in flight out of flight and returns its reference. `outer` was the newest one when the
 * block that catches was entered. If there is another one between the two, the program ends. */
strand_exception *exception_land(struct cb *me, const struct flight *outer);
/* Takes the exceptions that a C++ handler has caught out of flight. */
void exception_set_aside(struct cb *me);
/* Replaces the newest exception in flight by `with`. Returns the reference to the old one. */
strand_exception *exception_swap(struct cb *me, strand_exception *with);
/* Misuse if the catch block holds the only reference: the caller is about to give away a reference that it does not
 * hold. */
void exception_must_hold(const strand_exception *e, const char *function);

/* Memory: src/strand/exception_reserve.c. Never NULL. */
strand_exception *exception_alloc(void);
void exception_free(strand_exception *e);
int exception_reserve_open(struct worker *worker);
void exception_reserve_close(struct worker *worker);

#endif
