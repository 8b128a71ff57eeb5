/*
 * Exceptions in words. Everything is printed through a small buffer on the stack, so that it works without memory too;
 * then without lines of the source.
 */
#include "print.h"

#include "carry.h"
#include "cxx.h"
#include "hook.h"
#include "misuse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INDENT_MOST = 8, FRAMES_AT_ONCE = 32 };

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

const char *place_words(struct arch_names *names, void *ip, char *buffer, size_t size)
{
    char name[160], line[100];
    uintptr_t offset;
    arch_names_find(names, ip, name, sizeof name, &offset, line, sizeof line);
    snprintf(buffer, size, "%s+0x%zx%s%s%s", name, (size_t)offset, line[0] ? " (" : "", line, line[0] ? ")" : "");
    return buffer;
}

const char *place_found(void *ip, char *buffer, size_t size)
{
    struct arch_names *names = arch_names_open();
    place_words(names, ip, buffer, size);
    arch_names_close(names);
    return buffer;
}

/* So many times in a row. */
static void frame(int fd, struct arch_names *names, int indent, const char *at, void *ip, unsigned times)
{
    char place[PLACE_WORDS];
    print_text(fd, "%*s%s %s", indent, "", at, place_words(names, ip, place, sizeof place));
    if (times > 1)
        print_text(fd, ", %u times", times);
    print_text(fd, "\n");
}

/* A function that calls itself from one place makes one line. */
static void frames(int fd, struct arch_names *names, int indent, const char *at, void **ips, size_t count)
{
    for (size_t i = 0, times; i < count; i += times) {
        for (times = 1; i + times < count && ips[i + times] == ips[i];)
            times++;
        frame(fd, names, indent, at, ips[i], (unsigned)times);
    }
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
    struct arch_names *names = arch_names_open();
    frames(fd, names, 4, "at", ips, count);
    arch_names_close(names);
}

static void head_of_segment(int fd, int indent, const struct segment *s)
{
    unsigned long long id = s->id;
    if (s->kind == SEGMENT_THROWN)
        print_text(fd, "%*sthrown in strand '%s' #%llu\n", indent, "", s->name, id);
    else if (s->kind == SEGMENT_JOINED)
        print_text(fd, "%*sthrown on in strand '%s' #%llu\n", indent, "", s->name, id);
    else
        print_text(fd, "%*sleft strand '%s' #%llu%s\n", indent, "", s->name, id,
                   s->count ? ", which had been spawned" : "");
}

/* One that is kept may grow meanwhile, elsewhere: what is printed is copied out under its lock, piece by piece. What
 * stands in a trace stays as it is. */
static bool copy_segment(strand_exception *e, unsigned i, struct segment *to)
{
    exception_lock(e);
    bool there = i < e->segments_count;
    if (there)
        *to = e->segments[i];
    exception_unlock(e);
    return there;
}

static unsigned copy_frames(strand_exception *e, unsigned first, unsigned count, void **to)
{
    count = count < FRAMES_AT_ONCE ? count : FRAMES_AT_ONCE;
    exception_lock(e);
    memcpy(to, e->ips + first, count * sizeof *to);
    exception_unlock(e);
    return count;
}

static void trace(int fd, struct arch_names *names, int indent, const strand_exception *printed)
{
    strand_exception *e = (strand_exception *)(uintptr_t)printed;
    struct segment s;
    void *ips[FRAMES_AT_ONCE];
    for (unsigned i = 0; copy_segment(e, i, &s); i++) {
        head_of_segment(fd, indent, &s);
        for (unsigned at = s.first, end = at + s.count, count; at < end; at += count) {
            count = copy_frames(e, at, end - at, ips);
            frames(fd, names, indent + 2, s.kind == SEGMENT_STRAND ? "in" : "at", ips, count);
        }
    }
}

static int indent_of(const struct carried *line)
{
    return 2 * (line->depth < INDENT_MOST ? line->depth : INDENT_MOST);
}

static const char *const carried_words[] = {
    [CARRIED_ITSELF] = "", [CARRIED_CAUSE] = "caused by ", [CARRIED_SUPPRESSED] = "suppressed "};

static void print_line(int fd, struct arch_names *names, const struct carried *line)
{
    const strand_exception *e = line->e;
    int indent = indent_of(line);
    print_text(fd, "%*s%s%s: %s%s\n", indent, "", carried_words[line->as], e->kind->name, e->text,
               line->again ? " (see above)" : "");
    if (line->again)
        return;
    if (e->code) {
        const char *name = strerrorname_np(e->code < 0 ? -e->code : e->code);
        print_text(fd, "%*scode %d%s%s%s\n", indent + 2, "", e->code, name ? " (" : "", name ? name : "",
                   name ? ")" : "");
    }
    if (e->note && e->note->who[0])
        print_text(fd, "%*scancelled by strand '%s' #%llu%s%s\n", indent + 2, "", e->note->who,
                   (unsigned long long)e->note->who_id, e->note->why[0] ? ": " : "", e->note->why);
    trace(fd, names, indent + 2, e);
}

