/*
 * The C++ runtime, if the program has one (cxx_find.c): its exception state, its terminate handler, and strands'
 * exceptions as C++ sees them.
 *
 * C++ code can only count, nest and keep (std::exception_ptr) exceptions that it recognises as its own. So in a program
 * with a C++ runtime every unwinding carries a C++ exception, made by the runtime itself: an arch_thrown, of a type
 * that no program can name. The used parts of its header are specified in the Itanium C++ ABI (2.2.1), which libstdc++
 * and libc++abi share. Without a runtime, or with one that lacks a function, the flight's own record is unwound,
 * which handlers see as a foreign exception.
 */
#include "state.h"

#include <stdlib.h>
#include <unwind.h>

#define CLASS_LANGUAGE UINT64_C(0xffffff00)        /* the bits below mark what is rethrown from a pointer */
#define CLASS_GNU_CXX UINT64_C(0x474E5543432B2B00) /* "GNUCC++" */

/* The header of a C++ exception, by the ABI. */
struct cxa_exception {
    const struct arch_cxx_type *type;
    void (*destroy)(void *object);
    void (*on_unexpected)(void), (*on_terminate)(void);
    struct cxa_exception *next;
    int handlers; /* how many have it now; negated once it was rethrown */
    int switch_value;
    const void *action, *language_data;
    uintptr_t landing_pad;
    void *adjusted;
    struct _Unwind_Exception unwind;
};

NOINLINE struct arch_cxx *arch_cxx_globals(void)
{
    struct arch_cxx_runtime *cxx = &arch_state.cxx;
    return atomic_load_explicit(&cxx->there, memory_order_acquire) ? cxx->globals() : NULL; /* [PB1] */
}

/* ---- the thrown object -------------------------------------------------------------------------------------- */

static struct _Unwind_Exception *exception_of(struct arch_thrown *thrown)
{
    return (struct _Unwind_Exception *)(void *)thrown - 1;
}

static int *handlers_of(struct arch_thrown *thrown)
{
    return &CONTAINER(exception_of(thrown), struct cxa_exception, unwind)->handlers;
}

static void own(struct arch_thrown *thrown)
{
    if (!thrown->owns)
        thrown->ops->keep(thrown->what);
    thrown->owns = true;
}

static void destroy(void *object)
{
    struct arch_thrown *thrown = object;
    thrown->ops->release(thrown->what);
}

/* The last handler that had it has ended, or the strand has caught it. The runtime's own function frees the object
 * unless a std::exception_ptr keeps it. */
static void dispose(_Unwind_Reason_Code reason, struct _Unwind_Exception *exception)
{
    struct arch_thrown *thrown = (struct arch_thrown *)(void *)(exception + 1);
    struct arch_flight *flight = thrown->flight;
    own(thrown);
    if (flight) {
        thrown->flight = NULL;
        flight->thrown = NULL;
        flight->caught(flight, thrown->aside);
    }
    ((_Unwind_Exception_Cleanup_Fn)thrown->dispose)(reason, exception);
}

bool arch_flight_wrap(struct arch_flight *flight, void *what, const struct arch_thrown_ops *ops)
{
    struct arch_cxx_runtime *cxx = &arch_state.cxx;
    struct arch_cxx *globals = arch_cxx_globals();
    if (!globals || !cxx->throws)
        return false;
    struct arch_thrown *thrown = cxx->allocate(sizeof *thrown);
    int *references = cxx->init(thrown, &cxx->type, destroy);
    struct _Unwind_Exception *exception = exception_of(thrown);
    if (exception->exception_class == CLASS_GNU_CXX)
        *references = 1; /* libstdc++ leaves that to the thrower */
    *thrown = (struct arch_thrown){
        .flight = flight, .ops = ops, .what = what, .dispose = (void (*)(void))exception->exception_cleanup};
    exception->exception_cleanup = dispose;
    flight->thrown = thrown;
    globals->uncaught++;
    return true;
}

bool arch_flight_is_caught(const struct arch_flight *flight)
{
    return flight->thrown && *handlers_of(flight->thrown) > 0;
}

bool arch_flight_land(struct arch_flight *flight)
{
    struct arch_thrown *thrown = flight->thrown;
    if (!thrown)
        return true;
    own(thrown);
    thrown->aside = *handlers_of(thrown) < 0;
    bool over = !thrown->aside;
    if (over) {
        flight->thrown = NULL;
        thrown->flight = NULL;
    }
    (void)arch_state.cxx.begin_catch(exception_of(thrown));
    arch_state.cxx.end_catch();
    return over;
}

void arch_flight_swap(struct arch_flight *flight, void *what)
{
    struct arch_thrown *thrown = flight->thrown;
    if (!thrown)
        return;
    void *old = thrown->what;
    if (thrown->owns)
        thrown->ops->keep(what);
    thrown->what = what;
    if (thrown->owns)
        thrown->ops->release(old);
}

/* ---- unwinding ---------------------------------------------------------------------------------------------- */

/* Called before each frame. A handler that had the exception may have thrown it again. An exception that leaves a
 * clean-up of another unwinding gets beyond the frame that the other was unwound to: that is the first frame at or
 * above `limit`, and may catch it unless it is a C frame. C code of clang would call abort(). */
