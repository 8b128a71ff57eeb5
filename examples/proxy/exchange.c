/*
 * One request: a backend is chosen, gets the request, and its answer goes to the client.
 *
 * A request is tried again, with another backend or another link, only while nothing can have happened twice: no byte
 * of an answer has come, no byte of the body has been sent, and either no connection was made at all or the method is
 * idempotent (RFC 9110, 9.2.2). A link that the backend had closed before is no failure of the backend.
 */
#include "proxy.h"

#include <errno.h>
#include <string.h>

/* Before a wait for the backend also watches the client. Most answers have come by then. */
static const int64_t unwatched = 20 * STRAND_MS;
/* While a body is sent, the wait for the answer looks so often whether that has ended. */
static const int64_t upload_pause = STRAND_S;
/* For the strand that has sent all of a body to end. */
static const int64_t upload_grace = STRAND_S;
enum { INTERIM_MOST = 32 };

const strand_kind CLIENT_GONE = STRAND_KIND("CLIENT_GONE", &STRAND_ERROR);
const strand_kind REFUSED_REQUEST = STRAND_KIND("REFUSED_REQUEST", &STRAND_ERROR);
const strand_kind BACKEND_FAILED = STRAND_KIND("BACKEND_FAILED", &STRAND_ERROR);

/* The upload throws too: the status goes with the exception, and what the connection's strand writes stays its own. */
void refuse_request(struct connection *c, int status, const char *why)
{
    (void)c;
    strand_throw_with(&REFUSED_REQUEST, STRAND_THROW_INFO(.code = -status), "%s", why);
}

void fail_backend(struct connection *c, int status, const char *why)
{
    note_failure(c->server, c->x.backend, why);
    strand_throw_with(&BACKEND_FAILED, STRAND_THROW_INFO(.code = -status), "%s", why);
}

/* The last try has failed, and there is no other. */
__attribute__((noreturn)) static void give_up(struct connection *c)
{
    strand_throw_with(&BACKEND_FAILED, STRAND_THROW_INFO(.code = -c->x.failure), "%s", c->x.failed_by);
}

static void note(struct connection *c, int status, const char *why)
{
    c->x.failure = status;
    c->x.failed_by = why;
}

void end_exchange(struct connection *c, bool clean)
{
    struct exchange *x = &c->x;
    struct link *link = x->link;
    x->link = NULL;
    if (link && clean)
        link_keep(c->server, link);
    else if (link)
        link_close(link);
    if (x->backend) {
        x->backend->active--;
        strand_prio_release(&x->backend->permits);
        x->backend = NULL;
    }
}

/* ---- a link ---------------------------------------------------------------------------------- */

static bool is_idempotent(const struct head *head)
{
    static const char *const methods[] = {"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PROPFIND", "REPORT", "SEARCH"};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (span_is(head->method, methods[i]))
            return true;
    return false;
}

static bool has_body(const struct connection *c)
{
    return c->x.request.chunked || c->x.request.length;
}

/* A failed try that another one may follow. */
static bool fail_try(struct connection *c, int status, const char *why)
{
    struct exchange *x = &c->x;
    note(c, status, why);
    x->tried |= UINT64_C(1) << (x->backend - c->server->backends);
    note_failure(c->server, x->backend, why);
    return false;
}

/* Descriptors and memory are this machine's. Idle links can be spared. */
static bool is_shortage(int error)
{
    return error == -EMFILE || error == -ENFILE || error == -ENOMEM || error == -ENOBUFS;
}

static int dial(struct connection *c)
{
    struct server *server = c->server;
    struct undialled *undialled = &c->x.undialled;
    int spared = 0;
    c->x.link = link_dial(server, c->x.backend, undialled);
    if (!c->x.link && is_shortage(undialled->error))
        for (int i = 0; i < server->backend_count; i++)
            spared += links_end(server, &server->backends[i], true);
    if (spared)
        c->x.link = link_dial(server, c->x.backend, undialled);
    return c->x.link ? 0 : undialled->error;
}