/* What the ring of the line's exception has besides the lines below it. */
static void print_unshown(int fd, const struct carried *line)
{
    if (line->unshown)
        print_text(fd, "%*s... and %zu more suppressed\n", indent_of(line) + 2, "", line->unshown);
}

/* The lines above `next` that nothing is below any more, the innermost first. */
static void print_ends(int fd, const struct carried *all, size_t last, size_t up)
{
    for (; last != up; last = all[last].up)
        print_unshown(fd, &all[last]);
}

void strand_exception_print(const strand_exception *e, int fd)
{
    must_be_there(e, "exception", "strand_exception_print");
    struct carried all[CARRIED_ROOM];
    size_t more, count = carried_list(e, all, &more);
    struct arch_names *names = arch_names_open();
    for (size_t i = 0; i < count; i++) {
        if (i)
            print_ends(fd, all, i - 1, all[i].up);
        print_line(fd, names, &all[i]);
    }
    print_ends(fd, all, count - 1, 0);
    print_unshown(fd, &all[0]);
    if (more)
        print_text(fd, "... and %zu more that those carry\n", more);
    arch_names_close(names);
    carried_over(all, count);
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

COLD void overflow_report(struct thread *thread, enum overflow how, void *ucontext)
{
    static const char *const found[] = {
        [OVERFLOW_GUARD] = "",
        [OVERFLOW_STEPPED_OVER] = ("; a frame larger than the guard page has stepped over it, and may have overwritten "
                                   "other strands' stacks: compile with -fstack-clash-protection"),
        [OVERFLOW_CANARY] = " (found at a switch: there is no guard page)",
    };
    void *ips[64];
    struct cb *c = current_of(thread);
    struct stack *stack = thread->current->stack;
    size_t count = ucontext ? arch_trace_signal(ucontext, ips, 64) : arch_trace(ips, 64);
    print_text(2, "libstrand: stack overflow in strand '%s' #%llu: its stack of %zu bytes is full%s\n", cb_name(c),
               (unsigned long long)cb_id(c), stack->size, found[how]);
    frames(2, NULL, 4, "at", ips, count); /* in a fault's handler, or in the middle of a switch */
    if (!ucontext)
        abort();
}

COLD void stack_left_(struct thread *thread, const char *sp)
{
    if (stack_is_anothers(&thread->stacks, sp))
        overflow_report(thread, OVERFLOW_STEPPED_OVER, NULL);
}

COLD void print_lost(void *ip)
{
    struct cb *me = current_of(thread_self());
    print_text(
        2,
        "libstrand: an exception of strand '%s' #%llu can't get through a function without unwind tables; the "
        "program ends. Compile that function with -fexceptions, or give it .cfi directives if it is in "
        "assembler, or catch the exception before it gets there; in a program that is linked with -lunwind, name "
        "-lgcc_s before that. The function:\n",
        cb_name(me), (unsigned long long)cb_id(me));
    print_frames(2, &ip, 1);
    strand_exception_print(own_of(me)->flight->exception, 2);
}

COLD void print_terminating(void)
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
    } else if (me && cxx_is_about_static_object(arch_cxx_handled())) {
        print_text(2, "libstrand: %s\n", cxx_static_object);
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

/* What is logged may be logged in the middle of a switch, or under a lock. */
static const char *made_of_log(const struct hook *hook, char *buffer, size_t size)
{
    snprintf(buffer, size, "it was called with: %s", (const char *)hook->object);
    return buffer;
}

void log_text(struct runtime *runtime, const char *text)
{
    if (!runtime->options.on_log) {
        print_text(2, "libstrand: %s\n", text);
        return;
    }
    struct hook hook HOOK = {.name = "options.on_log", .made = made_of_log, .object = (void *)(uintptr_t)text};
    hook_enter(&hook);
    runtime->options.on_log(text, runtime->options.hook_arg);
    must_be_here(runtime, "options.on_log");
    hook_over(&hook);
}

void log_exception(struct runtime *runtime, const char *what, const strand_exception *e)
{
    char text[512];
    struct carried all[CARRIED_ROOM];
    size_t more = 0, count = e ? carried_list(e, all, &more) : 0;
    for (size_t i = 0; i < count; i++) {
        const struct carried *line = &all[i];
        more += line->unshown;
        if (line->again || (i && strand_exception_is(line->e, &STRAND_INTERRUPTED))) /* which is no failure */
            continue;
        snprintf(text, sizeof text, "%s: %s%s: %s", what, carried_words[line->as], line->e->kind->name, line->e->text);
        log_text(runtime, text);
    }
    if (more) {
        snprintf(text, sizeof text, "%s: ... and %zu more suppressed", what, more);
        log_text(runtime, text);
    }
    carried_over(all, count);
}
