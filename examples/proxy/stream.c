/*
 * Bytes of a descriptor or of TLS. Each wait has a limit of time, and a limit that is over is a result, -ETIMEDOUT.
 */
#include "proxy.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* ---- streams --------------------------------------------------------------------------------- */

int64_t stream_read(struct stream *stream, void *bytes, size_t size, int64_t limit)
{
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(limit));
        return stream->tls ? strand_tls_read(stream->tls, bytes, size) : strand_read(stream->fd, bytes, size);
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
    }
    STRAND_END
    return -ETIMEDOUT;
}

strand_case stream_case(struct stream *stream)
{
    return stream->tls ? strand_on_tls(stream->tls) : strand_on_ready(stream->fd, STRAND_READABLE);
}

int64_t stream_write(struct stream *stream, const void *bytes, size_t size, int64_t limit)
{
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(limit));
        return stream->tls ? strand_tls_write(stream->tls, bytes, size) : strand_write(stream->fd, bytes, size);
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
    }
    STRAND_END
    return -ETIMEDOUT;
}

void stream_end(struct stream *stream, int64_t limit)
{
    if (stream->tls) {
        STRAND_TRY {
            STRAND_DEADLINE(strand_in(limit));
            strand_tls_shutdown(stream->tls);
        }
        STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        }
        STRAND_END
    }
    strand_shutdown(stream->fd, SHUT_WR);
}

void stream_cut(struct stream *stream)
{
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    if (stream->fd >= 0)
        setsockopt(stream->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

void stream_close(struct stream *stream)
{
    if (stream->tls)
        strand_tls_close(stream->tls);
    else if (stream->fd >= 0)
        strand_close(stream->fd);
    *stream = (struct stream){.fd = -1};
}

/* Here errno is read where no switch can come in between. */
__attribute__((noinline)) bool stream_is_quiet(const struct stream *stream)
{
    char byte;
    return recv(stream->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

bool keeps_pace(struct pace *pace, int64_t begun, int64_t bytes, int64_t period)
{
    pace->moved += (uint64_t)bytes;
    pace->waited += strand_now().ns - begun;
    if (pace->waited < period)
        return true;
    bool enough = (double)pace->moved * STRAND_S >= (double)pace->least * (double)pace->waited;
    pace->moved = 0;
    pace->waited = 0;
    return enough;
}

/* ---- sinks ----------------------------------------------------------------------------------- */

static void write_all(struct sink *sink, const char *bytes, size_t length)
{
    while (length && !sink->error) {
        int64_t begun = strand_now().ns, wrote = stream_write(sink->stream, bytes, length, sink->limit);
        if (wrote > 0 && !keeps_pace(&sink->pace, begun, wrote, sink->limit))
            wrote = -ETIMEDOUT;
        if (wrote < 0) {
            sink->error = (int)wrote;
        } else {
            bytes += wrote;
            length -= (size_t)wrote;
        }
    }
}

int sink_flush(struct sink *sink)
{
    size_t used = sink->used;
    sink->used = 0;
    write_all(sink, sink->bytes, used);
    return sink->error;
}

void sink_put(struct sink *sink, const char *bytes, size_t length)
{
    while (length) {
        size_t room = BUFFER_MOST - sink->used, part = length < room ? length : room;
        memcpy(sink->bytes + sink->used, bytes, part);
        sink->used += part;
        bytes += part;
        length -= part;
        if (sink->used == BUFFER_MOST)
            sink_flush(sink);
    }
}

void sink_text(struct sink *sink, const char *text)
{
    sink_put(sink, text, strlen(text));
}

static void put_in_base(struct sink *sink, uint64_t number, unsigned base)
{
    char digits[24], *at = digits + sizeof digits;
    do
        *--at = "0123456789abcdef"[number % base];
    while (number /= base);
    sink_put(sink, at, (size_t)(digits + sizeof digits - at));
}

void sink_number(struct sink *sink, uint64_t number)
{
    put_in_base(sink, number, 10);
}

void sink_data(struct sink *sink, const char *bytes, size_t length)
{
    if (!length)
        return;
    sink->data += length;
    if (sink->chunked) {
        put_in_base(sink, length, 16);
        sink_text(sink, "\r\n");
    }
    sink_put(sink, bytes, length);
    if (sink->chunked)
        sink_text(sink, "\r\n");
}

void sink_data_end(struct sink *sink)
{
    if (sink->chunked)
        sink_text(sink, "0\r\n\r\n");
}
