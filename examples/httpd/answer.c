/*
 * Answers: small ones are gathered, and sent by one call with others.
 */
#include "httpd.h"

#include <string.h>
#include <time.h>

enum { HEAD_MOST = 4096 + 512 /* with a Location */ };

/* Answers are done when the system has them. */
static void count_served(struct connection *c)
{
    c->server->served += c->answered;
    c->owed -= c->answered;
    c->answered = 0;
}

void flush(struct connection *c, bool more)
{
    if (c->used) {
        size_t used = c->used;
        c->used = 0;
        send_bytes(c, c->out, used, more);
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
        flush(c, true);
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
    size_t length = is_head(c) ? 0 : answer->length;
    put_head(c, answer);
    if (length <= OUT_MOST - c->used) {
        memcpy(c->out + c->used, answer->body, length);
        c->used += length;
    } else {
        flush(c, true);
        send_bytes(c, answer->body, length, false);
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
    flush(c, true);
}
