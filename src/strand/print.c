/*
 * Exceptions in words. Everything is printed through a small buffer on the stack, so that it works without memory too.
 */
#include "print.h"

#include "exception.h"
#include "misuse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MOST = 8 };

void print_text(int fd, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (length > 0)
        arch_write(fd, text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
}

static void frame(int fd, int indent, const char *at, void *ip)
{
    char name[160];
    uintptr_t offset;
    (void)arch_symbol(ip, name, sizeof name, &offset);
    print_text(fd, "%*s%s %s+0x%zx\n", indent, "", at, name, (size_t)offset);
}

const char *blocked_words(unsigned blocked)
{
    static const char *const words[] = {
        [BLOCKED_NOT] = "runnable",
        [BLOCKED_JOIN] = "joins strand",
        [BLOCKED_JOIN_SCOPE] = "joins its scope, waits for strand",
        [BLOCKED_WAIT] = "waits for the end of strand",
        [BLOCKED_LEAVE] = "leaves a scope, waits for strand",
        [BLOCKED_SLEEP] = "sleeps",
        [BLOCKED_SCOPE] = "waits for the end of any child",
        [BLOCKED_OFFLOAD] = "waits for an offloaded call",
        [BLOCKED_POOL] = "waits for the end of pool",
        [BLOCKED_STOPPING] = "waits for the run to be shut down",
        [BLOCKED_QUIET] = "waits for quiet",
        [BLOCKED_CREW] = "waits for the end of a crew",
        [BLOCKED_DESCRIPTOR] = "waits for descriptor",
        [BLOCKED_SEND] = "sends to channel",
        [BLOCKED_RECEIVE] = "receives from channel",
        [BLOCKED_SELECT] = "waits for one of",
        [BLOCKED_MUTEX] = "waits for mutex",
        [BLOCKED_CONDITION] = "waits for condition",
        [BLOCKED_READ_LOCK] = "waits to read under lock",
        [BLOCKED_WRITE_LOCK] = "waits to write under lock",
        [BLOCKED_SEMAPHORE] = "waits for semaphore",
        [BLOCKED_EVENT] = "waits for event",
        [BLOCKED_BARRIER] = "waits at barrier",
        [BLOCKED_ONCE] = "waits for the one run of",
        [BLOCKED_GROUP] = "waits for group",
        [BLOCKED_PERMIT] = "waits for semaphore",
        [BLOCKED_PORT] = "receives from port",
        [BLOCKED_ASK] = "waits for the answer of an actor",
        [BLOCKED_ACTOR_END] = "waits for the end of an actor",
        [BLOCKED_MAILBOX] = "waits for room in the mailbox of an actor",
        [BLOCKED_ACTOR] = "waits for actors that have messages",
        [BLOCKED_SIGNAL] = "waits for signals",
    };
    return blocked < sizeof words / sizeof *words && words[blocked] ? words[blocked] : "";
}

void print_frames(int fd, void **ips, size_t count)
{
    for (size_t i = 0; i < count; i++)
        frame(fd, 4, "at", ips[i]);
}

static void segment(int fd, int indent, const strand_exception *e, const struct segment *s)
{
    unsigned long long id = s->id;
    if (s->kind == SEGMENT_THROWN)
        print_text(fd, "%*sthrown in strand '%s' #%llu\n", indent, "", s->name, id);
    else if (s->kind == SEGMENT_JOINED)
        print_text(fd, "%*sthrown on in strand '%s' #%llu\n", indent, "", s->name, id);
    else
        print_text(fd, "%*sleft strand '%s' #%llu%s\n", indent, "", s->name, id,
                   s->count ? ", which had been spawned" : "");
    for (unsigned i = 0; i < s->count; i++)
        frame(fd, indent + 2, s->kind == SEGMENT_STRAND ? "in" : "at", e->ips[s->first + i]);
}

static void print(int fd, int indent, const char *what, const strand_exception *e, int depth)
{
    if (depth > DEPTH_MOST) {
        print_text(fd, "%*s... and more\n", indent, "");
        return;
    }
    print_text(fd, "%*s%s%s: %s\n", indent, "", what, e->kind->name, e->text);
    if (e->code)
        print_text(fd, "%*scode %d\n", indent + 2, "", e->code);
    if (e->note && e->note->who[0])
        print_text(fd, "%*scancelled by strand '%s' #%llu%s%s\n", indent + 2, "", e->note->who,
                   (unsigned long long)e->note->who_id, e->note->why[0] ? ": " : "", e->note->why);
    for (unsigned i = 0; i < e->segments_count; i++)
        segment(fd, indent + 2, e, &e->segments[i]);
    if (e->cause)
        print(fd, indent + 2, "caused by ", e->cause, depth + 1);
    int listed = 0;
    for (const strand_exception *s = e->suppressed; s; s = s->next) {
        if (listed++ == DEPTH_MOST) {
            print_text(fd, "%*s... and more suppressed\n", indent + 2, "");
            break;
        }
        print(fd, indent + 2, "suppressed ", s, depth + 1);
    }
}

void strand_exception_print(const strand_exception *e, int fd)
{
    if (!e)
        MISUSE("strand_exception_print", "", "the exception is NULL");
    print(fd, 0, "", e, 0);
}

void print_here(int fd, struct cb *me)
{
    void *ips[64];
    size_t count = arch_trace(ips, 64);
    if (me)
        print_text(fd, "  in strand '%s' #%llu\n", cb_name(me), (unsigned long long)cb_id(me));
    else
        print_text(fd, "  outside of strands\n");
    print_frames(fd, ips, count);
}

COLD void print_and_die(const char *what, strand_exception *e, strand_exception *other)
{
    print_text(2, "libstrand: %s; the program ends\n", what);
    strand_exception_print(e, 2);
    print_text(2, "while this one was in flight:\n");
    strand_exception_print(other, 2);
    abort();
}

COLD void overflow_report(struct thread *thread, void *address, void *ucontext)
{
    void *ips[64];
    struct cb *c = current_of(thread);
    struct stack *stack = thread->current->stack;
    size_t count = ucontext ? arch_trace_signal(ucontext, ips, 64) : arch_trace(ips, 64);
    print_text(2, "libstrand: stack overflow in strand '%s' #%llu: its stack of %zu bytes is full%s\n", cb_name(c),
               (unsigned long long)cb_id(c), stack->size,
               ucontext ? "" : " (found at a switch: there is no guard page)");
    print_frames(2, ips, count);
    if (!address)
        abort();
}

COLD void print_foreign(void)
{
    struct thread *thread = thread_self();
    if (thread && thread->current)
        print_text(2, "libstrand: a C++ exception leaves the function of strand '%s' #%llu; the program ends\n",
                   cb_name(current_of(thread)), (unsigned long long)cb_id(current_of(thread)));
}

COLD void print_terminating(void)
{
    struct thread *thread = thread_self();
    struct flight *flight = thread && thread->current ? own_of(current_of(thread))->flight : NULL;
    if (!flight)
        return;
    print_text(
        2, "libstrand: the C++ runtime ends the program (noexcept?) while an exception of strand '%s' is in flight\n",
        cb_name(current_of(thread)));
    strand_exception_print(flight->exception, 2);
}

void log_text(struct runtime *runtime, const char *text)
{
    if (!runtime->options.on_log) {
        print_text(2, "libstrand: %s\n", text);
        return;
    }
    runtime->options.on_log(text, runtime->options.hook_arg);
    must_be_here(runtime, "options.on_log");
}

void log_exception(struct runtime *runtime, const char *what, const strand_exception *e)
{
    char text[512];
    if (!e)
        return;
    snprintf(text, sizeof text, "%s: %s: %s", what, e->kind->name, e->text);
    log_text(runtime, text);
}
