/*
 * A connection: requests come in, one after the other or many at once, and are answered in their order. What can be
 * answered at once is gathered and sent by one call. Nothing is allocated for a request.
 */
#include "httpd.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { HEAD_MOST = 4096 + 512 /* with a Location */, NO_STATUS = 499 };

static const int64_t linger_most = STRAND_S;

/* ---- the parser's callbacks: they only take notes, and must not block (see parse) --------------- */

static struct connection *connection_of(http_parser *parser)
{
    return parser->data;
}

/* What comes in parts comes without gaps. */
static void extend(struct connection *c, struct span *span, const char *at, size_t length)
{
    if (!span->length)
        span->at = (uint32_t)(at - c->in);
    span->length += (uint32_t)length;
}

static int on_url(http_parser *parser, const char *at, size_t length)
{
    struct connection *c = connection_of(parser);
    extend(c, &c->request.url, at, length);
    return 0;
}

static enum header header_named(const char *name, size_t length)
{
    static const char *const names[HEADERS] = {
        [HOST] = "host",
        [RANGE] = "range",
        [IF_RANGE] = "if-range",
        [IF_MATCH] = "if-match",
        [IF_NONE_MATCH] = "if-none-match",
        [IF_MODIFIED_SINCE] = "if-modified-since",
        [IF_UNMODIFIED_SINCE] = "if-unmodified-since",
        [EXPECT] = "expect",
        [REFERER] = "referer",
        [USER_AGENT] = "user-agent",
    };
    for (int i = 0; i < HEADERS; i++)
        if (strlen(names[i]) == length && strncasecmp(names[i], name, length) == 0)
            return (enum header)i;
    return NO_HEADER;
}

/* The parser takes blanks in names, also before the colon, where others see another header, or none. */
static int on_header_field(http_parser *parser, const char *at, size_t length)
{
    struct request *request = &connection_of(parser)->request;
    if (memchr(at, ' ', length))
        request->status = 400;
    if (request->header != NO_HEADER || !request->name.length)
        request->name.length = 0;
    extend(connection_of(parser), &request->name, at, length);
    request->header = NO_HEADER;
    return 0;
}

static int on_header_value(http_parser *parser, const char *at, size_t length)
{
    struct connection *c = connection_of(parser);
    struct request *request = &c->request;
    if (request->name.length) {
        request->header = header_named(c->in + request->name.at, request->name.length);
        request->name.length = 0;
        if (request->header == HOST && request->hosts++)
            request->status = 400;
        if (request->header != NO_HEADER)
            request->headers[request->header] = (struct span){0};
    }
    if (request->header != NO_HEADER)
        extend(c, &request->headers[request->header], at, length);
    return 0;
}

static void trim(const struct connection *c, struct span *span)
{
    while (span->length && strchr(" \t", c->in[span->at + span->length - 1]))
        span->length--;
}

/* Only of what names, addresses and ports are written with; an empty one is legal. */
static bool is_host(const char *host, size_t length)
{
    static const char marks[] = "-._~%!$&'()*+,;=:[]";
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)host[i]) && !memchr(marks, host[i], sizeof marks - 1))
            return false;
    return true;
}

static int on_headers_complete(http_parser *parser)
{
    struct connection *c = connection_of(parser);
    struct request *request = &c->request;
    for (int i = 0; i < HEADERS; i++)
        trim(c, &request->headers[i]);
    const struct span host = request->headers[HOST];
    bool is_1_1 = parser->http_major == 1 && parser->http_minor == 1;
    if (parser->http_major != 1)
        request->status = 505;
    else if (request->status || (is_1_1 && !request->hosts) || !is_host(c->in + host.at, host.length))
        request->status = 400;
    else if (parser->method != HTTP_GET && parser->method != HTTP_HEAD)
        request->status = 405;
    else if (parser->content_length != UINT64_MAX && parser->content_length > BODY_MOST)
        request->status = 413;
    else if (request->headers[EXPECT].length)
        request->status = 417;
    return request->status ? 2 : 0; /* 2: nothing more of this connection is understood */
}

static int on_body(http_parser *parser, const char *at, size_t length)
{
    struct connection *c = connection_of(parser);
    struct request *request = &c->request;
    if (!request->body)
        request->head = (size_t)(at - c->in) - c->begin;
    request->body += length;
    if (request->body > BODY_MOST)
        request->status = 413;
    return request->status;
}

