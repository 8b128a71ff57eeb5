/*
 * Throwing in C: the forced unwind of libgcc_s runs the landing pads of one frame after the other. Its stop function
 * never stops: the end of an unwinding can't be decided by frame addresses, which don't distinguish the clean-ups
 * inside a try block from those outside of it in the same function. The try block's own clean-up runs after all inner
 * ones and before all outer ones of its frame, and leaves by arch_longjmp.
 *
 * <unwind.h> must be the compiler's own, never libunwind's.
 */
#include "state.h"

#include <stdlib.h>
#include <string.h>
#include <unwind.h>

_Static_assert(sizeof(struct _Unwind_Exception) <= sizeof((struct arch_flight *)0)->unwind_exception, "flight");
_Static_assert(offsetof(struct _Unwind_Exception, private_2) == ARCH_FLIGHT_GENERATION * sizeof(uint64_t), "flight");

/* Every strand's entry is a try, so unwinding would have ended before if it could continue. */
void arch_unwind_lost_(struct _Unwind_Context *context)
{
    void (*on_lost)(void *ip) = atomic_load_explicit(&arch_state.on_lost, memory_order_acquire); /* [PB1] */
    if (on_lost)
        on_lost((void *)_Unwind_GetIP(context));
    abort();
}

static _Unwind_Reason_Code never_stop(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                                      struct _Unwind_Exception *exception, struct _Unwind_Context *context, void *arg)
{
    (void)version, (void)class, (void)exception, (void)arg;
    if (UNLIKELY(actions & _UA_END_OF_STACK))
        arch_unwind_lost_(context);
    return _URC_NO_REASON;
}

/* Called by the unwinder when another party deletes the exception: a C++ catch (...) that ended without a rethrow. */
static void deleted(_Unwind_Reason_Code reason, struct _Unwind_Exception *exception)
{
    struct arch_flight *flight = CONTAINER(exception, struct arch_flight, unwind_exception);
    if (reason == _URC_FOREIGN_EXCEPTION_CAUGHT)
        flight->caught(flight, false);
}

/* The exception carries the stop function: a landing pad that ends in libgcc's _Unwind_Resume goes on by the forced
 * unwind. The function's argument is the generation. */
struct _Unwind_Exception *arch_flight_exception_(struct arch_flight *flight, uint32_t generation)
{
    struct _Unwind_Exception *exception = (struct _Unwind_Exception *)(void *)flight->unwind_exception;
    memset(exception, 0, sizeof *exception);
    exception->exception_class = ARCH_CLASS_OURS;
    exception->exception_cleanup = deleted;
    exception->private_1 = (uintptr_t)never_stop;
    exception->private_2 = generation;
    return exception;
}

uint32_t arch_flight_generation_(const struct _Unwind_Exception *exception)
{
    return (uint32_t)exception->private_2;
}

/* Both return on a corrupt stack only. Their last call is a jump where the compiler optimises: a missing frame saves a
 * step of the unwinder. */
_Unwind_Reason_Code arch_resume_slowly_(struct _Unwind_Exception *exception); /* for unwind_x86_64.S */
_Unwind_Reason_Code arch_resume_slowly_(struct _Unwind_Exception *exception)
{
    return _Unwind_ForcedUnwind(exception, never_stop, (void *)exception->private_2); /* NOLINT: a number */
}

_Unwind_Reason_Code arch_unwind_slowly_(struct arch_flight *flight); /* for unwind_x86_64.S */
_Unwind_Reason_Code arch_unwind_slowly_(struct arch_flight *flight)
{
    if (flight->thrown)
        return (_Unwind_Reason_Code)arch_thrown_unwind_(flight->thrown);
    return arch_resume_slowly_((struct _Unwind_Exception *)(void *)flight->unwind_exception);
}

static _Unwind_Reason_Code stop(struct _Unwind_Context *context, void *arg)
{
    (void)context, (void)arg;
    return _URC_NORMAL_STOP;
}

/* The first walk of a process makes libgcc's tables. A program that has a libgcc of its own (-static-libgcc) walks with
 * that one, and the personality of arch_call asks ours for registers. */
void arch_unwind_start(void)
{
    (void)_Unwind_Backtrace(stop, NULL);
}

NOINLINE ARCH_NOT_INSTRUMENTED void arch_longjmp(void **jump, uint32_t form)
{
    if (form == 0)
        arch_longjmp_builtin_(jump);
    arch_longjmp_(jump);
}

/* The words of a jump buffer: x86_64.S. */
const void *arch_jump_stack(void *const *jump, uint32_t form)
{
    return form ? jump[6] : jump[2] ? jump[2] : jump[3];
}

void arch_on_lost(void (*on_lost)(void *ip))
{
    atomic_store_explicit(&arch_state.on_lost, on_lost, memory_order_release); /* [PB1] */
}
