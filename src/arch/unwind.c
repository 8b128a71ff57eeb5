/*
 * Throwing in C: the forced unwind of libgcc_s runs the landing pads of one frame after the other. Its stop function
 * never stops: where an unwinding ends is not a matter of frame addresses, which can't tell the clean-ups inside a try
 * block from those outside of it in the same function. The try block's own clean-up runs after all inner ones and
 * before all outer ones of its frame, and it is that clean-up which leaves, by arch_longjmp.
 *
 * The compiler's own <unwind.h> is meant here, never libunwind's.
 */
#include "state.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

_Static_assert(sizeof(struct _Unwind_Exception) <= sizeof((struct arch_flight *)0)->unwind_exception, "flight");

/* The vendor's four letters and the language's four, as the C++ ABI wants them. */
#define CLASS_OURS UINT64_C(0x4C49425354524E44) /* "LIBSTRND" */

static struct _Unwind_Exception *exception_of(struct arch_flight *flight)
{
    return (struct _Unwind_Exception *)(void *)flight->unwind_exception;
}

static _Unwind_Reason_Code never_stop(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                                      struct _Unwind_Exception *exception, struct _Unwind_Context *context, void *arg)
{
    (void)version, (void)class, (void)exception, (void)context, (void)arg;
    /* Every strand's entry is a try, so somebody has left before. */
    ASSERT(!(actions & _UA_END_OF_STACK));
    return _URC_NO_REASON;
}

/* The unwinder's notice that somebody else deletes our exception: a C++ catch (...) that ended without a rethrow. */
static void deleted(_Unwind_Reason_Code reason, struct _Unwind_Exception *exception)
{
    struct arch_flight *flight = CONTAINER(exception, struct arch_flight, unwind_exception);
    if (reason == _URC_FOREIGN_EXCEPTION_CAUGHT)
        flight->caught(flight);
}

/* arch_unwind's end. Its last call is a jump where the compiler optimises: a frame that is not there costs no step of
 * the unwinder, which returns only on a corrupt stack. */
_Unwind_Reason_Code arch_unwind_(struct arch_flight *flight); /* for x86_64.S */
_Unwind_Reason_Code arch_unwind_(struct arch_flight *flight)
{
    struct _Unwind_Exception *exception = exception_of(flight);
    arch_note_throw();
    memset(exception, 0, sizeof *exception);
    exception->exception_class = CLASS_OURS;
    exception->exception_cleanup = deleted;
    return _Unwind_ForcedUnwind(exception, never_stop, NULL);
}

NOINLINE ARCH_NOT_INSTRUMENTED void arch_longjmp(void **jump, uint32_t form)
{
    if (form == 0)
        arch_longjmp_builtin_(jump);
    arch_longjmp_(jump);
}

/* The personality of arch_call's frame (x86_64.S). An exception that is searched through it has no handler in the
 * strand's function; ours are never searched for. */
_Unwind_Reason_Code arch_call_personality_(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                                           struct _Unwind_Exception *exception, struct _Unwind_Context *context)
{
    (void)version, (void)exception, (void)context;
    if ((actions & _UA_SEARCH_PHASE) && class != CLASS_OURS) {
        void (*on_foreign)(void) = atomic_load_explicit(&arch_state.on_foreign, memory_order_acquire);
        if (on_foreign)
            on_foreign();
    }
    return _URC_CONTINUE_UNWIND;
}

void arch_on_foreign(void (*on_foreign)(void))
{
    atomic_store_explicit(&arch_state.on_foreign, on_foreign, memory_order_release);
}

/* The C++ runtime's function, in whichever library it is: linked with the program, or loaded before the start with its
 * symbols kept local (a plug-in's). One that is loaded later, while no sub-process has been started since, is not seen.
 */
extern struct arch_cxx *__cxa_get_globals(void) __attribute__((weak));

void arch_unwind_start(void)
{
    static const char *const libraries[] = {"libstdc++.so.6", "libc++abi.so.1"};
    arch_state.cxx_globals = __cxa_get_globals;
    if (!arch_state.cxx_globals)
        *(void **)&arch_state.cxx_globals = dlsym(RTLD_DEFAULT, "__cxa_get_globals");
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries && !arch_state.cxx_globals; i++) {
        void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
        if (library)
            *(void **)&arch_state.cxx_globals = dlsym(library, "__cxa_get_globals");
    }
}

void arch_on_terminate(void (*on_terminate)(void))
{
    atomic_store_explicit(&arch_state.on_terminate, on_terminate, memory_order_release);
}

static void terminating(void)
{
    void (*on_terminate)(void) = atomic_load_explicit(&arch_state.on_terminate, memory_order_acquire);
    if (on_terminate)
        on_terminate();
    if (arch_state.terminate_before)
        arch_state.terminate_before();
    abort();
}

/* std::set_terminate, by its name: the library does not need a C++ runtime. */
void arch_terminate_take(bool take)
{
    if (!arch_state.set_terminate)
        *(void **)&arch_state.set_terminate = dlsym(RTLD_DEFAULT, "_ZSt13set_terminatePFvvE");
    if (!arch_state.set_terminate)
        return;
    if (take)
        arch_state.terminate_before = arch_state.set_terminate(terminating);
    else
        arch_state.set_terminate(arch_state.terminate_before);
}

NOINLINE struct arch_cxx *arch_cxx_globals(void)
{
    return arch_state.cxx_globals ? arch_state.cxx_globals() : NULL;
}
