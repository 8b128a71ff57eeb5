/*
 * A client's connection: requests are read and answered one after the other. What is wrong with a request is answered
 * here; what goes wrong after a part of the answer has been sent cuts the connection, so that no client takes the part
 * for all.
 */
#include "proxy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { NO_STATUS = 499 };

/* ---- idle connections ------------------------------------------------------------------------ */

static void enlist(struct connection *c)
{
    struct server *server = c->server;
    pthread_mutex_lock(&server->lock);
    c->next = NULL;
    c->at = server->idle_end;
    *server->idle_end = c;
    server->idle_end = &c->next;
    if (server->draining) /* set before the list is gone through */
        strand_event_set(&c->leave);
    pthread_mutex_unlock(&server->lock);
}

static void take_off(struct connection *c)
{
    *c->at = c->next;
    if (c->next)
        c->next->at = c->at;
    else
        c->server->idle_end = c->at;
    c->at = NULL;
}

static void delist(struct connection *c)
{
    pthread_mutex_lock(&c->server->lock);
    if (c->at)
        take_off(c);
    strand_event_clear(&c->leave);
    pthread_mutex_unlock(&c->server->lock);
}

bool end_idle(struct server *server, bool all)
{
    pthread_mutex_lock(&server->lock);
    bool any = server->idle;
    while (server->idle) {
        struct connection *c = server->idle;
        strand_event_set(&c->leave);
        take_off(c);
        if (!all)
            break;
    }
    pthread_mutex_unlock(&server->lock);
    return any;
}

/* ---- answers --------------------------------------------------------------------------------- */

void flush(struct connection *c)
{
    int error = sink_flush(&c->out);
    if (error)
        strand_throw(&CLIENT_GONE, error == -ETIMEDOUT ? "%s takes its answer too slowly" : "%s went away", c->peer);
}