static _Unwind_Reason_Code observe(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                                   struct _Unwind_Exception *exception, struct _Unwind_Context *context, void *arg)
{
    struct arch_thrown *thrown = arg;
    (void)version, (void)class, (void)exception;
    if (UNLIKELY(actions & _UA_END_OF_STACK))
        arch_unwind_lost_(context);
    thrown->frame = _Unwind_GetCFA(context);
    if (UNLIKELY(*handlers_of(thrown) < 0))
        own(thrown);
    if (UNLIKELY(thrown->aside)) {
        thrown->aside = false;
        thrown->ops->again(thrown->flight);
    }
    if (UNLIKELY(thrown->limit && thrown->frame >= thrown->limit)) {
        uintptr_t function = _Unwind_GetRegionStart(context);
        if (!thrown->beyond && !arch_frame_is_c_(context))
            thrown->beyond = function;
        else if (function != thrown->beyond)
            thrown->ops->escapes(thrown->flight);
    }
    return _URC_NO_REASON;
}

int arch_thrown_unwind_(struct arch_thrown *thrown)
{
    return (int)_Unwind_ForcedUnwind(exception_of(thrown), observe, thrown);
}

/* ---- C++ exceptions that leave a strand's function ---------------------------------------------------------- */

/* The personality of arch_call's frame (x86_64.S): a handler for every C++ exception. Strands' own exceptions are not
 * searched for; those from a std::exception_ptr count as C++'s. */
_Unwind_Reason_Code arch_call_personality_(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                                           struct _Unwind_Exception *exception, struct _Unwind_Context *context)
{
    (void)version;
    bool cxx = (class & CLASS_LANGUAGE) == (CLASS_GNU_CXX & CLASS_LANGUAGE);
    if (!cxx || (actions & _UA_FORCE_UNWIND) || !arch_state.cxx.keeps ||
        !atomic_load_explicit(&arch_state.on_foreign, memory_order_relaxed))
        return _URC_CONTINUE_UNWIND;
    if (actions & _UA_SEARCH_PHASE)
        return _URC_HANDLER_FOUND;
    if (!(actions & _UA_HANDLER_FRAME))
        return _URC_CONTINUE_UNWIND;
    _Unwind_SetGR(context, __builtin_eh_return_data_regno(0), (uintptr_t)exception);
    _Unwind_SetIP(context, (uintptr_t)arch_call_landing_);
    return _URC_INSTALL_CONTEXT;
}

/* what() of a std::exception, otherwise NULL. typeid(std::exception) can test whether another type is derived from it:
 * by the fifth of its functions, in libstdc++ and libc++abi. */
static const char *words_of(void *object, const struct arch_cxx_type *type)
{
    typedef bool catches(const void *self, const void *thrown, void **object, unsigned outer);
    typedef const char *words(const void *self);
    const struct arch_cxx_type *base = arch_state.cxx.base;
    if (!((catches *)base->methods[4])(base, type, &object, 1))
        return NULL;
    return ((words *)(*(void (***)(void))object)[2])(object);
}

static const struct arch_cxx_type *type_of(void *object)
{
    return CONTAINER(exception_of(object), struct cxa_exception, unwind)->type;
}

const char *arch_cxx_handled(void)
{
    const struct arch_cxx_runtime *cxx = &arch_state.cxx;
    const char *name = NULL;
    void *kept = NULL;
    if (cxx->keeps)
        cxx->current(&kept);
    if (kept) {
        name = type_of(kept)->name;
        cxx->drop(&kept);
    }
    return name;
}

/* The landing pad of arch_call's frame. */
__attribute__((noreturn)) void arch_call_caught_(struct _Unwind_Exception *exception)
{
    const struct arch_cxx_runtime *cxx = &arch_state.cxx;
    struct arch_foreign foreign = {NULL, NULL, NULL, NULL};
    (void)cxx->begin_catch(exception);
    cxx->current(&foreign.kept);
    cxx->end_catch();
    const struct arch_cxx_type *type = type_of(foreign.kept);
    if (type == &cxx->type)
        foreign.ours = ((struct arch_thrown *)foreign.kept)->what;
    else
        foreign.what = words_of(foreign.kept, type);
    foreign.type = type->name;
    atomic_load_explicit(&arch_state.on_foreign, memory_order_acquire)(&foreign); /* [PB1] */
    UNREACHABLE();
}

void arch_on_foreign(void (*on_foreign)(const struct arch_foreign *foreign))
{
    atomic_store_explicit(&arch_state.on_foreign, on_foreign, memory_order_release); /* [PB1] */
}

void arch_foreign_drop(void *kept)
{
    arch_state.cxx.drop(&kept);
}

void arch_foreign_rethrow(void *kept)
{
    arch_state.cxx.rethrow(&kept);
    UNREACHABLE();
}

/* ---- std::terminate -------------------------------------------------------------------------------------- */

void arch_on_terminate(void (*on_terminate)(void))
{
    atomic_store_explicit(&arch_state.on_terminate, on_terminate, memory_order_release); /* [PB1] */
}

/* The previous handler may be one that the program installed while this one was in place, and may call this one. */
static void terminating(void)
{
    uint32_t me = arch_thread_id();
    bool again = atomic_exchange_explicit(&arch_state.terminating, me, memory_order_relaxed) == me;
    void (*on_terminate)(void) = atomic_load_explicit(&arch_state.on_terminate, memory_order_acquire); /* [PB1] */
    void (*before)(void) = again ? arch_state.terminate_first : arch_state.terminate_before;
    if (on_terminate && !again)
        on_terminate();
    if (before)
        before();
    abort();
}

/* A handler that the program has installed meanwhile stays. */
void arch_terminate_take(bool take)
{
    struct arch_cxx_runtime *cxx = &arch_state.cxx;
    if (!cxx->set_terminate || !cxx->get_terminate)
        return;
    if (take && cxx->get_terminate() != terminating) {
        arch_state.terminate_before = cxx->set_terminate(terminating);
        if (!arch_state.terminate_first)
            arch_state.terminate_first = arch_state.terminate_before;
    } else if (!take && cxx->get_terminate() == terminating)
        cxx->set_terminate(arch_state.terminate_before);
}
