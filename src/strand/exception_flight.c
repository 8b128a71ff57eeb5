/*
 * Exceptions in flight, and throwing. How frames are unwound is src/arch/unwind.c; where a try block stops an exception
 * is try.c. The rules for C++ are in cxx.h.
 */
#include "cxx.h"
#include "exception.h"
#include "exception_print.h"

/* ---- in flight ------------------------------------------------------------------------------------------- */

/* The flight is over: no handler has the exception, and no frame is unwound. Returns the reference to the exception. */
static strand_exception *finish(struct flight *flight)
{
    strand_exception *e = flight->exception, *vehicle = flight->vehicle;
    atomic_store_explicit(&CONTAINER(flight, strand_exception, flight)->flying, false,
                          memory_order_release); /* [LK1] */
    strand_exception_release(vehicle);
    return e;
}

static void launch(struct cb *me, struct flight *flight)
{
    struct own *own = own_of(me);
    flight->outer = own->flight;
    flight->floor = own->floor;
    flight->unwinding.c = NULL;
    if (UNLIKELY(runtime_of(me->member.fibre->home)->unwindings.kept) && !flight->outer)
        episode_begins_(me, &runtime_of(me->member.fibre->home)->unwindings, &flight->unwinding);
    own->flight = flight;
    if (own->floor < own->depth + 1)
        own->floor = own->depth + 1; /* clean-ups may block: docs/protocols/interrupt.md */
}

static void unlaunch(struct cb *me, struct flight *flight)
{
    own_of(me)->flight = flight->outer;
    if (UNLIKELY(flight->unwinding.c != NULL))
        episode_ends_(&runtime_of(me->member.fibre->home)->unwindings, &flight->unwinding);
    flight->unwinding.c = NULL;
}

static COLD __attribute__((noreturn)) void die_of_escape(strand_exception *e, strand_exception *other)
{
    exception_print_and_die("an exception would leave a clean-up that runs because of another one (catch it there: "
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

/* Sources below the returned floor are deferred [U1]. */
static uint32_t floor_now(const struct own *own, uintptr_t uncaught)
{
    if (uncaught <= own->tries->uncaught)
        return own->shield;
    uint32_t first = own->depth + 1;
    for (const struct block *block = own->blocks; block && block->uncaught >= uncaught; block = block->outer)
        first = block->index;
    return first > own->shield ? first : own->shield;
}

COLD void exception_settle_cxx_(struct thread *thread, struct cb *me)
{
    exception_set_aside(me); /* [U2] */
    if (own_of(me)->flight && !own_of(me)->flight->arch.thrown)
        return; /* the C++ runtime lacks a function and does not count our exceptions: the handler settles the floor */
    own_of(me)->floor = floor_now(own_of(me), thread->cxx->uncaught);
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

/* A C++ handler may stop the exception. So only the unwinding can find out whether it leaves a clean-up: it then
 * reaches the frame whose clean-up runs. */
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

/* Whether the throw is in a clean-up that runs because of another exception, without a try block in between that could
 * catch it. */
static bool is_in_clean_up(struct cb *me)
{
    struct own *own = own_of(me);
    return own->flight && (!own->tries || own->tries->in_flight != own->flight);
}

/* Returns the flight of e itself. If e is in flight in another strand already, returns that of a new object, its
 * vehicle. */
static struct flight *vehicle_for(strand_exception *e)
{
    bool flying = atomic_exchange_explicit(&e->flying, true, memory_order_acquire); /* [LK1] */
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
        exception_settle_cxx_(thread, me);
    bool in_clean_up = is_in_clean_up(me);
    if (UNLIKELY(in_clean_up) && !thread->cxx)
        die_of_escape(e, own_of(me)->flight->exception);
    struct flight *flight = vehicle_for(e);
    flight->arch.caught = swallowed;
    flight->arch.thrown = NULL;
    flight->arch.unwind_exception[ARCH_FLIGHT_GENERATION] = 0;
    launch(me, flight);
    if (UNLIKELY(thread->cxx != NULL))
        wrap(flight, in_clean_up);
    return &flight->arch;
}

struct arch_flight *exception_start_traced(struct cb *me, strand_exception *e, enum segment_type type)
{
    uint32_t generation = exception_trace(e, type, me);
    struct arch_flight *flight = exception_start(me, e);
    flight->unwind_exception[ARCH_FLIGHT_GENERATION] = generation;
    return flight;
}

strand_exception *exception_swap(struct cb *me, strand_exception *with)
{
    struct flight *flight = own_of(me)->flight;
    strand_exception *old = flight->exception;
    if (!flight->vehicle)
        flight->vehicle = strand_exception_keep(old); /* the unwinder continues with the old object */
    flight->exception = with;
    arch_flight_swap(&flight->arch, with);
    return old;
}
