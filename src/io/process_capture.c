/*
 * Running a process for its output: strand_process_capture. It is written with the public interface.
 */
#include "process.h"

#include "../../include/strand/exception.h"
#include "../../include/strand/io.h"
#include "../../include/strand/pool.h"
#include "../../include/strand/select.h"

#include "../strand/interrupt.h"
#include "../strand/misuse.h"
#include "../strand/sized.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { READ_FIRST = 4096, PIPE_MOST = 64 * 1024 };
#define CAPTURE_MOST ((size_t)64 << 20)
#define LINGER_USUAL STRAND_S

/* One captured stream. On the heap: two strands use it. */
struct taker {
    int fd; /* -1: not captured */
    char *bytes;
    size_t size, room, most;
    int error; /* a negated errno code: the process was stopped because of it */
    strand process;
};

struct feeder {
    int fd; /* -1: no input */
    const char *bytes;
    size_t size;
    int error; /* as in a taker */
    strand process;
};

struct capture {
    struct feeder input;
    struct taker output, errors;
    int64_t linger_ns;
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)strand_close(*fd);
    *fd = -1;
}

static void release(struct capture **capture)
{
    if (!*capture)
        return;
    close_fd(&(*capture)->input.fd);
    close_fd(&(*capture)->output.fd);
    close_fd(&(*capture)->errors.fd);
    free((*capture)->output.bytes);
    free((*capture)->errors.bytes);
    free(*capture);
}

/* Makes room for one more byte at least, and for the 0 byte. Returns 0 or -ENOMEM. */
static int grow(struct taker *taker)
{
    if (taker->size + 1 < taker->room)
        return 0;
    size_t room = taker->room ? taker->room * 2 : READ_FIRST;
    char *bytes = realloc(taker->bytes, room);
    if (!bytes)
        return -ENOMEM;
    taker->bytes = bytes;
    taker->room = room;
    bytes[taker->size] = '\0';
    return 0;
}

/* Reads once. Returns whether there may be more. */
static bool take_some(struct taker *taker)
{
    if ((taker->error = grow(taker)))
        return false;
    int64_t got = strand_read(taker->fd, taker->bytes + taker->size, taker->room - taker->size - 1);
    taker->size += got > 0 ? (size_t)got : 0;
    taker->bytes[taker->size] = '\0';
    if (got < 0)
        taker->error = (int)got;
    else if (taker->size > taker->most)
        taker->error = -EFBIG;
    return got > 0 && !taker->error;
}

static void *take(void *arg)
{
    struct taker *taker = arg;
    while (take_some(taker))
        ;
    if (taker->error)
        strand_cancel(taker->process, "its output cannot be read");
    close_fd(&taker->fd);
    return NULL;
}

/* The process may close its input at any time. */
static void *feed(void *arg)
{
    struct feeder *feeder = arg;
    int64_t put = strand_write_all(feeder->fd, feeder->bytes, feeder->size);
    if (put < 0 && put != -EPIPE) {
        feeder->error = (int)put;
        strand_cancel(feeder->process, "its input cannot be written");
    }
    close_fd(&feeder->fd);
    return NULL;
}

/* The process has ended: waits for the end of its output, but for other processes that hold it open not for long. */
static void linger(strand reader, strand_time until)
{
    strand_case cases[] = {strand_on_end(reader), strand_on_time(until)};
    (void)strand_select(cases, 2, STRAND_SELECT_ORDERED);
}

/* Takes what is there already, when the reader has been cancelled: what a pipe may hold, and no more, because another
 * process may write all the time. */
static void drain(struct taker *taker)
{
    size_t begun = taker->size;
    strand_case ready = strand_on_ready(taker->fd, STRAND_READABLE);
    while (taker->fd >= 0 && !taker->error && taker->size - begun < PIPE_MOST &&
           strand_select(&ready, 1, STRAND_SELECT_NOW) == 0)
        if (!take_some(taker))
            close_fd(&taker->fd);
}

static void run(struct capture *capture, const strand_process_attr *attr, strand_process_end *end)
{
    STRAND_SCOPE(scope);
    strand readers[2];
    int count = 0;
    strand process = strand_process_start(scope, attr);
    capture->input.process = capture->output.process = capture->errors.process = process;
    if (capture->input.fd >= 0)
        strand_spawn(scope, feed, &capture->input);
    if (capture->output.fd >= 0)
        readers[count++] = strand_spawn(scope, take, &capture->output);
    if (capture->errors.fd >= 0)
        readers[count++] = strand_spawn(scope, take, &capture->errors);
    strand_process_join(process, end);
    strand_time until = strand_in(capture->linger_ns);
    for (int i = 0; i < count; i++)
        linger(readers[i], until);
    strand_scope_cancel(scope, "the process has ended");
}

