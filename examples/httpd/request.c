/*
 * What a request says: the parser's callbacks take notes of where its parts lie in the connection's input. The parser
 * is lenient, so some things are looked at here.
 */
#include "httpd.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* ---- the parser's callbacks: they only take notes, and must not block (see parse_request) --------------- */

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

/* Trailers come through the callbacks of headers. The server ignores them: they are no headers, and the input that a
 * span of theirs would lie in may be discarded in the middle of them. */
static int skip_trailer(struct request *request, size_t length)
{
    request->trailers += length;
    if (request->trailers > TRAILERS_MOST)
        request->status = 431;
    return request->status;
}

/* The parser takes blanks in names, also before the colon, where others see another header, or none. */
static int on_header_field(http_parser *parser, const char *at, size_t length)
{
    struct request *request = &connection_of(parser)->request;
    if (memchr(at, ' ', length))
        request->status = 400;
    if (request->head_ended)
        return skip_trailer(request, length);
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
    if (request->head_ended)
        return skip_trailer(request, length);
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
    request->head_ended = true;
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

enum parsed parse_request(struct connection *c)
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

const char *header_of(struct connection *c, enum header header)
{
    struct span span = c->request.headers[header];
    if (!span.length)
        return "";
    c->in[span.at + span.length] = '\0'; /* was the end of the line, or a blank before it */
    return c->in + span.at;
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