static bool connect_link(struct connection *c)
{
    struct exchange *x = &c->x;
    if (!x->fresh)
        x->link = link_take(x->backend);
    int error = x->link ? 0 : dial(c);
    x->times.connected = strand_now().ns;
    if (is_shortage(error))
        refuse_request(c, 503, "no descriptor or memory for a connection to a backend");
    return !error || fail_try(c, error == -ETIMEDOUT ? 504 : 502, x->undialled.why);
}

/* ---- waiting for the backend ------------------------------------------------------------------- */

bool awaits_asking(const struct connection *c)
{
    return c->x.request.has_expect && !c->x.heard && !c->x.body_sent;
}

/* Until when the backend has time. While it still gets the body there is no limit here: upload() has its own. */
static int64_t limit_of(const struct connection *c, int64_t begun, int64_t limit)
{
    int64_t ended = c->x.upload_ended, pause = strand_in(upload_pause).ns;
    if (ended)
        return (ended > begun ? ended : begun) + limit;
    return awaits_asking(c) && begun + limit < pause ? begun + limit : pause;
}

static int64_t wait_for_link(struct connection *c, int64_t limit)
{
    int64_t begun = strand_now().ns;
    for (;;) {
        bool uploads = !c->x.upload_ended; /* then that strand reads from the client */
        int64_t until = limit_of(c, begun, limit);
        strand_case cases[] = {
            strand_on_ready(c->x.link->stream.fd, STRAND_READABLE),
            strand_on_time((strand_time){until}),
            strand_on_ready(c->stream.fd, STRAND_GONE),
        };
        int happened = strand_select(cases, uploads ? 2 : 3, STRAND_SELECT_ORDERED);
        if (happened == 0)
            return 0;
        if (happened == 2)
            strand_throw(&CLIENT_GONE, "%s went away", c->peer);
        if (!uploads || (awaits_asking(c) && strand_now().ns >= begun + limit))
            return -ETIMEDOUT;
    }
}

int64_t read_link(struct connection *c, int64_t limit)
{
    struct link *link = c->x.link;
    char *to = link->in + link->end;
    size_t room = BUFFER_MOST - link->end;
    int64_t got = stream_read(&link->stream, to, room, limit < unwatched ? limit : unwatched);
    while (got == -ETIMEDOUT) {
        if (wait_for_link(c, limit) < 0)
            return -ETIMEDOUT;
        got = stream_read(&link->stream, to, room, unwatched);
    }
    if (got > 0)
        link->end += (size_t)got;
    return got;
}

/* ---- the answer -------------------------------------------------------------------------------- */

/* Nothing has come but the end. */
static bool lose_link(struct connection *c)
{
    if (!c->x.link->reused)
        return fail_try(c, 502, "the backend closed the connection without an answer");
    c->x.fresh = true;
    note(c, 502, "the backend closed an idle connection");
    return false;
}

/* From when the request was sent. A head that drips in has no more time than one that comes at once. */
static int64_t time_for_head(const struct connection *c)
{
    int64_t limit = c->server->limits.response, sent = c->x.upload_ended;
    return sent ? sent + limit - strand_now().ns : limit;
}

/* False: see lose_link. */
static bool read_head(struct connection *c)
{
    struct link *link = c->x.link;
    struct framing framing = {.place = STATUS_PROTOCOL, .most = FRAMING_MOST};
    for (size_t parsed = link->begin, used;; parsed += used) {
        enum framed framed = frame(&framing, link->in + parsed, link->end - parsed, &used);
        if (framed == FRAMED_WRONG)
            fail_backend(c, 502, "the head of the answer is malformed");
        if (framed == FRAMED_HEAD && parsed + used - link->begin <= HEAD_MOST) {
            parsed += used;
            int error = head_of_response(&c->x.response, (struct span){link->in + link->begin, parsed - link->begin});
            link->begin = parsed;
            if (error)
                fail_backend(c, 502, "the head of the answer is malformed");
            return true;
        }
        if (link->end - link->begin >= HEAD_MOST)
            fail_backend(c, 502, "the head of the answer is too long");
        int64_t left = time_for_head(c), got = left > 0 ? read_link(c, left) : -ETIMEDOUT;
        if (got == -ETIMEDOUT)
            fail_backend(c, 504, "the answer took too long");
        if (got <= 0 && !c->x.heard)
            return lose_link(c);
        if (got <= 0)
            fail_backend(c, 502, "the head of the answer was cut");
        c->x.heard = true;
    }
}

