/*
 * Exceptions that C++ code handles, or that are C++'s own. The rules are in cxx.h.
 */
#include "cxx.h"

#include "exception.h"
#include "log.h"
#include "misuse.h"
#include "print.h"

#include <string.h>

static const char static_object[] =
    "a static object of a function is under construction by another strand, which is blocked in its constructor. "
    "Construct it by strand_once_run, or before the run";

/* libstdc++ throws this type where a strand comes to a static object whose construction another strand has begun on the
 * same thread. */
static bool is_about_static_object(const char *type)
{
    return type && strcmp(type, "N9__gnu_cxx20recursive_init_errorE") == 0;
}

/* Throws an exception of the library on in place of the C++ exception, which it keeps as its payload. */
COLD void cxx_on_foreign(const struct arch_foreign *foreign)
{
    struct cb *me = current_of(must_be_strand("strand_fn"));
    if (foreign->ours) {
        strand_exception *e = strand_exception_keep(foreign->ours);
        arch_foreign_drop(foreign->kept);
        exception_throw(me, e);
    }
    const char *what = is_about_static_object(foreign->type) ? static_object : foreign->what;
    strand_exception *e = what ? exception_new(&STRAND_FOREIGN, "%s", what)
                               : exception_new(&STRAND_FOREIGN, "a C++ exception of type %s", foreign->type);
    e->payload = foreign->kept;
    e->payload_free = arch_foreign_drop;
    exception_throw_traced(me, e, SEGMENT_THROWN);
}

/* Warns if the process has two C++ runtimes. A plain thread, for example before main, has no run with a log. */
void strand_cxx_use_(const struct strand_cxx_runtime_ *runtime)
{
    static const char text[] =
        "a file in C++ has a C++ runtime of its own, and strands use the one that was there before: in that file an "
        "exception must not leave a strand's function, and no handler may block, because strands would catch each "
        "other's exceptions. Link all files in C++ with the shared libstdc++, without -static-libstdc++";
    struct thread *thread = thread_self();
    if (arch_cxx_announce(runtime->functions, runtime->count, runtime->base))
        return;
    if (thread && thread->current)
        log_text(runtime_of(thread), text);
    else
        print_text(2, "libstrand: %s\n", text);
}

COLD void cxx_terminating(void)
{
    struct thread *thread = thread_self();
    struct cb *me = thread && thread->current ? current_of(thread) : NULL;
    struct flight *flight = me ? own_of(me)->flight : NULL;
    if (flight) {
        print_text(2,
                   "libstrand: the C++ runtime ends the program (noexcept?) while an exception of strand '%s' is in "
                   "flight. Catch it inside of the noexcept function, which a destructor is; an operation in a "
                   "STRAND_SHIELD is not interrupted\n",
                   cb_name(me));
        strand_exception_print(flight->exception, 2);
    } else if (me && is_about_static_object(arch_cxx_handled())) {
        print_text(2, "libstrand: %s\n", static_object);
        print_here(2, me);
    } else if (me && arch_cxx_lacks_functions()) {
        print_text(
            2,
            "libstrand: the C++ runtime ends the program in strand '%s'. If an exception of C++ was to leave the "
            "strand's function: the program is linked without std::current_exception or another function that "
            "carries it. Include strand.h in a file in C++, which links them\n",
            cb_name(me));
    }
}

struct guarded {
    strand_fn *fn;
    void *arg;
};

static void *call_guarded(void *arg)
{
    const struct guarded *guarded = arg;
    return cxx_call(thread_self(), guarded->fn, guarded->arg);
}

strand_exception *cxx_try(strand_fn *fn, void *arg)
{
    struct guarded guarded = {fn, arg};
    return strand_try(call_guarded, &guarded, NULL);
}
