/*
 * The fuzzer's target for examples/proxy: the head of a request or of a response goes through the proxy's framing and
 * reading, and a head that is not refused is written as the proxy sends it on. What is sent on has to mean the same to
 * any reader: the proxy's own, which has to take it, and the parser of http-parser, which is laxer and another one. A
 * client that gets two readers to disagree about where a message ends smuggles a request. See docs/testing.md.
 *
 *     build/fuzz/heads FILE      runs that input once
 */
#include "../../../examples/common/framing.h"
#include "../../../examples/proxy/proxy.h"

#include <http_parser.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The first byte of an input. */
enum { RESPONSE = 1, BEHIND = 2, SECURE = 4, SIX = 8, WITH_BODY = 16, OLD_CLIENT = 32 };

static struct server server;
static struct backend backend = {.name = "backend:80"};
static struct link to_backend = {.backend = &backend};
static struct connection c = {.server = &server};

#define WRONG(what) (fprintf(stderr, "fuzz: %s\n", what), abort())

/* ---- what the proxy writes --------------------------------------------------------------------- */

static char out[8 * HEAD_MOST];
static size_t out_length;

/* They take the place of those of stream.c, which write to a socket. */
void sink_put(struct sink *sink, const char *bytes, size_t length)
{
    (void)sink;
    if (length > sizeof out - out_length)
        WRONG("what is sent on is much longer than what came");
    memcpy(out + out_length, bytes, length);
    out_length += length;
}

void sink_text(struct sink *sink, const char *text)
{
    sink_put(sink, text, strlen(text));
}

void sink_number(struct sink *sink, uint64_t number)
{
    char digits[24];
    sink_put(sink, digits, (size_t)snprintf(digits, sizeof digits, "%llu", (unsigned long long)number));
}

/* ---- another reader ---------------------------------------------------------------------------- */

/* What http-parser takes the head to mean. */
struct meaning {
    bool whole, chunked;
    uint64_t length; /* UINT64_MAX: none */
};

static int at_end(http_parser *parser)
{
    struct meaning *meaning = parser->data;
    *meaning = (struct meaning){true, (parser->flags & F_CHUNKED) != 0, parser->content_length};
    return 1; /* no body comes */
}

/* Returns false if it refuses the head, as it does where it does not know a method. */
static bool read_otherwise(enum http_parser_type type, struct meaning *meaning)
{
    http_parser parser;
    http_parser_settings settings;
    http_parser_settings_init(&settings);
    http_parser_init(&parser, type);
    settings.on_headers_complete = at_end;
    *meaning = (struct meaning){0};
    parser.data = meaning;
    size_t taken = http_parser_execute(&parser, &settings, out, out_length);
    if (HTTP_PARSER_ERRNO(&parser) != HPE_OK && !parser.upgrade)
        return false;
    if (!meaning->whole || taken != out_length)
        WRONG("http-parser sees another end of the head");
    return true;
}

/* ---- the proxy's own reader --------------------------------------------------------------------- */

/* Reads a copy that ends where the head ends, so that the sanitizer finds a look behind it. */
static bool read_strictly(bool response, const char *bytes, size_t length, struct head *head, char **copy)
{
    struct framing framing = {.place = response ? STATUS_PROTOCOL : BLANK_LINE, .most = FRAMING_MOST};
    size_t used;
    enum framed framed = frame(&framing, bytes, length, &used);
    if (framed == FRAMED_WRONG && (framing.status < 400 || framing.status > 505))
        WRONG("a refusal has no status");
    if (framed != FRAMED_HEAD || used > HEAD_MOST)
        return false;
    *copy = malloc(used);
    if (!*copy)
        abort();
    memcpy(*copy, bytes, used);
    struct span text = {*copy, used};
    int status = response ? head_of_response(head, text) : head_of_request(head, text);
    if (status && (status < 400 || status > 505))
        WRONG("a head is refused without a status");
    return !status;
}

static bool same(struct span a, struct span b)
{
    return a.length == b.length && strncasecmp(a.at, b.at, a.length) == 0;
}

static bool lists(const struct head *head, struct span name)
{
    for (int i = 0; i < head->connection_count; i++) {
        struct span list = head->connections[i], element;
        while (next_element(&list, &element))
            if (same(element, name))
                return true;
    }
    return false;
}

/* Fields that the proxy writes. */
enum { OWN_HOST, OWN_ADDRESS, OWN_FORWARDED, OWN_PROTO, OWN_LENGTH, OWN_CODING, OWN_CONNECTION, OWN };

/* -1: none of them. */
static int own_field(struct span name)
{
    static const char *const names[OWN] = {"Host",           "X-Forwarded-For",   "Forwarded", "X-Forwarded-Proto",
                                           "Content-Length", "Transfer-Encoding", "Connection"};
    int i = OWN - 1;
    while (i >= 0 && !span_is(name, names[i]))
        i--;
    return i;
}