static bool is_interim(const struct connection *c)
{
    return c->x.response.status < 200 && !(c->x.response.status == 101 && c->x.tunnel);
}

/* 1xx: clients of HTTP/1.0 do not know these answers. */
static void pass_interim(struct connection *c)
{
    struct link *link = c->x.link;
    if (c->x.response.status == 101)
        fail_backend(c, 502, "the backend switched protocols unasked");
    if (c->x.request.minor) {
        put_response(c, false);
        flush(c);
    }
    memmove(link->in, link->in + link->begin, link->end - link->begin);
    link->end -= link->begin;
    link->begin = 0;
}

/* Interim answers are copied as they come; false: see lose_link. */
static bool read_answer(struct connection *c)
{
    for (int i = 0; i < INTERIM_MOST; i++) {
        if (!read_head(c))
            return false;
        if (!is_interim(c))
            return true;
        pass_interim(c);
    }
    fail_backend(c, 502, "there are too many interim answers");
}

static bool receive(struct connection *c)
{
    struct exchange *x = &c->x;
    if (!read_answer(c))
        return false;
    x->times.headed = strand_now().ns;
    x->status = x->response.status;
    if (x->response.status == 101)
        tunnel(c);
    else
        download(c);
    note_success(x->backend);
    return true;
}

/* ---- the request ------------------------------------------------------------------------------- */

/* The upload has taken all of the body, and is about to end. False: the backend takes no more. */
static bool join_upload(strand up)
{
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(upload_grace));
        strand_join(up);
        return true;
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
    }
    STRAND_END
    return false;
}

/* The body is not here yet, or its client wants to be asked for it. */
static bool send_and_receive(struct connection *c)
{
    STRAND_SCOPE(scope);
    strand up = strand_spawn_with(scope, STRAND_ATTR(.name = "upload"), upload, c, 0);
    bool answered = receive(c);
    if (!answered || !c->x.taken || !join_upload(up)) /* nobody wants the rest */
        strand_cancel(up, "the answer is complete");
    return answered;
}

static bool attempt(struct connection *c)
{
    struct exchange *x = &c->x;
    x->taken = !has_body(c);
    x->upload_ended = 0;
    put_request(c);
    bool all = x->taken || (!x->request.has_expect && take_body(c));
    if (sink_flush(&x->link->out) == -ETIMEDOUT)
        fail_backend(c, 504, "the backend takes the request too slowly");
    x->times.sent = strand_now().ns; /* an error of sending: there may be an answer all the same */
    if (!all)
        return send_and_receive(c);
    x->upload_ended = x->times.sent;
    return receive(c);
}

/* The backend's connection is left as the next request wants it. There is no upload any more: it has sent all, or it
 * was cut off at any place, and has not come to its end then. */
static bool is_clean(const struct connection *c)
{
    const struct exchange *x = &c->x;
    const struct head *response = &x->response;
    return x->upload_ended && !x->link->out.error && response->status >= 200 && x->link->begin == x->link->end &&
           !response->close && (response->minor || response->keep) && x->link->out.used == 0;
}

void exchange(struct connection *c)
{
    struct exchange *x = &c->x;
    for (;; x->tries++) {
        if (!choose(c))
            give_up(c);
        bool connected = connect_link(c);
        if (connected && attempt(c))
            break;
        bool again =
            x->tries < c->server->retries && !x->body_sent && !x->heard && (!connected || is_idempotent(&x->request));
        end_exchange(c, false);
        if (!again)
            give_up(c);
    }
    x->times.ended = strand_now().ns;
    end_exchange(c, is_clean(c));
}
