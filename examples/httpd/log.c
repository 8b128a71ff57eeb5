/*
 * The access log, in the combined format. A request adds its line to a buffer and goes on. When the disk is slower than
 * the requests, they wait: no line is lost.
 */
#include "httpd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LOG_MOST = 1 << 20, LINE_MOST = 2048 };

int log_open(struct log *log, const char *path)
{
    *log = (struct log){.fd = -1, .wake = {-1, -1}};
    if (!path)
        return 0;
    log->fd = strcmp(path, "-") == 0 ? dup(STDOUT_FILENO) : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (log->fd < 0)
        return -errno;
    pthread_mutex_init(&log->lock, NULL);
    log->lines = malloc(LOG_MOST);
    log->writing = malloc(LOG_MOST);
    return log->lines && log->writing ? strand_pipe(log->wake) : -ENOMEM;
}

void log_free(struct log *log)
{
    free(log->lines);
    free(log->writing);
    if (log->fd >= 0)
        close(log->fd);
}

struct batch {
    struct log *log;
    size_t used;
};

/* On a thread that may block. */
static void *write_batch(void *arg)
{
    const struct batch *batch = arg;
    struct log *log = batch->log;
    for (size_t done = 0; done < batch->used;) {
        ssize_t wrote = write(log->fd, log->writing + done, batch->used - done);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0) {
            log->error = errno;
            for (; done < batch->used; done++)
                log->lost += log->writing[done] == '\n';
            break;
        }
        done += (size_t)wrote;
    }
    return NULL;
}

static void write_lines(struct log *log)
{
    struct batch batch = {log, 0};
    pthread_mutex_lock(&log->lock);
    char *lines = log->lines;
    batch.used = log->used;
    log->lines = log->writing;
    log->writing = lines;
    log->used = 0;
    pthread_mutex_unlock(&log->lock);
    if (batch.used)
        strand_offload(write_batch, &batch);
}

void *log_write(void *arg)
{
    struct log *log = arg;
    char bytes[64];
    while (strand_read(log->wake[0], bytes, sizeof bytes) > 0)
        write_lines(log);
    write_lines(log);
    strand_close(log->wake[0]);
    return NULL;
}

void log_close(struct log *log)
{
    if (log->fd >= 0)
        strand_close(log->wake[1]);
}

/* False: the buffer is full. The writer is woken for the first line. */
static bool add(struct log *log, const char *line, size_t length)
{
    pthread_mutex_lock(&log->lock);
    bool fits = log->used + length <= LOG_MOST, first = log->used == 0;
    if (fits) {
        memcpy(log->lines + log->used, line, length);
        log->used += length;
    }
    pthread_mutex_unlock(&log->lock);
    if (fits && first)
        strand_write(log->wake[1], "", 1);
    return fits;
}

/* What comes from outside can't forge a line. */
static size_t append_safely(char *line, size_t at, const char *text, size_t length)
{
    for (size_t i = 0; i < length && at < LINE_MOST - 64; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (byte < 0x20 || byte >= 0x7f || byte == '"' || byte == '\\')
            at += (size_t)snprintf(line + at, 5, "\\x%02x", byte);
        else
            line[at++] = (char)byte;
    }
    return at;
}

static size_t append_header(struct connection *c, char *line, size_t at, enum header header)
{
    struct span span = c->request.headers[header];
    at += (size_t)snprintf(line + at, 3, " \"");
    at = span.length ? append_safely(line, at, c->in + span.at, span.length) : append_safely(line, at, "-", 1);
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
    at = append_safely(line, at, c->in + url.at, url.length < 1024 ? url.length : 1024);
    at += (size_t)snprintf(line + at, 64, " HTTP/%d.%d\" %d %llu", c->parser.http_major, c->parser.http_minor, status,
                           (unsigned long long)length);
    at = append_header(c, line, at, REFERER);
    at = append_header(c, line, at, USER_AGENT);
    line[at++] = '\n';
    STRAND_SHIELD; /* it has been answered: the line is owed */
    while (!add(log, line, at))
        strand_sleep(STRAND_MS);
}