__attribute__((noreturn)) static void fail(int error, const char *what, size_t bytes)
{
    strand_throw_with(&STRAND_SYSTEM, STRAND_THROW_INFO(.code = error), "strand_process_capture: %s %zu bytes", what,
                      bytes);
}

static void check(const struct taker *taker)
{
    if (taker->error == -EFBIG)
        fail(-EFBIG, "the process has written more than", taker->most);
    if (taker->error)
        fail(taker->error, "reading the output failed after", taker->size);
}

/* Captures a stream that is inherited. */
static void redirect(strand_stdio *stream, int *ours)
{
    if (stream->kind == STRAND_STDIO_INHERIT)
        *stream = (strand_stdio){.kind = STRAND_STDIO_PIPE, .ours = ours};
}

static struct capture *make(const strand_capture_attr *attr)
{
    struct capture *capture = attr->input_size > SIZE_MAX / 2 ? NULL : calloc(1, sizeof *capture + attr->input_size);
    if (!capture)
        fail(-ENOMEM, "no memory for an input of", attr->input_size);
    capture->input.fd = capture->output.fd = capture->errors.fd = -1;
    capture->output.most = capture->errors.most = attr->max_size ? attr->max_size : CAPTURE_MOST;
    capture->linger_ns = attr->linger_ns ? attr->linger_ns : LINGER_USUAL;
    capture->input.size = attr->input_size;
    capture->input.bytes = attr->input_size ? memcpy(capture + 1, attr->input, attr->input_size) : NULL;
    return capture;
}

static void must_have_input(const strand_process_attr *attr, const strand_capture_attr *capture, const char *function)
{
    if (capture->input_size)
        must_be_there(capture->input, "input", function);
    if (capture->input && attr->in.kind != STRAND_STDIO_INHERIT)
        MISUSE(function, "", "both capture.input and attr.in are set");
}

/* The caller owns the text now. */
static char *hand_out(struct taker *taker, size_t *size)
{
    char *bytes = taker->bytes;
    taker->bytes = NULL;
    *size = taker->size;
    return bytes;
}

void strand_process_capture(const strand_process_attr *given, const strand_capture_attr *options, strand_captured *out)
{
    static const char function[] = "strand_process_capture";
    strand_process_attr attr = {.size = sizeof attr};
    strand_capture_attr capturing = {.size = sizeof capturing};
    struct thread *thread = must_be_strand(function);
    may_block(thread, current_of(thread), function);
    must_be_there(out, "strand_captured", function);
    must_have_size(out->size, offsetof(strand_captured, end.signal), "strand_captured", function);
    must_be_there(given, "strand_process_attr", function);
    must_have_size(given->size, offsetof(strand_process_attr, file), "strand_process_attr", function);
    sized_take(&attr, sizeof attr, given, given->size);
    attr.size = sizeof attr;
    if (options) {
        must_have_size(options->size, offsetof(strand_capture_attr, max_size), "strand_capture_attr", function);
        sized_take(&capturing, sizeof capturing, options, options->size);
    }
    must_have_input(&attr, &capturing, function);
    __attribute__((cleanup(release))) struct capture *capture = make(&capturing);
    if (capturing.input)
        attr.in = (strand_stdio){.kind = STRAND_STDIO_PIPE, .ours = &capture->input.fd};
    else if (attr.in.kind == STRAND_STDIO_INHERIT)
        attr.in.kind = STRAND_STDIO_NULL;
    redirect(&attr.out, &capture->output.fd);
    redirect(&attr.err, &capture->errors.fd);
    bool takes_output = attr.out.ours == &capture->output.fd, takes_errors = attr.err.ours == &capture->errors.fd;
    if ((takes_output && grow(&capture->output)) || (takes_errors && grow(&capture->errors)))
        fail(-ENOMEM, "no memory for", READ_FIRST);
    strand_captured got = {.size = sizeof got, .end.size = sizeof got.end};
    run(capture, &attr, &got.end);
    drain(&capture->output);
    drain(&capture->errors);
    check(&capture->output);
    check(&capture->errors);
    if (capture->input.error)
        fail(capture->input.error, "writing the input failed, of", capture->input.size);
    got.output = takes_output ? hand_out(&capture->output, &got.output_size) : NULL;
    got.errors = takes_errors ? hand_out(&capture->errors, &got.errors_size) : NULL;
    _Static_assert(offsetof(strand_captured, end) + sizeof got.end == sizeof got, "the end is last: both may grow");
    size_t size = out->size;
    sized_give(out, size, &got, sizeof got);
    out->end.size = size - offsetof(strand_captured, end);
}
