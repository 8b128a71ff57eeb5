/*
 * Printing exceptions, with what they carry.
 */
#include "exception_print.h"

#include "carry.h"
#include "misuse.h"
#include "print.h"

#include <stdlib.h>
#include <string.h>

enum { INDENT_MOST = 8, FRAMES_AT_ONCE = 32 };

static void head_of_segment(int fd, int indent, const struct segment *s)
{
    unsigned long long id = s->id;
    if (s->type == SEGMENT_THROWN)
        print_text(fd, "%*sthrown in strand '%s' #%llu\n", indent, "", s->name, id);
    else if (s->type == SEGMENT_JOINED)
        print_text(fd, "%*srethrown in strand '%s' #%llu\n", indent, "", s->name, id);
    else
        print_text(fd, "%*sleft strand '%s' #%llu%s\n", indent, "", s->name, id,
                   s->count ? ", which had been spawned" : "");
}

/* The trace of a kept exception may grow meanwhile, in another strand. So it is copied out under the lock, piece by
 * piece. The existing part of a trace does not change. */
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
            print_trace(fd, names, indent + 2, s.type == SEGMENT_STRAND ? "in" : "at", ips, count);
        }
    }
}

static int indent_of(const struct carried *line)
{
    return 2 * (line->depth < INDENT_MOST ? line->depth : INDENT_MOST);
}

static void print_line(int fd, struct arch_names *names, const struct carried *line)
{
    const strand_exception *e = line->e;
    int indent = indent_of(line);
    print_text(fd, "%*s%s%s: %s%s\n", indent, "", carried_words(line->as), e->kind->name, e->text,
               line->again ? " (see above)" : "");
    if (line->again)
        return;
    if (e->code) {
        const char *name = strerrorname_np(e->code < 0 ? -e->code : e->code);
        print_text(fd, "%*scode %d%s%s%s\n", indent + 2, "", e->code, name ? " (" : "", name ? name : "",
                   name ? ")" : "");
    }
    if (e->cancel_reason && e->cancel_reason->who[0])
        print_text(fd, "%*scancelled by strand '%s' #%llu%s%s\n", indent + 2, "", e->cancel_reason->who,
                   (unsigned long long)e->cancel_reason->who_id, e->cancel_reason->why[0] ? ": " : "",
                   e->cancel_reason->why);
    if (atomic_load_explicit(&e->mistaken, memory_order_relaxed))
        print_text(
            fd,
            "%*snot caught by a catch block that names another kind '%s': a kind in a header is extern const, and "
            "defined in one source file\n",
            indent + 2, "", e->kind->name);
    trace(fd, names, indent + 2, e);
}

/* Prints how many exceptions of the line's ring have no line. */
static void print_unshown(int fd, const struct carried *line)
{
    if (line->unshown)
        print_text(fd, "%*s... and %zu more suppressed\n", indent_of(line) + 2, "", line->unshown);
}

/* Ends the lines from `last` up to, but not including, `up`: the innermost first. */
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

COLD void exception_print_and_die(const char *what, strand_exception *e, strand_exception *other)
{
    print_text(2, "libstrand: %s; the program ends\n", what);
    strand_exception_print(e, 2);
    print_text(2, "while this one was in flight:\n");
    strand_exception_print(other, 2);
    abort();
}

COLD void exception_print_lost(void *ip)
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
