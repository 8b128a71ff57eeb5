/*
 * What a head says. framing.c has found it to be whole and written strictly: each line ends in CR LF, a name is a token
 * with a colon behind it, and there are no control characters. What is left to refuse is what could be understood in
 * two ways: two lengths, a length and a coding, a coding other than chunked, a host that is none.
 */
#include "proxy.h"

#include <string.h>
#include <strings.h>

/* ---- fields ---------------------------------------------------------------------------------- */

bool span_is(struct span span, const char *text)
{
    return strlen(text) == span.length && strncasecmp(span.at, text, span.length) == 0;
}

static struct span trim(struct span span)
{
    for (; span.length && (*span.at == ' ' || *span.at == '\t'); span.at++)
        span.length--;
    while (span.length && (span.at[span.length - 1] == ' ' || span.at[span.length - 1] == '\t'))
        span.length--;
    return span;
}

/* Takes what comes before `mark` off, and the mark; all, if there is none. */
static struct span take_until(struct span *from, char mark)
{
    const char *at = memchr(from->at, mark, from->length);
    struct span taken = {from->at, at ? (size_t)(at - from->at) : from->length};
    size_t skipped = taken.length + (at != NULL);
    from->at += skipped;
    from->length -= skipped;
    return taken;
}

bool next_field(struct span *fields, struct span *name, struct span *value)
{
    if (!fields->length)
        return false;
    struct span line = take_until(fields, '\n');
    line.length--; /* the CR */
    *name = take_until(&line, ':');
    *value = trim(line);
    return true;
}

bool next_element(struct span *list, struct span *element)
{
    while (list->length) {
        *element = trim(take_until(list, ','));
        if (element->length)
            return true;
    }
    return false;
}

static bool span_begins(struct span span, const char *text)
{
    return span.length >= strlen(text) && strncasecmp(span.at, text, strlen(text)) == 0;
}

/* Each field of each message is looked up, some of them more than once: most names differ in their lengths. */
#define NAMED(name, field)                                                                                             \
    {                                                                                                                  \
        name, sizeof(name) - 1, field                                                                                  \
    }

