/*
 * Bodies, in both directions, and tunnels. Nothing is kept but a buffer of each side. A body's framing is taken off and
 * made again, so that no receiver sees another end than this proxy.
 *
 * PARTIES
 *   the connection's strand   reads the link, writes to the client
 *   the upload                its child; reads the client, writes to the link
 *
 * STATE
 *   c->in, c->begin, c->end, c->framing, link->out   of the upload, from its start to its end
 *   link->in, c->out                                 of the connection's strand
 *   x->body_sent      set before a byte of the body can have been sent; then the request is tried no more
 *   x->heard          set when a byte of a response has come
 *   x->taken          set when all of the body has come, so before an answer that needs it: the client's connection can
 *                     go on behind it
 *   x->upload_ended   set as the upload's last step: the time for an answer begins. If link->out has no error the link
 *                     has got all
 *   c->close          of the connection's strand
 *
 * INVARIANTS
 *   A client that has gone and a body that is malformed or too slow end the upload by an exception, which interrupts
 *   the connection's strand. A backend that takes no more of the body does not: its answer may be there.
 */
#include "proxy.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* ---- from the client --------------------------------------------------------------------------- */

bool take_body(struct connection *c)
{
    for (;;) {
        size_t used, data;
        const char *at = c->in + c->begin;
        enum framed framed = frame_data(&c->framing, at, c->end - c->begin, &used, &data);
        c->begin += used;
        if (framed == FRAMED_WRONG)
            refuse_request(c, c->framing.status, "the body is malformed");
        if (data)
            c->x.body_sent = true;
        sink_data(&c->x.link->out, at + used - data, data);
        if (framed == FRAMED_ALL) {
            c->x.body_sent = true;
            c->x.taken = true;
            sink_data_end(&c->x.link->out);
            return true;
        }
        if (c->begin == c->end)
            return false;
    }
}

/* Behind the head, which stays for the log. */
static void read_body(struct connection *c)
{
    size_t base = (size_t)(c->x.request.text.at + c->x.request.text.length - c->in);
    c->begin = c->end = base;
    bool unasked = awaits_asking(c); /* the connection's strand ends the wait before, or begins it by an answer */
    int64_t limit = c->server->limits.idle, begun = strand_now().ns;
    int64_t got =
        stream_read(&c->stream, c->in + base, BUFFER_MOST - base, limit + (unasked ? c->server->limits.response : 0));
    bool timed = got > 0 && !unasked && !c->x.heard; /* it may wait for the answer */
    if (got == -ETIMEDOUT || (timed && !keeps_pace(&c->upload, begun, got, limit)))
        refuse_request(c, 408, "the body comes too slowly");
    if (got <= 0)
        strand_throw(&CLIENT_GONE, "%s went away in the middle of a body", c->peer);
    c->end = base + (size_t)got;
}

void *upload(void *arg)
{
    struct connection *c = arg;
    struct sink *out = &c->x.link->out;
    for (bool all = false; !all;) {
        if (c->begin == c->end)
            read_body(c);
        all = take_body(c);
        int error = sink_flush(out);
        if (error == -ETIMEDOUT)
            fail_backend(c, 504, "the backend takes the body too slowly");
        if (error)
            break;
    }
    c->x.upload_ended = strand_now().ns;
    return NULL;
}

/* ---- to the client ----------------------------------------------------------------------------- */

static bool has_no_body(const struct connection *c)
{
    int status = c->x.response.status;
    return span_is(c->x.request.method, "HEAD") || status == 204 || status == 304;
}

static struct framing framing_of(const struct connection *c)
{
    const struct head *head = &c->x.response;
    struct framing framing = {.place = ENDED, .most = FRAMING_MOST};
    if (has_no_body(c))
        return framing;
    if (head->chunked)
        frame_chunks(&framing);
    else if (head->has_length)
        frame_body(&framing, head->length);
    else
        frame_to_the_end(&framing);
    return framing;
}

