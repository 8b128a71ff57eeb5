/*
 * The public face of exceptions: throwing. See docs/errors.md.
 */
#include "throw.h"

#include "carry.h"
#include "cxx.h"
#include "escape.h"
#include "log.h"
#include "misuse.h"
#include "print.h"
#include "sized.h"

#include <stdarg.h>
#include <string.h>

/* The kinds above the thrown one end at STRAND_ANY: a handler of that kind catches every exception. No field but the
 * size is read before the size is plausible: a kind without it has other fields in these places. */
static void must_be_kind(const strand_kind *kind, const char *function)
{
    for (const strand_kind *k = kind; k != &STRAND_ANY; k = k->parent) {
        if (UNLIKELY(!size_is_plausible(k->size, sizeof *k)))
            MISUSE(
                function, "",
                "%s.size is %zu, not sizeof(strand_kind): initialise the kind by STRAND_KIND(\"NAME\", &STRAND_ERROR)",
                k == kind ? "strand_kind" : "strand_kind.parent", k->size);
        if (UNLIKELY(!k->name))
            MISUSE(function, "", "the kind has no name: initialise it by STRAND_KIND(\"NAME\", &STRAND_ERROR)");
        if (UNLIKELY(!k->parent))
            MISUSE(function, "",
                   "the kind '%s' has no parent: initialise it by STRAND_KIND(\"%s\", &STRAND_ERROR), or with the "
                   "address of a kind below STRAND_ERROR",
                   k->name, k->name);
    }
}

/* The kind must not lie in a shared stack: strands that join, and holders of the exception, read it. */
static strand_exception *make(struct thread *thread, const char *function, const strand_kind *kind, const char *format,
                              va_list args)
{
    if (!kind)
        MISUSE(function, "", "the kind is NULL");
    must_be_there(format, "message", function);
    must_not_escape(thread, kind, "the kind", function);
    must_be_kind(kind, function);
    if (kind_is_below(kind, &STRAND_INTERRUPTED))
        MISUSE(function, "",
               "the kind '%s' is thrown by sources of interruption only: use strand_cancel, or throw STRAND_ERROR or a "
               "kind below it",
               kind->name);
    return exception_new_va(kind, format, args);
}

static NOINLINE struct strand_flight_ *start(const strand_kind *kind, const char *format, va_list args)
{
    struct thread *thread = must_be_strand("strand_throw");
    struct cb *me = current_of(thread);
    strand_exception *e = make(thread, "strand_throw", kind, format, args);
    return (struct strand_flight_ *)exception_start_traced(me, e, SEGMENT_THROWN);
}

NOINLINE struct strand_flight_ *strand_throwing_(const strand_kind *kind, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct strand_flight_ *flight = start(kind, format, args);
    va_end(args);
    return flight;
}

NOINLINE void strand_throw(const strand_kind *kind, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct strand_flight_ *flight = start(kind, format, args);
    va_end(args);
    strand_unwind_(flight);
}

NOINLINE void strand_throw_with(const strand_kind *kind, const strand_throw_info *given, const char *format, ...)
{
    struct thread *thread = must_be_strand("strand_throw_with");
    struct cb *me = current_of(thread);
    va_list args;
    va_start(args, format);
    strand_exception *e = make(thread, "strand_throw_with", kind, format, args);
    va_end(args);
    if (given) {
        strand_throw_info info = {0};
        must_have_size(given->size, offsetof(strand_throw_info, code), "strand_throw_info", "strand_throw_with");
        sized_take(&info, sizeof info, given, given->size);
        must_not_escape(thread, info.payload, "the payload", "strand_throw_with");
        if (info.cause)
            exception_must_hold(info.cause, "strand_throw_with");
        e->code = info.code;
        e->payload = info.payload;
        e->payload_free = info.payload_free;
        e->cause = info.cause;
    }
    exception_throw_traced(me, e, SEGMENT_THROWN);
}

NOINLINE void strand_rethrow(strand_exception *e)
{
    struct cb *me = current_of(must_be_strand("strand_rethrow"));
    if (!e)
        MISUSE("strand_rethrow", "", "the exception is NULL");
    exception_must_hold(e, "strand_rethrow");
    exception_throw(me, e);
}

void strand_suppress(strand_exception *e)
{
    struct thread *thread = must_be_strand("strand_suppress");
    struct cb *me = current_of(thread);
    if (e)
        exception_must_hold(e, "strand_suppress");
    cxx_settle(thread, me);
    if (own_of(me)->flight) {
        exception_suppress(own_of(me)->flight->exception, e);
    } else {
        log_exception(runtime_of(thread), "an exception should be suppressed, but none is in flight", e);
        strand_exception_release(e);
    }
}

bool strand_unwinding(void)
{
    struct thread *thread = thread_self();
    if (!thread || !thread->current)
        return false;
    cxx_notice(thread, current_of(thread));
    return own_of(current_of(thread))->flight || (thread->cxx && thread->cxx->uncaught);
}

/* Not inlined, so that the trace begins at the caller. The text has the argument only if that is a call: a name or a
 * number tells a reader nothing. */
NOINLINE int64_t strand_must_(int64_t result, const char *argument)
{
    enum { MOST = 80 };
    if (LIKELY(result >= 0))
        return result;
    struct cb *me = current_of(must_be_strand("strand_must"));
    const char *call = strchr(argument, '(') ? argument : "";
    size_t length = strlen(call);
    const char *end = length > MOST ? "...: " : length ? ": " : "";
    strand_exception *e = exception_new(&STRAND_SYSTEM, "%.*s%s%s", (int)(length < MOST ? length : MOST), call, end,
                                        print_error_words((int)result));
    e->code = (int)result;
    exception_throw_traced(me, e, SEGMENT_THROWN);
}

NOINLINE int64_t strand_must(int64_t result)
{
    return strand_must_(result, "");
}

/* ---- the library itself ---------------------------------------------------------------------------------- */

NOINLINE void throw_system(struct cb *me, int error, const char *what)
{
    strand_exception *e = exception_new(&STRAND_SYSTEM, "%s: %s", what, print_error_words(error));
    e->code = error;
    exception_throw_traced(me, e, SEGMENT_THROWN);
}

void throw_no_memory(struct cb *me, const char *what)
{
    throw_system(me, -ENOMEM, what);
}
