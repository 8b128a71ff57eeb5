/*
 * A line of the access log, in the combined format.
 */
#include "httpd.h"

#include <time.h>

enum { LINE_MOST = 2048, LINE_REST = 64 };

static size_t append_text(char *line, size_t at, const char *text, size_t length)
{
    return log_append(line, at, LINE_MOST - LINE_REST + 4, text, length);
}

static size_t append_header(struct connection *c, char *line, size_t at, enum header header)
{
    struct span span = c->request.headers[header];
    at += (size_t)snprintf(line + at, 3, " \"");
    at = span.length ? append_text(line, at, c->in + span.at, span.length) : append_text(line, at, "-", 1);
    line[at++] = '"';
    return at;
}

void log_request(struct connection *c, int status, uint64_t length)
{
    struct log *log = &c->server->log;
    char line[LINE_MOST], date[40];
    struct tm tm;
    time_t now = time(NULL);
    if (log->fd < 0)
        return;
    strftime(date, sizeof date, "%d/%b/%Y:%H:%M:%S +0000", gmtime_r(&now, &tm));
    const struct span url = c->request.url;
    size_t at = (size_t)snprintf(line, sizeof line, "%s - - [%s] \"%s ", c->peer, date,
                                 url.length ? http_method_str((enum http_method)c->parser.method) : "-");
    at = append_text(line, at, c->in + url.at, url.length < 1024 ? url.length : 1024);
    at += (size_t)snprintf(line + at, 64, " HTTP/%d.%d\" %d %llu", c->parser.http_major, c->parser.http_minor, status,
                           (unsigned long long)length);
    at = append_header(c, line, at, REFERER);
    at = append_header(c, line, at, USER_AGENT);
    line[at++] = '\n';
    log_add(log, line, at, c->server->timeout, &c->server->cancelled);
}
