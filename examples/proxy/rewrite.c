/*
 * The heads that are sent on. Framing, Host and what concerns one connection are written here; all other fields are
 * copied, unless Connection lists them.
 */
#include "proxy.h"

#include <string.h>

static const char via[] = "Via: 1.1 strand\r\n";

static void put_span(struct sink *sink, struct span span)
{
    sink_put(sink, span.at, span.length);
}

static void put_field(struct sink *sink, const char *name, struct span value)
{
    sink_text(sink, name);
    put_span(sink, value);
    sink_text(sink, "\r\n");
}

static void put_length(struct sink *sink, uint64_t length)
{
    sink_text(sink, "Content-Length: ");
    sink_number(sink, length);
    sink_text(sink, "\r\n");
}

static bool is_listed(const struct head *head, struct span name)
{
    for (int i = 0; i < head->connection_count; i++) {
        struct span list = head->connections[i], element;
        while (next_element(&list, &element))
            if (element.length == name.length && strncasecmp(element.at, name.at, name.length) == 0)
                return true;
    }
    return false;
}

/* ---- requests -------------------------------------------------------------------------------- */

static void put_request_line(const struct connection *c, struct sink *sink)
{
    const struct head *head = &c->x.request;
    put_span(sink, head->method);
    sink_text(sink, " ");
    if (!head->target.length && span_is(head->method, "OPTIONS"))
        sink_text(sink, "*");
    else if (!head->target.length || (head->authority.length && *head->target.at != '/'))
        sink_text(sink, "/");
    put_span(sink, head->target);
    sink_text(sink, " HTTP/1.1\r\n");
}

/* The host that the client has asked for; a URL's counts more. */
static struct span host_of(const struct connection *c)
{
    const struct head *head = &c->x.request;
    const char *name = c->x.backend->name;
    return head->authority.length ? head->authority : head->has_host ? head->host : (struct span){name, strlen(name)};
}

/* The values that came, with a comma behind each: a list of which this proxy writes the last element. */
static void put_earlier(const struct connection *c, struct sink *sink, enum field field)
{
    struct span fields = c->x.request.fields, name, value;
    while (c->server->behind && next_field(&fields, &name, &value))
        if (value.length && field_named(name) == field) {
            put_span(sink, value);
            sink_text(sink, ", ");
        }
}

/* RFC 7239: an address of IPv6 has brackets, and what has colons is quoted. */
static void put_forwarded(const struct connection *c, struct sink *sink)
{
    struct span host = host_of(c);
    bool is_six = strchr(c->address, ':');
    sink_text(sink, "Forwarded: ");
    put_earlier(c, sink, FORWARDED);
    sink_text(sink, is_six ? "for=\"[" : "for=");
    sink_text(sink, c->address);
    sink_text(sink, is_six ? "]\"" : "");
    if (host.length) {
        sink_text(sink, ";host=\"");
        put_span(sink, host);
        sink_text(sink, "\"");
    }
    sink_text(sink, c->stream.tls ? ";proto=https\r\nX-Forwarded-For: " : ";proto=http\r\nX-Forwarded-For: ");
    put_earlier(c, sink, FORWARDED_FOR);
    sink_text(sink, c->address);
    sink_text(sink, "\r\n");
    if (!c->server->behind)
        sink_text(sink, c->stream.tls ? "X-Forwarded-Proto: https\r\n" : "X-Forwarded-Proto: http\r\n");
}

/* Programs of CGI take '_' for '-', so by that a client could write what the proxy alone has to say. */
static bool is_sent_on(const struct connection *c, struct span name)
{
    enum field field = field_named(name);
    if (memchr(name.at, '_', name.length))
        return false;
    return field == OTHER || (field == EXPECT && c->x.request.has_expect) ||
           (field == FORWARDED_OTHER && c->server->behind);
}

/* An upgrade to anything but a WebSocket is not passed on: the proxy would not see the requests behind it. */
static bool asks_for_tunnel(const struct head *head)
{
    return head->upgrades && head->minor && span_is(head->upgrade, "websocket") && !head->chunked && !head->length;
}

void put_request(struct connection *c)
{
    struct head *head = &c->x.request;
    struct sink *sink = &c->x.link->out;
    struct span fields = head->fields, name, value;
    put_request_line(c, sink);
    put_field(sink, "Host: ", host_of(c));
    while (next_field(&fields, &name, &value))
        if (is_sent_on(c, name) && !(head->lists_others && is_listed(head, name)))
            sink_put(sink, name.at, (size_t)(fields.at - name.at));
    put_forwarded(c, sink);
    sink_text(sink, via);
    c->x.tunnel = asks_for_tunnel(head);
    if (c->x.tunnel)
        sink_text(sink, "Connection: upgrade\r\nUpgrade: websocket\r\n");
    sink->chunked = head->chunked;
    if (head->chunked)
        sink_text(sink, "Transfer-Encoding: chunked\r\n");
    else if (head->has_length)
        put_length(sink, head->length);
    sink_text(sink, "\r\n");
}

/* ---- responses ------------------------------------------------------------------------------- */

static void put_framing(struct connection *c, bool body)
{
    const struct head *head = &c->x.response;
    struct sink *sink = &c->out;
    sink->chunked = false;
    if (head->status < 200 || head->status == 204)
        return;
    if (head->has_length) {
        put_length(sink, head->length);
    } else if (body && c->x.request.minor) {
        sink_text(sink, "Transfer-Encoding: chunked\r\n");
        sink->chunked = true;
    } else if (body) {
        c->close = true; /* the end of the connection is the only one that a client of HTTP/1.0 knows */
    }
}

void put_response(struct connection *c, bool body)
{
    const struct head *head = &c->x.response;
    struct sink *sink = &c->out;
    struct span fields = head->fields, name, value;
    put_field(sink, "HTTP/1.1 ", head->status_line);
    while (next_field(&fields, &name, &value)) {
        enum field field = field_named(name);
        if (field != CONTENT_LENGTH && field != TRANSFER_ENCODING && field != CONNECTION && field != UPGRADE &&
            field != HOP && !(head->lists_others && is_listed(head, name)))
            sink_put(sink, name.at, (size_t)(fields.at - name.at));
    }
    sink_text(sink, via);
    put_framing(c, body);
    if (head->status == 101)
        sink_text(sink, "Connection: upgrade\r\nUpgrade: websocket\r\n");
    else if (head->status >= 200 && c->close)
        sink_text(sink, "Connection: close\r\n");
    else if (head->status >= 200 && !c->x.request.minor)
        sink_text(sink, "Connection: keep-alive\r\n");
    sink_text(sink, "\r\n");
}