static int on_message_complete(http_parser *parser)
{
    connection_of(parser)->request.complete = true;
    http_parser_pause(parser, 1);
    return 0;
}

/* ---- input ----------------------------------------------------------------------------------- */

enum parsed { MORE_NEEDED, COMPLETE, BROKEN };

static enum parsed parse(struct connection *c)
{
    static const http_parser_settings settings = {
        .on_url = on_url,
        .on_header_field = on_header_field,
        .on_header_value = on_header_value,
        .on_headers_complete = on_headers_complete,
        .on_body = on_body,
        .on_message_complete = on_message_complete,
    };
    {
        STRAND_NO_SUSPEND; /* an exception that passed through the parser would leave it in disorder */
        c->parsed += http_parser_execute(&c->parser, &settings, c->in + c->parsed, c->end - c->parsed);
    }
    if (c->request.complete)
        http_parser_pause(&c->parser, 0);
    if (c->request.status)
        return BROKEN;
    if (c->request.complete)
        return COMPLETE;
    return HTTP_PARSER_ERRNO(&c->parser) != HPE_OK ? BROKEN : MORE_NEEDED;
}

static void next_request(struct connection *c)
{
    c->begin = c->parsed;
    c->request = (struct request){.header = NO_HEADER};
    c->started = false;
    if (c->begin == c->end)
        c->begin = c->parsed = c->end = 0;
    else
        c->deadline = strand_in(c->server->timeout); /* a part of the next one is here */
}

static void move(struct span *span, size_t by)
{
    span->at -= span->length ? (uint32_t)by : 0;
}

/* Makes room behind what has come of the current request; false: it is too long. */
static bool make_room(struct connection *c)
{
    size_t by = c->begin;
    if (c->request.body)
        c->end = c->parsed = c->begin + c->request.head; /* nobody reads bodies */
    if (!by || c->end < IN_MOST)
        return c->end < IN_MOST;
    memmove(c->in, c->in + by, c->end - by);
    c->begin = 0;
    c->parsed -= by;
    c->end -= by;
    move(&c->request.url, by);
    move(&c->request.name, by);
    for (int i = 0; i < HEADERS; i++)
        move(&c->request.headers[i], by);
    return true;
}

/* For those who end connections (room.c), and who read it in the other order: they never take a phase that has just
 * begun for one that has lasted. */
static void wait_in(struct connection *c, enum phase phase, int64_t since)
{
    c->since = since;
    c->phase = phase;
}

static int64_t read_before(struct connection *c, strand_time deadline)
{
    STRAND_DEADLINE(deadline);
    return strand_read(c->fd, c->in + c->end, IN_MOST - c->end);
}

/* False: the connection is over, or nothing has come and the server drains: what has come already can still be read
 * from a side that is shut down. */
static bool read_more(struct connection *c)
{
    bool fresh = c->begin == c->end;
    strand_time deadline = fresh ? strand_in(c->server->patience) : c->deadline;
    wait_in(c, fresh ? IDLE : READING, deadline.ns - (fresh ? c->server->patience : c->server->timeout));
    if (fresh && c->server->draining)
        strand_shutdown(c->fd, 0);
    int64_t got = read_before(c, deadline);
    if (got <= 0)
        return false;
    if (fresh) {
        c->deadline = strand_in(c->server->timeout);
        wait_in(c, READING, c->deadline.ns - c->server->timeout);
    }
    c->end += (size_t)got;
    return true;
}

const char *header_of(struct connection *c, enum header header)
{
    struct span span = c->request.headers[header];
    if (!span.length)
        return "";
    c->in[span.at + span.length] = '\0'; /* was the end of the line, or a blank before it */
    return c->in + span.at;
}

/* ---- output ---------------------------------------------------------------------------------- */

static void write_out(struct connection *c, const char *bytes, size_t length)
{
    c->phase = WRITING;
    STRAND_DEADLINE(strand_in(c->server->timeout));
    if (strand_write_all(c->fd, bytes, length) < 0)
        strand_throw(&CLIENT_GONE, "%s went away", c->peer);
}

/* Answers are done when the system has them. */
static void count_served(struct connection *c)
{
    c->server->served += c->answered;
    c->owed -= c->answered;
    c->answered = 0;
}

void flush(struct connection *c)
{
    if (c->used) {
        size_t used = c->used;
        c->used = 0;
        write_out(c, c->out, used);
    }
    if (c->answered)
        count_served(c);
}

