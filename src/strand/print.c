/*
 * Printing locations in the code, frames and strands. Everything goes through a small buffer on the stack, so it works
 * without memory, except that locations then lack the line of the source.
 */
#include "print.h"

#include "../base/plain.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Escapes control characters, except the newline at the end. Usually one write. */
static void write_line(int fd, const char *line, size_t size)
{
    size_t from = 0;
    for (size_t i = 0; i < size; i++) {
        if (!plain_is_control(line[i]) || (line[i] == '\n' && i + 1 == size))
            continue;
        char escaped[PLAIN_ESCAPE];
        plain_escape(escaped, line[i]);
        arch_write(fd, line + from, i - from);
        arch_write(fd, escaped, sizeof escaped);
        from = i + 1;
    }
    arch_write(fd, line + from, size - from);
}

void print_text(int fd, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (length > 0)
        write_line(fd, text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
}

const char *print_location_words(struct arch_names *names, void *ip, char *buffer, size_t size)
{
    char name[160], line[100];
    uintptr_t offset;
    arch_names_find(names, ip, name, sizeof name, &offset, line, sizeof line);
    snprintf(buffer, size, "%s+0x%zx%s%s%s", name, (size_t)offset, line[0] ? " (" : "", line, line[0] ? ")" : "");
    return buffer;
}

const char *print_location_line(void *ip, char *buffer, size_t size)
{
    struct arch_names *names = arch_names_open();
    print_location_words(names, ip, buffer, size);
    arch_names_close(names);
    return buffer;
}

/* Prints one line for `times` equal frames in a row. */
static void frame(int fd, struct arch_names *names, int indent, const char *at, void *ip, unsigned times)
{
    char location[LOCATION_WORDS];
    print_text(fd, "%*s%s %s", indent, "", at, print_location_words(names, ip, location, sizeof location));
    if (times > 1)
        print_text(fd, ", %u times", times);
    print_text(fd, "\n");
}

void print_trace(int fd, struct arch_names *names, int indent, const char *at, void **ips, size_t count)
{
    for (size_t i = 0, times; i < count; i += times) {
        for (times = 1; i + times < count && ips[i + times] == ips[i];)
            times++;
        frame(fd, names, indent, at, ips[i], (unsigned)times);
    }
}

const char *print_error_words(int code)
{
    const char *words = strerrordesc_np(code < 0 ? -code : code);
    return words ? words : "unknown error";
}

const char *print_refusal_words(struct thread *thread, int error, char *text, size_t room)
{
    struct subprocess *sub = thread->sub;
    size_t taken = atomic_load_explicit(&sub->memory.taken, memory_order_relaxed);
    if (error == -EAGAIN && thread->stacks.wanted)
        snprintf(text, room, "options.max_stack_bytes is %zu, of which %zu are in use, and %zu more were requested",
                 sub->memory.most, taken, thread->stacks.wanted);
    else if (error == -EAGAIN)
        snprintf(text, room, "options.max_stack_bytes is %zu, and %zu are in use", sub->memory.most, taken);
    else
        snprintf(text, room, "%s", print_error_words(error));
    return text;
}

void print_frames(int fd, void **ips, size_t count)
{
    struct arch_names *names = arch_names_open();
    print_trace(fd, names, 4, "at", ips, count);
    arch_names_close(names);
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

COLD void print_overflow(struct thread *thread, enum overflow how, void *ucontext)
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
    print_trace(2, NULL, 4, "at", ips, count); /* the caller is a signal handler, or in the middle of a switch */
    if (!ucontext)
        abort();
}

COLD void print_stack_left_(struct thread *thread, const char *sp)
{
    if (stack_is_anothers(&thread->stacks, sp))
        print_overflow(thread, OVERFLOW_STEPPED_OVER, NULL);
}