enum field field_named(struct span name)
{
    static const struct {
        const char *name;
        size_t length;
        enum field field;
    } names[] = {
        NAMED("host", HOST),
        NAMED("content-length", CONTENT_LENGTH),
        NAMED("transfer-encoding", TRANSFER_ENCODING),
        NAMED("connection", CONNECTION),
        NAMED("upgrade", UPGRADE),
        NAMED("expect", EXPECT),
        NAMED("forwarded", FORWARDED),
        NAMED("x-forwarded-for", FORWARDED_FOR),
        NAMED("x-real-ip", FORWARDED_OTHER),
        NAMED("keep-alive", HOP),
        NAMED("te", HOP),
        NAMED("trailer", HOP),
        NAMED("proxy", HOP), /* programs of CGI would take it for a variable of their own */
        NAMED("proxy-connection", HOP),
        NAMED("proxy-authenticate", HOP),
        NAMED("proxy-authorization", HOP),
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (name.length == names[i].length && strncasecmp(name.at, names[i].name, name.length) == 0)
            return names[i].field;
    return span_begins(name, "x-forwarded-") ? FORWARDED_OTHER : OTHER;
}

/* ---- what both have -------------------------------------------------------------------------- */

/* Each field is looked up among what is listed, so there is a limit to that. */
static bool note_connection(struct head *head, struct span value)
{
    struct span element;
    if (head->connection_count == CONNECTIONS_MOST)
        return false;
    head->connections[head->connection_count++] = value;
    while (next_element(&value, &element)) {
        if (head->listed++ == LISTED_MOST)
            return false;
        if (span_is(element, "close"))
            head->close = true;
        else if (span_is(element, "keep-alive"))
            head->keep = true;
        else if (span_is(element, "upgrade"))
            head->upgrades = true;
        else
            head->lists_others = true;
    }
    return true;
}

/* One length, of nothing but digits, that no reader takes for another one. */
static bool note_length(struct head *head, struct span value)
{
    enum { DIGITS_MOST = 19 };
    size_t at = 0;
    if (head->has_length || !value.length)
        return false;
    head->has_length = true;
    while (at + 1 < value.length && value.at[at] == '0')
        at++;
    if (value.length - at > DIGITS_MOST)
        return false;
    for (; at < value.length; at++) {
        if (value.at[at] < '0' || value.at[at] > '9')
            return false;
        head->length = head->length * 10 + (uint64_t)(value.at[at] - '0');
    }
    return head->length <= FRAMING_MOST;
}

/* Returns 0, or 400, or 501 for a coding that is not known. */
static int note_coding(struct head *head, struct span value)
{
    if (head->has_coding)
        return 400;
    head->has_coding = true;
    head->chunked = span_is(value, "chunked");
    return head->chunked ? 0 : 501;
}

static bool note_host(struct head *head, struct span value)
{
    bool first = !head->has_host;
    head->has_host = true;
    head->host = value;
    return first && is_host(value.at, value.length);
}

/* Any other expectation is refused by 417. */
static int note_expectation(struct head *head, struct span value)
{
    if (head->has_expect)
        return 400;
    head->has_expect = value.length && head->minor;
    return !head->has_expect || span_is(value, "100-continue") ? 0 : 417;
}

static int note_field(struct head *head, struct span name, struct span value)
{
    switch (field_named(name)) {
    case CONTENT_LENGTH:
        return note_length(head, value) ? 0 : 400;
    case TRANSFER_ENCODING:
        return note_coding(head, value);
    case CONNECTION:
        return note_connection(head, value) ? 0 : 400;
    case UPGRADE:
        head->upgrade = value;
        return 0;
    case HOST:
        return !head->method.at || note_host(head, value) ? 0 : 400;
    case EXPECT:
        return head->method.at ? note_expectation(head, value) : 0;
    default:
        return 0;
    }
}

/* Returns 0 or the greatest of the fields' statuses but for 400, which counts first. */
static int note_fields(struct head *head)
{
    struct span fields = head->fields, name, value;
    int status = 0;
    while (next_field(&fields, &name, &value)) {
        int error = note_field(head, name, value);
        if (error && status != 400)
            status = error;
    }
    if (head->has_coding && (head->has_length || head->minor == 0))
        return 400;
    return status;
}

/* The first line comes off. */
static struct span begin_head(struct head *head, struct span text)
{
    *head = (struct head){.text = text, .fields = text};
    struct span line = take_until(&head->fields, '\n');
    line.length--;
    head->fields.length -= 2; /* the empty line */
    return line;
}

/* ---- requests -------------------------------------------------------------------------------- */

static bool note_target(struct head *head)
{
    struct span target = head->target;
    if (memchr(target.at, '#', target.length))
        return false;
    if (*target.at == '/' || span_is(target, "*"))
        return *target.at == '/' || span_is(head->method, "OPTIONS");
    if (target.length < 8 || strncasecmp(target.at, "http", 4) != 0)
        return false;
    size_t scheme = strncasecmp(target.at, "https://", 8) == 0 ? 8 : 7;
    if (scheme == 7 && strncasecmp(target.at, "http://", 7) != 0)
        return false;
    struct span rest = {target.at + scheme, target.length - scheme};
    size_t length = 0;
    while (length < rest.length && rest.at[length] != '/' && rest.at[length] != '?')
        length++;
    head->authority = (struct span){rest.at, length};
    head->target = (struct span){rest.at + length, rest.length - length};
    return length && is_host(rest.at, length);
}

/* Returns 0, or the status for a version of which no more is known than that it has come. */
static int note_version(struct head *head, struct span version)
{
    if (version.length != 8 || version.at[5] != '1')
        return 505;
    head->minor = version.at[7] - '0';
    return 0;
}

int head_of_request(struct head *head, struct span text)
{
    while (text.length && *text.at == '\r') { /* empty lines before it */
        text.at += 2;
        text.length -= 2;
    }
    struct span line = begin_head(head, text);
    head->method = take_until(&line, ' ');
    head->target = take_until(&line, ' ');
    int version = note_version(head, line), status = version ? version : note_fields(head);
    if (version)
        return version;
    if (status != 400 && (!note_target(head) || (!head->has_host && head->minor != 0)))
        return 400;
    if (status != 400 && (span_is(head->method, "CONNECT") || span_is(head->method, "TRACE")))
        return 405;
    return status;
}

/* ---- responses ------------------------------------------------------------------------------- */

int head_of_response(struct head *head, struct span text)
{
    struct span line = begin_head(head, text);
    head->minor = line.at[7] - '0';
    head->status_line = (struct span){line.at + 9, line.length - 9};
    head->status = (line.at[9] - '0') * 100 + (line.at[10] - '0') * 10 + (line.at[11] - '0');
    return note_fields(head) ? 502 : 0;
}
