/*
 * Try blocks. An exception stops in the clean-up of the try block, which runs after all inner clean-ups of its frame
 * and before all outer ones, and jumps (contract §9). The unwinder's stop function never stops it.
 *
 * A try block records which exception was in flight when it was entered. It is left by an exception if and only if
 * another one is in flight when it is left. A flag "unwinding" would be wrong, because clean-ups contain try blocks.
 */
#include "carry.h"
#include "cxx.h"
#include "interrupt.h"
#include "misuse.h"

#include <string.h>

/* STRAND_TRY runs its first block in TRY_BODY, and evaluates its catch blocks in every other state. */
enum try_state { TRY_BODY, TRY_CAUGHT, TRY_TAKEN, TRY_ASKS, TRY_WANTS };

static inline void enter(struct thread *thread, struct cb *me, struct strand_try_ *frame, uint32_t form)
{
    struct own *own = own_of(me);
    frame->outer = own->tries;
    frame->in_flight = own->flight;
    frame->caught = NULL;
    frame->state = TRY_BODY;
    frame->form = form;
    frame->floor = own->floor;
    frame->depth = own->depth;
    frame->uncaught = thread->cxx ? (uint32_t)thread->cxx->uncaught : 0;
    frame->refuses = false;
    own->tries = frame;
}

/* A clean-up that runs because of an exception is shielded. Its try block lifts the shield only if a catch block takes
 * interruptions: any other would throw them out of the clean-up. In a program with C++ any try block may stand in a
 * noexcept function, where the same holds. So the catch blocks are asked before the first block runs [I3]. */
void strand_try_enter_(struct strand_try_ *frame, uint32_t form)
{
    struct thread *thread = must_be_strand("STRAND_TRY");
    struct cb *me = current_of(thread);
    struct own *own = own_of(me);
    cxx_notice(thread, me);
    bool shielded = own->floor != own->shield;
    uint32_t uncaught = UNLIKELY(shielded) ? own->tries->uncaught : 0;
    enter(thread, me, frame, form);
    if (UNLIKELY(shielded || thread->cxx != NULL))
        frame->state = TRY_ASKS;
    if (UNLIKELY(shielded))
        frame->uncaught = uncaught; /* cxx_settle does not lift the shield [U1] */
}

/* The catch blocks have been asked [I3]. */
ARCH_NOT_INSTRUMENTED static COLD __attribute__((noreturn)) void begin_body(struct thread *thread, struct cb *me,
                                                                            struct strand_try_ *frame)
{
    struct own *own = own_of(me);
    if (frame->state == TRY_WANTS) {
        own->floor = own->shield;
        frame->uncaught = thread->cxx ? (uint32_t)thread->cxx->uncaught : 0;
    }
    frame->refuses = frame->state != TRY_WANTS;
    frame->state = TRY_BODY;
    arch_longjmp(frame->jump, frame->form);
}

/* TSan keeps a shadow of the call stack, which a jump out of a function would leave behind. */
ARCH_NOT_INSTRUMENTED static void leave_body(struct thread *thread, struct cb *me, struct strand_try_ *frame)
{
    struct own *own = own_of(me);
    if (UNLIKELY(own->tries != frame))
        misuse_block_skipped_(me, NULL);
    cxx_set_aside(thread, me);
    own->tries = frame->outer;
    if (own->flight == frame->in_flight) {
        own->floor = frame->floor <= own->depth + 1 ? frame->floor : own->depth + 1;
        return;
    }
    if (UNLIKELY(own->depth != frame->depth))
        misuse_block_skipped_(me, own->blocks);
    frame->caught = exception_land(me, frame->in_flight);
    own->floor = frame->floor;
    frame->state = TRY_CAUGHT;
    arch_longjmp(frame->jump, frame->form);
}

ARCH_NOT_INSTRUMENTED void strand_try_leave_(struct strand_try_ *frame)
{
    struct thread *thread = must_be_strand("STRAND_TRY");
    struct cb *me = current_of(thread);
    if (LIKELY(frame->state == TRY_BODY)) {
        leave_body(thread, me, frame);
        return;
    }
    if (UNLIKELY(frame->state >= TRY_ASKS))
        begin_body(thread, me, frame);
    cxx_set_aside(thread, me);
    strand_exception *e = frame->caught;
    frame->caught = NULL;
    atomic_store_explicit(&e->caught, false, memory_order_relaxed);
    if (own_of(me)->flight != frame->in_flight)
        exception_suppress(own_of(me)->flight->exception, e); /* the catch block threw: suppress the caught exception */
    else if (frame->state == TRY_CAUGHT)
        exception_throw(me, e); /* no catch block matched: the exception continues */
    else
        strand_exception_release(e);
}

/* A kind that a header defines as static is a different kind in each file: records that a catch block named such a
 * kind. */
static void record_namesake(strand_exception *e, const strand_kind *kind)
{
    if (e->kind->name && kind->name && strcmp(e->kind->name, kind->name) == 0)
        atomic_store_explicit(&e->mistaken, true, memory_order_relaxed);
}

bool strand_catches_(struct strand_try_ *frame, const strand_kind *kind)
{
    if (UNLIKELY(frame->state >= TRY_ASKS)) {
        if (kind_is_below(&STRAND_INTERRUPTED, kind))
            frame->state = TRY_WANTS;
        return false;
    }
    if (!strand_exception_is(frame->caught, kind)) {
        record_namesake(frame->caught, kind);
        return false;
    }
    frame->state = TRY_TAKEN;
    return true;
}

strand_exception *strand_caught_(struct strand_try_ *frame)
{
    frame->state = TRY_TAKEN;
    atomic_store_explicit(&frame->caught->caught, true, memory_order_relaxed);
    return frame->caught;
}

/* A try block that takes every exception, so no catch block has to be asked. A function of its own, so that no variable
 * in a register has to survive the jump. */
static NOINLINE void *call(strand_fn *fn, void *arg, strand_exception *volatile *caught)
{
    struct strand_try_ frame STRAND_CLEANUP_(strand_try_leave_);
    struct thread *thread = must_be_strand("STRAND_TRY");
    struct cb *me = current_of(thread);
    cxx_notice(thread, me);
    enter(thread, me, &frame, STRAND_TRY_FORM_);
    own_of(me)->floor = own_of(me)->shield;
    (void)STRAND_TRY_SETJMP_(frame);
    if (frame.state == TRY_BODY)
        return fn(arg);
    *caught = strand_exception_keep(strand_caught_(&frame));
    return NULL;
}

strand_exception *strand_try(strand_fn *fn, void *arg, void **result)
{
    strand_exception *volatile caught = NULL;
    if (!fn)
        MISUSE("strand_try", "", "the function is NULL: pass the one to run");
    void *value = call(fn, arg, &caught);
    if (!caught && result)
        *result = value;
    return caught;
}
