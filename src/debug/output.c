/*
 * Text output to a descriptor.
 */
#include "output.h"

#include "../base/plain.h"
#include "../strand/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ROOM_FIRST ((size_t)64 << 10)
enum { LINE_MOST = 400, INDENT_MOST = 60 };

int output_open(struct output *out, int fd)
{
    void *text;
    int error = arch_map(ROOM_FIRST, &text);
    *out = (struct output){.fd = fd, .error = error, .text = error ? NULL : text, .room = error ? 0 : ROOM_FIRST};
    return error;
}

void output_open_streaming(struct output *out, int fd, char *room, size_t size)
{
    *out = (struct output){.fd = fd, .text = room, .room = size, .streams = true};
}

void output_log(struct output *out, struct runtime *runtime)
{
    out->fd = 2;
    if (runtime->options.on_log)
        out->log = runtime;
    else
        output_say(out, 0, "libstrand: ");
}

void output_flush(struct output *out)
{
    if (out->log && out->used) {
        out->text[out->used - 1] = '\0'; /* the end of the last line */
        log_text(out->log, out->text);
    } else if (!out->error) {
        out->error = (int)arch_write(out->fd, out->text, out->used);
    }
    out->used = 0;
}

void output_close(struct output *out)
{
    if (!out->streams && out->text)
        arch_unmap(out->text, out->room);
    out->text = NULL;
}

static int grow(struct output *out)
{
    void *more;
    int error = arch_map(out->room * 2, &more);
    if (error)
        return error;
    memcpy(more, out->text, out->used);
    arch_unmap(out->text, out->room);
    out->text = more;
    out->room *= 2;
    return 0;
}

static void make_room(struct output *out, size_t size)
{
    if (out->room - out->used >= size)
        return;
    if (out->streams)
        output_flush(out);
    else
        out->error = grow(out);
}

/* Copies a line, with control characters escaped. Returns the bytes written. */
static size_t put(char *to, const char *line, size_t size)
{
    char *at = to;
    for (size_t i = 0; i < size; i++) {
        if (plain_is_control(line[i])) {
            plain_escape(at, line[i]);
            at += PLAIN_ESCAPE;
        } else {
            *at++ = line[i];
        }
    }
    return (size_t)(at - to);
}

void output_say(struct output *out, size_t indent, const char *format, ...)
{
    char line[LINE_MOST];
    bool ends = *format && format[strlen(format) - 1] == '\n';
    indent = indent < INDENT_MOST ? indent : INDENT_MOST;
    memset(line, ' ', indent);
    va_list args;
    va_start(args, format);
    int length = vsnprintf(line + indent, sizeof line - indent, format, args);
    va_end(args);
    size_t size = indent + (length > 0 ? (size_t)length : 0);
    size = size < sizeof line ? size : sizeof line - 1;
    size -= ends && size; /* the end of the line, or the byte in its place if the line was cut */
    size_t controls = 0;
    for (size_t i = 0; i < size; i++)
        controls += plain_is_control(line[i]);
    if (!out->error)
        make_room(out, size + (PLAIN_ESCAPE - 1) * controls + 1);
    if (out->error)
        return;
    out->used += put(out->text + out->used, line, size);
    if (ends)
        out->text[out->used++] = '\n';
}