/* A proxy in front writes the protocol, if there is one; an answer may have fields of that name as it likes. */
static bool is_single(int own, bool response)
{
    return response ? own >= OWN_LENGTH : own != OWN_PROTO || !server.behind;
}

/* A head that two readers may take in two ways is refused. */
static void check_came(const struct head *came, bool response)
{
    int count[OWN + 1] = {0};
    struct span fields = came->fields, name, value;
    while (next_field(&fields, &name, &value))
        count[own_field(name) + 1]++;
    if (count[OWN_LENGTH + 1] + count[OWN_CODING + 1] > 1 || (!response && count[OWN_HOST + 1] > 1))
        WRONG("a head with two lengths or two hosts is not refused");
}

/* The fields that are sent on: none concerns one connection only, and the proxy's own are there once. */
static void check_fields(const struct head *sent, const struct head *came, bool response)
{
    int count[OWN] = {0};
    struct span fields = sent->fields, name, value;
    while (next_field(&fields, &name, &value)) {
        enum field field = field_named(name);
        int own = own_field(name);
        if (own >= 0 && ++count[own] > 1 && is_single(own, response))
            WRONG("a field that the proxy writes is there twice");
        if (field == HOP)
            WRONG("a field that concerns one connection is sent on");
        if (own < 0 && !span_is(name, "Via") && !span_is(name, "Upgrade") && lists(came, name))
            WRONG("a field that Connection lists is sent on");
        if (!response && memchr(name.at, '_', name.length))
            WRONG("a name with an underscore is sent on");
    }
    if (!response && (count[OWN_HOST] != 1 || count[OWN_ADDRESS] != 1 || count[OWN_FORWARDED] != 1))
        WRONG("Host or the client's address is not sent on");
}

/* ---- both --------------------------------------------------------------------------------------- */

static void check_request(const struct head *came)
{
    struct meaning meaning;
    struct head sent;
    char *copy = NULL;
    put_request(&c);
    if (!read_strictly(false, out, out_length, &sent, &copy))
        WRONG("the proxy would refuse what it sends");
    if (sent.chunked != came->chunked || sent.has_length != (came->has_length && !came->chunked) ||
        sent.length != came->length || !same(sent.method, came->method))
        WRONG("what is sent on has another body or another method");
    if (came->authority.length ? !same(sent.host, came->authority) : came->has_host && !same(sent.host, came->host))
        WRONG("what is sent on has another host");
    check_fields(&sent, came, false);
    if (read_otherwise(HTTP_REQUEST, &meaning) && !sent.upgrades &&
        (meaning.chunked != sent.chunked ||
         (sent.has_length ? meaning.length != sent.length : meaning.length != UINT64_MAX && meaning.length != 0)))
        WRONG("http-parser sees another body");
    free(copy);
}

static void check_response(const struct head *came, bool body)
{
    struct meaning meaning;
    struct head sent;
    char *copy = NULL;
    put_response(&c, body);
    if (!read_strictly(true, out, out_length, &sent, &copy))
        WRONG("the proxy would refuse what it answers");
    bool has_body = came->status >= 200 && came->status != 204;
    if (sent.status != came->status || sent.chunked != c.out.chunked || (sent.chunked && !body) ||
        sent.has_length != (came->has_length && has_body) || (sent.has_length && sent.length != came->length))
        WRONG("what is answered has another status or another body");
    check_fields(&sent, came, true);
    if (read_otherwise(HTTP_RESPONSE, &meaning) && has_body &&
        (meaning.chunked != sent.chunked || (sent.has_length && meaning.length != sent.length)))
        WRONG("http-parser sees another body of the answer");
    free(copy);
}

static void set_up(unsigned how)
{
    static char secure;
    server.behind = how & BEHIND;
    c.stream.tls = how & SECURE ? (void *)&secure : NULL; /* whether there is one is all that the writer asks */
    strcpy(c.address, how & SIX ? "2001:db8::1" : "192.0.2.1");
    memset(&c.x, 0, sizeof c.x);
    c.x.backend = &backend;
    c.x.link = &to_backend;
    c.x.request.minor = !(how & OLD_CLIENT);
    c.close = false;
    out_length = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    if (!length)
        return 0;
    bool response = *bytes & RESPONSE;
    char *copy = NULL;
    set_up(*bytes);
    struct head *head = response ? &c.x.response : &c.x.request;
    if (read_strictly(response, (const char *)bytes + 1, length - 1, head, &copy)) {
        check_came(head, response);
        if (response)
            check_response(head, *bytes & WITH_BODY);
        else
            check_request(head);
    }
    free(copy);
    return 0;
}