static const char *date(struct connection *c)
{
    time_t now = time(NULL);
    struct tm tm;
    if (now != c->second) {
        c->second = now;
        strftime(c->date, sizeof c->date, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now, &tm));
    }
    return c->date;
}

/* There is room: HEAD_MOST. printf would take as long as all the rest of a small answer. */
static void put(struct connection *c, const char *text)
{
    size_t length = strlen(text);
    memcpy(c->out + c->used, text, length);
    c->used += length;
}

static void put_number(struct connection *c, uint64_t number)
{
    char digits[24], *at = digits + sizeof digits - 1;
    *at = '\0';
    do
        *--at = (char)('0' + number % 10);
    while (number /= 10);
    put(c, at);
}

static void put_head(struct connection *c, const struct answer *answer)
{
    if (OUT_MOST - c->used < HEAD_MOST)
        flush(c);
    bool keep = !c->close && !c->server->draining;
    c->close = !keep;
    put(c, "HTTP/1.1 ");
    put_number(c, (uint64_t)answer->status);
    put(c, " ");
    put(c, http_status_str((enum http_status)answer->status));
    put(c, "\r\nServer: strand\r\nDate: ");
    put(c, date(c));
    if (answer->status != 304) {
        put(c, "\r\nContent-Type: ");
        put(c, answer->type ? answer->type : "text/plain; charset=utf-8");
        put(c, "\r\nContent-Length: ");
        put_number(c, answer->length);
    }
    put(c, "\r\n");
    put(c, answer->extra ? answer->extra : "");
    put(c, !keep ? "Connection: close\r\n\r\n" : c->parser.http_minor == 0 ? "Connection: keep-alive\r\n\r\n" : "\r\n");
    c->started = true;
}

void answer_sent(struct connection *c, int status, uint64_t length)
{
    c->answered++;
    c->logged = true;
    log_request(c, status, length);
}

void answer(struct connection *c, const struct answer *answer)
{
    size_t length = c->parser.method == HTTP_HEAD && c->request.url.length ? 0 : answer->length;
    put_head(c, answer);
    if (length <= OUT_MOST - c->used) {
        memcpy(c->out + c->used, answer->body, length);
        c->used += length;
    } else {
        flush(c);
        write_out(c, answer->body, length);
    }
    answer_sent(c, answer->status, length);
}

void answer_status(struct connection *c, int status, const char *extra)
{
    char text[64];
    int length = snprintf(text, sizeof text, "%d %s\n", status, http_status_str((enum http_status)status));
    answer(c, &(struct answer){.status = status, .extra = extra, .body = text, .length = (size_t)length});
}

void send_head(struct connection *c, const struct answer *answer)
{
    put_head(c, answer);
    flush(c);
}

/* ---- a request ------------------------------------------------------------------------------- */

static int digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* In place. False: what is no encoding, or a zero byte. */
static bool decode(char *path)
{
    char *to = path;
    for (const char *from = path; *from; from++) {
        if (*from != '%') {
            *to++ = *from;
            continue;
        }
        int high = digit(from[1]), low = high < 0 ? -1 : digit(from[2]);
        if (low < 0 || !(high | low))
            return false;
        *to++ = (char)(high << 4 | low);
        from += 2;
    }
    *to = '\0';
    return true;
}

struct span path_span(const struct connection *c)
{
    struct span path = c->request.url;
    const char *text = c->in + path.at;
    size_t skipped = 0;
    if (path.length > 7 && strncasecmp(text, "http://", 7) == 0) /* as a proxy gets it */
        for (skipped = 7; skipped < path.length && !strchr("/?#", text[skipped]);)
            skipped++;
    path.at += (uint32_t)skipped;
    path.length -= (uint32_t)skipped;
    for (uint32_t i = 0; i < path.length; i++)
        if (text[skipped + i] == '?' || text[skipped + i] == '#')
            path.length = i;
    return path;
}

/* The path, decoded, and the query, NULL for none, into `path`, which has room for the URL and for two marks of ends.
 * False: it makes no sense. */
static bool split_url(struct connection *c, char *path, const char **query)
{
    const struct span url = c->request.url, span = path_span(c);
    size_t length = span.length, rest = url.at + url.length - (span.at + span.length);
    memcpy(path, c->in + span.at, length);
    memcpy(path + length + 1, c->in + span.at + length, rest);
    path[length] = path[length + 1 + rest] = '\0';
    *query = rest && path[length + 1] == '?' ? path + length + 2 : NULL;
    path[length + 1 + strcspn(path + length + 1, "#")] = '\0';
    if (!length && span.at > url.at) /* nothing but a host */
        return path[0] = '/', path[1] = '\0', true;
    return path[0] == '/' && decode(path);
}

