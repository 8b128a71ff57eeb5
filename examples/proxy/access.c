/*
 * A line of the access log. Times are in milliseconds from when the request began to come: it had a backend, a
 * connection to it, was sent, the answer's head was there, all of it was sent on.
 */
#include "proxy.h"

#include <string.h>
#include <time.h>

enum { LINE_MOST = 3072, TEXT_MOST = 2048, TARGET_MOST = 1024 };
#define NAME_MOST "300"

static void append(char *line, size_t *at, const char *text, size_t length)
{
    *at = log_append(line, *at, TEXT_MOST, text, length);
}

static double since(const struct times *times, int64_t instant)
{
    return instant ? (double)(instant - times->begun) / 1e6 : 0;
}

static size_t put_date(char *line)
{
    struct timespec now;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &now);
    size_t at = strftime(line, 32, "%Y-%m-%dT%H:%M:%S", gmtime_r(&now.tv_sec, &tm));
    return at + (size_t)sprintf(line + at, ".%03ldZ", now.tv_nsec / 1000000);
}

void log_exchange(struct connection *c)
{
    const struct exchange *x = &c->x;
    const struct head *head = &x->request;
    const struct times *t = &x->times;
    char line[LINE_MOST];
    if (c->server->log.fd < 0)
        return;
    size_t at = put_date(line);
    at += (size_t)sprintf(line + at, " %s \"", c->peer);
    append(line, &at, head->method.at ? head->method.at : "-", head->method.at ? head->method.length : 1);
    line[at++] = ' ';
    struct span target = head->target.at ? head->target : (struct span){"-", 1};
    append(line, &at, target.at, target.length < TARGET_MOST ? target.length : TARGET_MOST);
    at += (size_t)sprintf(line + at,
                          "\" %d bytes=%llu backend=%." NAME_MOST
                          "s retries=%d queued=%.3f connected=%.3f sent=%.3f head=%.3f total=%.3f end=\"",
                          x->status, (unsigned long long)c->out.data, x->name ? x->name : "-", x->tries,
                          since(t, t->queued), since(t, t->connected), since(t, t->sent), since(t, t->headed),
                          since(t, t->ended));
    const char *why = *x->why ? x->why : "ok";
    at = log_append(line, at, sizeof line - 2, why, strlen(why));
    line[at++] = '"';
    line[at++] = '\n';
    log_add(&c->server->log, line, at, c->server->limits.head, &c->server->cancelled);
}
