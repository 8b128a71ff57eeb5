/*
 * The log, and the output of the processes, line by line.
 */
#include "profileprocess.h"

#include <strand/pool.h>

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* A pipe takes so much at once, so lines stay whole, also if others write to it. */
enum { WRITE_MOST = PIPE_BUF, LINE_MOST = WRITE_MOST - 64, PIPE_ROOM = 64 * 1024 };

/* How long a process that the process under test has left behind may hold the output open. */
#define LINGER STRAND_S

/* Returns false if the other side is gone. */
static bool put(struct sink *sink, const char *text, size_t size)
{
    STRAND_LOCKED(&sink->lock);
    return strand_write_all(sink->fd, text, size) >= 0;
}

/* ---- the log --------------------------------------------------------------------------------- */

static size_t put_time(char *text, size_t size)
{
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t used = strftime(text, size, "%FT%T", &utc);
    return used + (size_t)snprintf(text + used, size - used, ".%03dZ profileprocess: ", (int)(now.tv_nsec / 1000000));
}

/* One line stays one line, whatever the names and arguments of programs contain. */
static void replace_controls(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == '\x7f')
            *text = ' ';
}

void log_line(struct profile *p, const char *format, ...)
{
    char line[1500];
    va_list arguments;
    size_t used = put_time(line, sizeof line);
    va_start(arguments, format);
    vsnprintf(line + used, sizeof line - used - 1, format, arguments);
    va_end(arguments);
    replace_controls(line);
    strcat(line, "\n");
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(STRAND_S));
        put(p->log, line, strlen(line));
    }
    STRAND_CATCH(&STRAND_ERROR, e) {
    }
    STRAND_END
}

/* ---- lines of a process ---------------------------------------------------------------------- */

struct relay {
    struct profile *profile;
    int fd;
    struct sink *sink;
    char name[48];
    bool continues; /* the last piece was no whole line */
    size_t read, ready;
    char text[LINE_MOST]; /* read, and not yet a line: `read` bytes */
    char out[WRITE_MOST]; /* lines to be written: `ready` bytes */
};

static bool flush(struct relay *r)
{
    size_t size = r->ready;
    r->ready = 0;
    return !size || put(r->sink, r->out, size);
}

/* Adds a line, or a piece of one that is too long. The mark of a further piece is + instead of a colon. */
static bool add_line(struct relay *r, const char *text, size_t size, bool whole)
{
    char head[sizeof r->name + 4];
    if (r->continues && whole && !size) { /* the pieces were the line */
        r->continues = false;
        return true;
    }
    size_t length = (size_t)sprintf(head, "%s%c ", r->name, r->continues ? '+' : ':');
    if (r->ready + length + size + 1 > sizeof r->out && !flush(r))
        return false;
    char *to = r->out + r->ready;
    memcpy(to, head, length);
    memcpy(to + length, text, size);
    to[length + size] = '\n';
    r->ready += length + size + 1;
    r->continues = !whole;
    return true;
}

/* Takes the lines out of r->text. Returns false if the sink takes no more. */
static bool take_lines(struct relay *r)
{
    char *begin = r->text, *end = r->text + r->read, *stop;
    bool taken = true;
    while (taken && (stop = memchr(begin, '\n', (size_t)(end - begin)))) {
        taken = add_line(r, begin, (size_t)(stop - begin), true);
        begin = stop + 1;
    }
    if (taken && begin == r->text && r->read == sizeof r->text) {
        taken = add_line(r, begin, r->read, false);
        begin = end;
    }
    r->read = (size_t)(end - begin);
    memmove(r->text, begin, r->read);
    return taken && flush(r);
}

/* Prefers what is in the pipe to the end. A process that has been left behind may write all the time: from the end on
 * no more than a pipe holds is read. */
static void *relay(void *arg)
{
    struct relay *r = arg;
    strand_event *ends = &r->profile->output_ends;
    strand_case cases[] = {strand_on_ready(r->fd, STRAND_READABLE), strand_on_event(ends)};
    size_t rest = PIPE_ROOM;
    while (rest && strand_select(cases, 2, STRAND_SELECT_ORDERED) == 0) {
        int64_t got = strand_read(r->fd, r->text + r->read, sizeof r->text - r->read);
        if (got <= 0)
            break;
        r->read += (size_t)got;
        if (!take_lines(r))
            break;
        if (strand_event_is_set(ends))
            rest -= (size_t)got < rest ? (size_t)got : rest;
    }
    if (r->read && add_line(r, r->text, r->read, true))
        flush(r);
    strand_close(r->fd);
    return NULL;
}

void relay_start(struct profile *p, const struct process *process, int fd, struct sink *sink)
{
    struct relay r = {.profile = p, .fd = fd, .sink = sink};
    memcpy(r.name, process->name, sizeof r.name);
    p->relay[p->relay_count++] = strand_spawn_with(p->relays, STRAND_ATTR(.name = "relay"), relay, &r, sizeof r);
}

void relays_finish(struct profile *p)
{
    strand_time linger = strand_in(LINGER);
    for (size_t i = 0; i < p->relay_count && !is_hurried(p);) {
        int number;
        strand_case cases[] = {strand_on_signal(p->signals, &number), strand_on_end(p->relay[i]),
                               strand_on_time(linger)};
        int which = strand_select(cases, 3, STRAND_SELECT_ORDERED);
        if (which == 0)
            handle_signal(p, number);
        else if (which == 1)
            i++;
        else {
            strand_event_set(&p->output_ends);
            linger = (strand_time){0};
        }
    }
    strand_scope_cancel(p->relays, "nobody waits for the output");
}