enum { URL_MOST = 4096 };

static void work(struct connection *c)
{
    char path[URL_MOST + 2];
    const char *query;
    c->phase = WORKING;
    if (!http_should_keep_alive(&c->parser))
        c->close = true;
    if (c->request.url.length > URL_MOST)
        answer_status(c, 414, NULL);
    else if (!split_url(c, path, &query))
        answer_status(c, 400, NULL);
    else if (!answer_page(c, path, query))
        answer_file(c, path, query);
}

static void begin_answer(struct connection *c)
{
    c->server->begun++;
    c->owed++;
    c->logged = false;
}

/* Whether what has come begins as a request does, be it with a method that nobody knows. */
static bool begins_with_method(const struct connection *c)
{
    size_t at = c->begin;
    while (at < c->end && c->in[at] >= 'A' && c->in[at] <= 'Z')
        at++;
    return at > c->begin && (at == c->end || c->in[at] == ' ');
}

static int status_of_broken(const struct connection *c)
{
    enum http_errno error = HTTP_PARSER_ERRNO(&c->parser);
    if (c->request.status)
        return c->request.status;
    return error == HPE_INVALID_VERSION                           ? 505
           : error == HPE_INVALID_METHOD && begins_with_method(c) ? 501
           : error == HPE_HEADER_OVERFLOW                         ? 431
                                                                  : 400;
}

/* Until the client ends, or the time is over: one that goes on sending does not get more of it. */
static void discard(struct connection *c)
{
    strand_time end = strand_in(linger_most);
    STRAND_DEADLINE(end);
    wait_in(c, LINGERING, end.ns - linger_most);
    while (strand_read(c->fd, c->in, sizeof c->in) > 0)
        continue;
}

/* The client may still be sending what nobody wants: the rest of a request that was refused, or more requests than are
 * answered. It is told that this is the end, and listened to: closing at once would reset the connection, and take the
 * answer back. */
static void linger(struct connection *c)
{
    strand_shutdown(c->fd, 1);
    STRAND_TRY {
        discard(c);
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
    }
    STRAND_END
}

/* The last answer. */
static void finish(struct connection *c)
{
    flush(c);
    linger(c);
}

static void refuse(struct connection *c, int status)
{
    begin_answer(c);
    c->close = true;
    c->server->refused++;
    answer_status(c, status, status == 405 ? "Allow: GET, HEAD\r\n" : NULL);
    finish(c);
}

static void talk(struct connection *c)
{
    while (!c->close) {
        switch (parse(c)) {
        case COMPLETE:
            begin_answer(c);
            work(c);
            next_request(c);
            break;
        case BROKEN:
            refuse(c, status_of_broken(c));
            return;
        case MORE_NEEDED:
            flush(c);
            if (!make_room(c)) {
                refuse(c, c->request.url.length > URL_MOST ? 414 : 431);
                return;
            }
            if (!read_more(c))
                return;
        }
    }
    finish(c);
}

/* Too slow: to send its request, to take its answer, or we are too slow to find one. */
static void time_out(struct connection *c)
{
    if (c->phase == READING) {
        refuse(c, 408);
    } else if (c->phase == WORKING && !c->started) {
        c->close = true;
        answer_status(c, 503, NULL);
        c->answered--; /* it is cut all the same */
        finish(c);
    }
}

static void talk_in_time(struct connection *c)
{
    STRAND_TRY {
        talk(c);
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        time_out(c);
    }
    STRAND_END
}

/* ---- the strand ------------------------------------------------------------------------------ */

/* On whatever way the strand ends. */
static void end_connection(struct connection **at)
{
    struct connection *c = *at;
    struct server *server = c->server;
    server->cut += c->owed;
    if (c->owed && !c->logged)
        log_request(c, NO_STATUS, 0);
    delist(c);
    strand_close(c->fd);
    free(c);
}

void *serve_connection(void *arg)
{
    struct connection *c __attribute__((cleanup(end_connection))) = arg;
    http_parser_init(&c->parser, HTTP_REQUEST);
    c->parser.data = c;
    c->phase = WORKING;
    next_request(c);
    enlist(c);
    STRAND_TRY {
        talk_in_time(c);
    }
    STRAND_CATCH(&CLIENT_GONE, e) {
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
    }
    STRAND_END
    return NULL;
}