static const char *reason_of(int status)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {
        {400, "Bad Request"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {417, "Expectation Failed"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
        {431, "Request Header Fields Too Large"},
    };
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "Error";
}

void answer_status(struct connection *c, int status)
{
    struct sink *sink = &c->out;
    const char *reason = reason_of(status);
    bool head = c->x.request.method.at && span_is(c->x.request.method, "HEAD");
    sink->chunked = false;
    sink->used = 0; /* a head that was not sent */
    sink_text(sink, "HTTP/1.1 ");
    sink_number(sink, (uint64_t)status);
    sink_text(sink, " ");
    sink_text(sink, reason);
    sink_text(sink, "\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: ");
    sink_number(sink, strlen(reason) + 5);
    sink_text(sink, status == 503 ? "\r\nRetry-After: 1\r\n" : "\r\n");
    sink_text(sink, status == 405 ? "Allow: GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH\r\n" : "");
    sink_text(sink, c->close             ? "Connection: close\r\n\r\n"
                    : c->x.request.minor ? "\r\n"
                                         : "Connection: keep-alive\r\n\r\n");
    if (!head) {
        sink_number(sink, (uint64_t)status);
        sink_text(sink, " ");
        sink_data(sink, reason, strlen(reason));
        sink_text(sink, "\n");
    }
    flush(c);
}

/* ---- a request ------------------------------------------------------------------------------- */

static void begin_request(struct connection *c)
{
    memset(&c->x, 0, offsetof(struct exchange, request));
    memset(&c->x.times, 0, sizeof c->x.times);
    c->x.times.begun = strand_now().ns;
    c->out.data = 0;
    c->upload.moved = c->out.pace.moved = 0;
    c->upload.waited = c->out.pace.waited = 0;
    c->active = true;
    c->server->begun++;
}

static void end_request(struct connection *c)
{
    c->active = false;
    c->server->served++;
    if (!c->x.times.ended)
        c->x.times.ended = strand_now().ns;
    log_exchange(c);
}

/* Returns whether an answer could be made of what went wrong; end_connection cuts the connection otherwise. The rest of
 * a body that nobody reads ends it. */
static bool answer_failure(struct connection *c, int status, const strand_exception *e)
{
    end_exchange(c, false);
    if (!*c->x.why)
        snprintf(c->x.why, sizeof c->x.why, "%s", strand_exception_text(e));
    if (c->x.started)
        return false;
    if (c->framing.place != ENDED || c->server->draining)
        c->close = true;
    c->x.status = status;
    answer_status(c, status);
    return true;
}

static void exchange_within(struct connection *c, int64_t limit)
{
    STRAND_DEADLINE(strand_in(limit));
    exchange(c);
}

/* False: the connection has to be cut. */
static bool serve_request(struct connection *c)
{
    STRAND_TRY {
        if (c->server->limits.whole)
            exchange_within(c, c->server->limits.whole);
        else
            exchange(c);
        return true;
    }
    STRAND_CATCH(&REFUSED_REQUEST, e) {
        return answer_failure(c, -strand_exception_code(e), e);
    }
    STRAND_CATCH(&BACKEND_FAILED, e) {
        return answer_failure(c, -strand_exception_code(e), e);
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        return answer_failure(c, 504, e);
    }
    STRAND_CATCH(&STRAND_SYSTEM, e) { /* memory, or a thread */
        return answer_failure(c, 503, e);
    }
    STRAND_END
    return false;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The connection is in the list. False: nothing has come, and it has to end or the time is over. An ordered select
 * would ask the system before each wait; this one asks when another case than the first has happened. */
static bool await_bytes(struct connection *c, int64_t end)
{
    strand_case cases[] = {
        stream_case(&c->stream),
        strand_on_event(&c->leave),
        strand_on_time((strand_time){end}),
    };
    return strand_select(cases, 3, 0) == 0 || (c->stream.tls && strand_tls_pending(c->stream.tls)) ||
           !stream_is_quiet(&c->stream);
}

/* The client may still be sending, and closing at once would reset the connection: it would lose the answer. */
static void linger(struct connection *c)
{
    int64_t end = strand_in(c->server->limits.head).ns, left;
    stream_end(&c->stream, c->server->limits.idle);
    enlist(c); /* it need not be waited for */
    while ((left = end - strand_now().ns) > 0 && await_bytes(c, end) &&
           stream_read(&c->stream, c->in, sizeof c->in, left) > 0)
        continue;
}

static void refuse(struct connection *c, int status)
{
    c->close = true;
    c->server->refused++;
    c->x.status = status;
    snprintf(c->x.why, sizeof c->x.why, "refused");
    answer_status(c, status);
    end_request(c);
}

/* What has come of the next request moves to the front. */
static void next_request(struct connection *c)
{
    memmove(c->in, c->in + c->begin, c->end - c->begin);
    c->end -= c->begin;
    c->begin = 0;
    c->framing = (struct framing){.place = BLANK_LINE, .most = FRAMING_MOST};
}

/* Of TLS a part of a record may come first, as a part of a head may: the rest has the time of a head. */
static int64_t read_first(struct connection *c)
{
    const struct limits *limits = &c->server->limits;
    bool came = await_bytes(c, strand_in(limits->keep_alive).ns);
    return came ? stream_read(&c->stream, c->in, HEAD_MOST, limits->head) : -ETIMEDOUT;
}

/* False: there is none, and nothing is owed. */
static bool await_request(struct connection *c)
{
    if (c->end)
        return true;
    enlist(c);
    int64_t got = read_first(c);
    delist(c);
    if (got == -ETIMEDOUT)
        stream_end(&c->stream, c->server->limits.idle);
    if (got <= 0)
        return false;
    c->end = (size_t)got;
    return true;
}

/* Returns 0 for a head that is here, the status of a refusal, or -1: the client has gone. */
static int read_head(struct connection *c)
{
    int64_t end = c->x.times.begun + c->server->limits.head;
    for (size_t used;;) {
        enum framed framed = frame(&c->framing, c->in + c->begin, c->end - c->begin, &used);
        c->begin += used;
        if (framed == FRAMED_WRONG)
            return c->framing.status;
        if (framed == FRAMED_HEAD && c->begin <= HEAD_MOST)
            return head_of_request(&c->x.request, (struct span){c->in, c->begin});
        if (c->end >= HEAD_MOST) /* several requests may have come at once */
            return c->framing.place <= TARGET ? 414 : 431;
        int64_t left = end - strand_now().ns;
        int64_t got = left > 0 ? stream_read(&c->stream, c->in + c->end, HEAD_MOST - c->end, left) : -ETIMEDOUT;
        if (got <= 0)
            return got == -ETIMEDOUT ? 408 : -1;
        c->end += (size_t)got;
    }
}

static void begin_body(struct connection *c)
{
    const struct head *head = &c->x.request;
    if (head->chunked)
        frame_chunks(&c->framing);
    else
        frame_body(&c->framing, head->length);
    c->close = head->close || (!head->minor && !head->keep) || c->server->draining;
}

/* False: the connection is over and has to be closed at once. */
static bool talk_once(struct connection *c)
{
    next_request(c);
    if (!await_request(c))
        return false;
    c->x.request = (struct head){0};
    begin_request(c);
    int status = read_head(c);
    if (status < 0) { /* it was no request as yet */
        c->active = false;
        c->server->begun--;
        return false;
    }
    if (status) {
        refuse(c, status);
        return true;
    }
    begin_body(c);
    if (!serve_request(c))
        return false;
    end_request(c);
    return true;
}

static bool shake_hands(struct connection *c)
{
    if (!c->stream.tls)
        return true;
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(c->server->limits.handshake));
        return strand_tls_handshake(c->stream.tls) == 0;
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
    }
    STRAND_END
    return false;
}

static void talk(struct connection *c)
{
    if (!shake_hands(c))
        return;
    while (!c->close)
        if (!talk_once(c))
            return;
    linger(c);
}

/* ---- the strand ------------------------------------------------------------------------------ */

/* On whatever way the strand ends. A request under way is cut. */
static void end_connection(struct connection **at)
{
    struct connection *c = *at;
    struct server *server = c->server;
    end_exchange(c, false);
    if (c->active) {
        stream_cut(&c->stream);
        server->cut++;
        if (!c->x.started)
            c->x.status = NO_STATUS;
        if (!*c->x.why)
            snprintf(c->x.why, sizeof c->x.why, server->cancelled ? "no time to drain" : "the client went away");
        c->x.times.ended = strand_now().ns;
        log_exchange(c);
    }
    delist(c);
    stream_close(&c->stream);
    server->live--;
    free(c);
}

void *serve_connection(void *arg)
{
    struct connection *c __attribute__((cleanup(end_connection))) = arg;
    STRAND_TRY {
        if (c->server->tls)
            c->stream.tls = strand_tls_server(c->server->tls, c->stream.fd);
        talk(c);
    }
    STRAND_CATCH(&CLIENT_GONE, e) {
        if (c->active && !*c->x.why && !strstr(strand_exception_text(e), "went away"))
            snprintf(c->x.why, sizeof c->x.why, "%s", strand_exception_text(e));
    }
    STRAND_CATCH(&STRAND_SYSTEM, e) { /* no memory */
    }
    STRAND_CATCH(&STRAND_TLS_ERROR, e) { /* TLS can't begin */
    }
    STRAND_END
    return NULL;
}
