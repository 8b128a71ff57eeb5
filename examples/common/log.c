/*
 * A log. A strand adds its line to a buffer and goes on. When the disk is slower than the strands, they wait. A log
 * that takes nothing for as long as they have patience, such as a pipe that nobody reads, holds up nothing more: from
 * then on lines that find no room are counted as lost, until it takes some again.
 */
#define _GNU_SOURCE /* program_invocation_short_name */
#include "log.h"

#include <strand.h>
#include <strand/io.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOG_MOST = 1 << 20 };

static bool is_file(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

int log_open(struct log *log, const char *path)
{
    *log = (struct log){.fd = -1, .wake = {-1, -1}};
    if (!path)
        return 0;
    bool output = strcmp(path, "-") == 0;
    log->fd = output ? dup(STDOUT_FILENO) : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (log->fd < 0)
        return -errno;
    log->path = !output && is_file(log->fd) ? path : NULL;
    log->piece = is_file(log->fd) ? LOG_MOST : PIPE_BUF;
    pthread_mutex_init(&log->lock, NULL);
    log->lines = malloc(LOG_MOST);
    log->writing = malloc(LOG_MOST);
    return log->lines && log->writing ? strand_pipe(log->wake) : -ENOMEM;
}

/* On a thread that may block. */
static void *open_again(void *arg)
{
    const struct log *log = arg;
    int fd = open(log->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
    if (fd < 0 || !is_file(fd) || dup3(fd, log->fd, O_CLOEXEC) < 0)
        fprintf(stderr, "%s: %s can't be opened again: the log goes on in the old file\n",
                program_invocation_short_name, log->path);
    if (fd >= 0)
        close(fd);
    return NULL;
}

bool log_reopen(struct log *log)
{
    STRAND_TRY {
        if (log->path)
            strand_offload(open_again, log);
    }
    STRAND_CATCH(&STRAND_SYSTEM, e) {
        fprintf(stderr, "%s: the log goes on in the old file: %s\n", program_invocation_short_name,
                strand_exception_text(e));
    }
    STRAND_END
    return log->path;
}

static uint64_t count_lines(const char *text, size_t length)
{
    uint64_t lines = 0;
    for (size_t i = 0; i < length; i++)
        lines += text[i] == '\n';
    return lines;
}

void log_free(struct log *log)
{
    log->lost += count_lines(log->lines, log->used);
    free(log->lines);
    free(log->writing);
    if (log->fd >= 0)
        close(log->fd);
}

struct batch {
    struct log *log;
    size_t done, used;
    ssize_t wrote; /* at last, or a negated errno code */
};

/* On a thread that may block. */
static void *write_piece(void *arg)
{
    struct batch *batch = arg;
    struct log *log = batch->log;
    size_t left = batch->used - batch->done;
    batch->wrote = write(log->fd, log->writing + batch->done, left < log->piece ? left : log->piece);
    if (batch->wrote < 0)
        batch->wrote = -errno;
    return NULL;
}

/* On whatever way it is left. */
static void end_batch(const struct batch *batch)
{
    struct log *log = batch->log;
    pthread_mutex_lock(&log->lock);
    log->lost += count_lines(log->writing + batch->done, batch->used - batch->done);
    pthread_mutex_unlock(&log->lock);
}

static struct batch take_lines(struct log *log)
{
    pthread_mutex_lock(&log->lock);
    struct batch batch = {.log = log, .used = log->used};
    char *lines = log->lines;
    log->lines = log->writing;
    log->writing = lines;
    log->used = 0;
    pthread_mutex_unlock(&log->lock);
    return batch;
}

static void write_lines(struct log *log)
{
    struct batch batch __attribute__((cleanup(end_batch))) = take_lines(log);
    while (batch.done < batch.used) {
        int error = strand_wait_ready(log->fd, STRAND_WRITABLE);
        batch.wrote = error;
        if (!error)
            strand_offload(write_piece, &batch);
        if (batch.wrote >= 0) {
            batch.done += (size_t)batch.wrote;
            log->stuck = false;
        } else if (batch.wrote != -EINTR && batch.wrote != -EAGAIN) {
            log->error = (int)-batch.wrote;
            return;
        }
    }
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

static void lose_line(struct log *log)
{
    pthread_mutex_lock(&log->lock);
    log->lost++;
    pthread_mutex_unlock(&log->lock);
}

void log_add(struct log *log, const char *line, size_t length, int64_t patience, const _Atomic bool *hurry)
{
    strand_time end = strand_in(patience);
    STRAND_SHIELD; /* what has happened has its line, whatever interrupts the strand */
    while (!add(log, line, length)) {
        if (log->stuck || *hurry) {
            lose_line(log);
            return;
        }
        log->stuck = strand_now().ns >= end.ns;
        strand_sleep(STRAND_MS);
    }
}

bool log_takes(int fd)
{
    struct pollfd output = {.fd = fd, .events = POLLOUT};
    return poll(&output, 1, 0) > 0;
}

size_t log_append(char *line, size_t at, size_t most, const char *text, size_t length)
{
    for (size_t i = 0; i < length && at + 5 <= most; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (byte < 0x20 || byte >= 0x7f || byte == '"' || byte == '\\')
            at += (size_t)snprintf(line + at, 5, "\\x%02x", byte);
        else
            line[at++] = (char)byte;
    }
    return at;
}
