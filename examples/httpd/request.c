/*
 * What a request says. common/framing.c has found its head to be written as the standard wants it, and whole; the
 * parser takes it apart, and its callbacks take notes of where the parts lie in the connection's input.
 */
#include "httpd.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- the parser's callbacks: they only take notes, and must not block (see parse_head) ------------------ */

static struct connection *connection_of(http_parser *parser)
{
    return parser->data;
}

static struct span span_of(const struct connection *c, const char *at, size_t length)
{
    return (struct span){(uint32_t)(at - c->in), (uint32_t)length};
}

static int on_url(http_parser *parser, const char *at, size_t length)
{
    struct connection *c = connection_of(parser);
    c->request.url = span_of(c, at, length);
    return 0;
}

static enum header header_named(const char *name, size_t length)
{
    static const char *const names[HEADERS] = {
        [HOST] = "host",
        [CONTENT_LENGTH] = "content-length",
        [TRANSFER_ENCODING] = "transfer-encoding",
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

static int on_header_field(http_parser *parser, const char *at, size_t length)
{
    struct request *request = &connection_of(parser)->request;
    request->header = header_named(at, length);
    if (request->header < IF_MATCH && request->present[request->header])
        request->status = 400;
    if (request->header < HEADERS)
        request->present[request->header] = true;
    return 0;
}

static int on_header_value(http_parser *parser, const char *at, size_t length)
{
    struct connection *c = connection_of(parser);
    while (length && (at[length - 1] == ' ' || at[length - 1] == '\t'))
        length--;
    enum header header = c->request.header;
    bool goes_on = (header == IF_MATCH || header == IF_NONE_MATCH) && c->request.headers[header].length;
    if (header < HEADERS && !goes_on) /* next_line_of finds the other lines of a list */
        c->request.headers[header] = span_of(c, at, length);
    return 0;
}

static int on_headers_complete(http_parser *parser)
{
    (void)parser;
    return 1; /* the body is none of the parser's business */
}

/* ---- the head -------------------------------------------------------------------------------- */

static bool has(const struct connection *c, enum header header, const char *text)
{
    struct span span = c->request.headers[header];
    return strlen(text) == span.length && strncasecmp(c->in + span.at, text, span.length) == 0;
}

/* The length of the scheme of a whole URL, as a proxy gets it, with the slashes; 0 for a path. */
static size_t scheme_length(const struct connection *c)
{
    const struct span url = c->request.url;
    const char *text = c->in + url.at;
    return url.length > 7 && strncasecmp(text, "http://", 7) == 0    ? 7
           : url.length > 8 && strncasecmp(text, "https://", 8) == 0 ? 8
                                                                     : 0;
}

static bool hosts_are_right(const struct connection *c)
{
    const struct request *request = &c->request;
    const struct span host = request->headers[HOST], url = request->url, path = path_span(c);
    size_t authority = path.at - url.at, scheme = scheme_length(c);
    if (authority && (authority == scheme || !is_host(c->in + url.at + scheme, authority - scheme)))
        return false;
    if (authority && scheme == sizeof "https://" - 1 && !c->tls) /* RFC 9110, 7.4 */
        return false;
    return (request->present[HOST] || c->parser.http_minor == 0) && is_host(c->in + host.at, host.length);
}

/* Returns 0, or an error status if the end of the body can't be determined. The parser limits the digits of a number,
 * so it can't overflow. */
static int begin_body(struct connection *c)
{
    struct request *request = &c->request;
    const struct span length = request->headers[CONTENT_LENGTH];
    if (request->present[TRANSFER_ENCODING]) {
        if (request->present[CONTENT_LENGTH] || c->parser.http_minor == 0)
            return 400;
        if (!has(c, TRANSFER_ENCODING, "chunked"))
            return 501;
        frame_chunks(&request->framing);
    } else if (request->present[CONTENT_LENGTH]) {
        if (!length.length)
            return 400;
        for (uint32_t i = 0; i < length.length; i++)
            if (!isdigit((unsigned char)c->in[length.at + i]))
                return 400;
        uint64_t body = strtoull(c->in + length.at, NULL, 10); /* a CR or a blank ends it */
        if (body > BODY_MOST)
            return 413;
        frame_body(&request->framing, body);
    }
    return 0;
}

/* An expectation of HTTP/1.0 is ignored. */
static int status_of_head(struct connection *c)
{
    const struct request *request = &c->request;
    enum http_errno error = HTTP_PARSER_ERRNO(&c->parser);
    if (error == HPE_INVALID_METHOD)
        return 501;
    if (error == HPE_INVALID_VERSION || (error == HPE_OK && c->parser.http_major != 1))
        return 505;
    if (error != HPE_OK || request->status || !hosts_are_right(c))
        return 400;
    int status = begin_body(c);
    if (status == 400)
        return 400;
    if (c->parser.method != HTTP_GET && c->parser.method != HTTP_HEAD)
        return 405;
    bool expects = request->headers[EXPECT].length && c->parser.http_minor != 0;
    return status ? status : expects ? 417 : 0;
}

static void parse_head(struct connection *c)
{
    static const http_parser_settings settings = {
        .on_url = on_url,
        .on_header_field = on_header_field,
        .on_header_value = on_header_value,
        .on_headers_complete = on_headers_complete,
    };
    c->request.head = c->parsed - c->begin;
    {
        STRAND_NO_SUSPEND; /* an exception that passed through the parser would leave it in disorder */
        http_parser_execute(&c->parser, &settings, c->in + c->begin, c->request.head);
    }
    c->request.status = status_of_head(c);
}

/* ---- the request ------------------------------------------------------------------------------ */

void next_request(struct connection *c)
{
    c->begin = c->parsed;
    c->request = (struct request){.header = NO_HEADER, .framing.most = BODY_MOST};
    c->started = false;
    http_parser_init(&c->parser, HTTP_REQUEST);
    c->parser.data = c;
    if (c->begin == c->end)
        c->begin = c->parsed = c->end = 0;
    else
        c->deadline = strand_in(c->server->timeout); /* a part of the next one is here */
}

enum parsed parse_request(struct connection *c)
{
    struct request *request = &c->request;
    for (;;) {
        size_t used;
        enum framed framed = frame(&request->framing, c->in + c->parsed, c->end - c->parsed, &used);
        c->parsed += used;
        switch (framed) {
        case FRAMED_MORE:
            return MORE_NEEDED;
        case FRAMED_ALL:
            return COMPLETE;
        case FRAMED_WRONG:
            request->status = request->framing.status;
            return BROKEN;
        case FRAMED_HEAD:
            parse_head(c);
            if (request->status)
                return BROKEN;
        }
    }
}

static void move(struct span *span, size_t by)
{
    span->at -= span->length ? (uint32_t)by : 0;
}

bool make_room(struct connection *c)
{
    size_t by = c->begin;
    if (c->request.head)
        c->end = c->parsed = c->begin + c->request.head; /* nobody reads bodies */
    if (!by || c->end < IN_MOST)
        return c->end < IN_MOST;
    memmove(c->in, c->in + by, c->end - by);
    c->begin = 0;
    c->parsed -= by;
    c->end -= by;
    move(&c->request.url, by);
    for (int i = 0; i < HEADERS; i++)
        move(&c->request.headers[i], by);
    return true;
}

bool is_head(const struct connection *c)
{
    static const char method[] = "HEAD ";
    const char *at = c->in + c->begin, *end = c->in + c->end;
    while (at < end && (*at == '\r' || *at == '\n'))
        at++;
    return (size_t)(end - at) >= strlen(method) && memcmp(at, method, strlen(method)) == 0;
}

const char *header_of(struct connection *c, enum header header)
{
    struct span span = c->request.headers[header];
    if (!span.length)
        return "";
    c->in[span.at + span.length] = '\0'; /* was the end of the line, or a blank before it */
    return c->in + span.at;
}

const char *next_line_of(struct connection *c, enum header header, const char *value)
{
    char *at = c->in + (value - c->in), *end = c->in + c->begin + c->request.head;
    while ((at = memchr(at, '\n', (size_t)(end - at)))) {
        char *name = ++at, *colon = memchr(name, ':', (size_t)(end - name));
        if (!colon || header_named(name, (size_t)(colon - name)) != header)
            continue;
        at = colon + 1;
        size_t length = strcspn(at, "\r\n");
        at[length] = '\0'; /* was the end of the line */
        return at;
    }
    return NULL;
}

/* ---- its URL ---------------------------------------------------------------------------------- */

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
    size_t skipped = scheme_length(c);
    if (skipped)
        while (skipped < path.length && !strchr("/?#", text[skipped]))
            skipped++;
    path.at += (uint32_t)skipped;
    path.length -= (uint32_t)skipped;
    for (uint32_t i = 0; i < path.length; i++)
        if (text[skipped + i] == '?' || text[skipped + i] == '#')
            path.length = i;
    return path;
}

bool split_url(struct connection *c, char *path, const char **query)
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