/* Passes on what has come. Returns whether that is all. */
static bool give(struct connection *c, struct framing *framing)
{
    struct link *link = c->x.link;
    while (framing->place != ENDED && link->begin < link->end) {
        size_t used, data;
        const char *at = link->in + link->begin;
        enum framed framed = frame_data(framing, at, link->end - link->begin, &used, &data);
        link->begin += used;
        if (framed == FRAMED_WRONG)
            fail_backend(c, 502, "the body of the answer is malformed");
        sink_data(&c->out, at + used - data, data);
    }
    return framing->place == ENDED;
}

/* False: this was the end of a body that only the end of the connection ends. */
static bool read_answer(struct connection *c, const struct framing *framing)
{
    struct link *link = c->x.link;
    link->begin = link->end = 0;
    int64_t got = read_link(c, c->server->limits.idle);
    if (got == 0 && framing->place == TO_THE_END)
        return false;
    if (got <= 0)
        fail_backend(c, got == -ETIMEDOUT ? 504 : 502,
                     got == -ETIMEDOUT ? "the body of the answer comes too slowly" : "the body of the answer was cut");
    return true;
}

void download(struct connection *c)
{
    struct framing framing = framing_of(c);
    bool has_body = framing.place != ENDED;
    if (c->server->draining || !c->x.taken)
        c->close = true;
    put_response(c, has_body);
    c->x.started = true;
    while (!give(c, &framing)) {
        flush(c);
        if (!read_answer(c, &framing)) {
            c->x.response.close = true;
            break;
        }
    }
    if (has_body)
        sink_data_end(&c->out);
    flush(c);
}

/* ---- tunnels ----------------------------------------------------------------------------------- */

/* One direction of a tunnel. */
struct pipe {
    struct connection *c;
    struct stream *from, *to;
    char *bytes;
    _Atomic int64_t *moved; /* when a byte last came, from either side */
    uint64_t *count;
};

/* As long as the other direction lives, silence in this one is no end. */
static int64_t read_pipe(struct pipe *pipe)
{
    int64_t limit = pipe->c->server->limits.idle;
    for (;;) {
        int64_t left = *pipe->moved + limit - strand_now().ns;
        int64_t got = left <= 0 ? -ETIMEDOUT : stream_read(pipe->from, pipe->bytes, BUFFER_MOST, left);
        if (got != -ETIMEDOUT || left <= 0)
            return got;
    }
}

/* Until the end comes, which goes on too. */
static void *pump(void *arg)
{
    struct pipe *pipe = arg;
    int64_t limit = pipe->c->server->limits.idle, got;
    while ((got = read_pipe(pipe)) > 0) {
        *pipe->moved = strand_now().ns;
        for (int64_t at = 0; at < got;) {
            int64_t wrote = stream_write(pipe->to, pipe->bytes + at, (size_t)(got - at), limit);
            if (wrote < 0)
                strand_throw(&CLIENT_GONE, "a side of a tunnel takes no more");
            at += wrote;
        }
        *pipe->count += (uint64_t)got;
    }
    if (got < 0)
        strand_throw(&CLIENT_GONE, "a side of a tunnel broke, or both were silent");
    stream_end(pipe->to, limit);
    return NULL;
}

/* What has come behind the heads goes first. */
static void begin_tunnel(struct connection *c)
{
    struct link *link = c->x.link;
    put_response(c, false);
    c->out.chunked = link->out.chunked = false;
    c->x.started = true;
    sink_data(&c->out, link->in + link->begin, link->end - link->begin);
    flush(c);
    sink_data(&link->out, c->in + c->begin, c->end - c->begin);
    if (sink_flush(&link->out) < 0)
        strand_throw(&CLIENT_GONE, "the backend's side of a tunnel broke");
    c->begin = c->end = link->begin = link->end = 0;
}

void tunnel(struct connection *c)
{
    struct link *link = c->x.link;
    _Atomic int64_t moved = strand_now().ns;
    uint64_t up_count = 0;
    c->close = true;
    begin_tunnel(c);
    struct pipe down = {c, &link->stream, &c->stream, link->in, &moved, &c->out.data};
    struct pipe up = {c, &c->stream, &link->stream, link->out.bytes, &moved, &up_count};
    STRAND_SCOPE(scope);
    strand_spawn_with(scope, STRAND_ATTR(.name = "tunnel"), pump, &up, 0);
    pump(&down);
    strand_scope_join(scope);
}
