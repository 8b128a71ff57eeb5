/*
 * pipeline: the command line, and the exit status for each end of the pipeline.
 */
#include "pipeline.h"

#include "../common/options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FAILED = 1, LATE = 124, INTERRUPTED = 130 }; /* timeout(1) and shells use the last two for these ends */

void *must_have(void *memory)
{
    if (!memory)
        strand_must(-ENOMEM);
    return memory;
}

/* ---- the end --------------------------------------------------------------------------------- */

static int status_of(const strand_exception *e)
{
    if (!e)
        return EXIT_SUCCESS;
    return strand_exception_is(e, &STOPPED) ? INTERRUPTED : strand_exception_is(e, &STRAND_TIMED_OUT) ? LATE : FAILED;
}

/* Prints why the run ended and how far it came. */
static void report_end(const struct pipeline *p, const strand_exception *e)
{
    if (status_of(e) == LATE)
        fprintf(stderr, "pipeline: the deadline of %g s has passed", (double)p->deadline / (double)STRAND_S);
    else
        fprintf(stderr, "pipeline: %s", strand_exception_text(e));
    if (status_of(e) != FAILED)
        fprintf(stderr, " after %llu lines (%.1f MB)", (unsigned long long)p->lines, (double)p->bytes_read / 1e6);
    if (p->report_size)
        fprintf(stderr, "; %zu of the report's %zu bytes are written", p->report_written, p->report_size);
    fprintf(stderr, "\n");
}

/* The root strand. Every end of the run arrives here as an exception; scopes have joined all strands. */
static void *run(void *arg)
{
    struct pipeline *p = arg;
    strand_exception *e = strand_try(report, p, NULL);
    int status = status_of(e);
    if (e)
        report_end(p, e);
    else if (p->bad)
        fprintf(stderr, "pipeline: %llu bad records of %llu are left out\n", (unsigned long long)p->bad,
                (unsigned long long)p->lines);
    strand_exception_release(e);
    return (void *)(intptr_t)status;
}

/* ---- the command line ------------------------------------------------------------------------ */

static const char about[] =
    "Adds up an access log in the combined format, FILE or standard input: the number of requests and of bytes sent,\n"
    "for each path (without its query) with each status, and for each minute. Exit status: 0; 1 a bad record, or\n"
    "another failure; 2 the command line; 124 the deadline; 130 Ctrl-C.\n";

static void read_options(struct pipeline *p, int argc, char **argv)
{
    const struct option_row options[] = {
        {"threads", 't', "N", "threads (default: one per allowed CPU)", OPTION_NUMBER(p->threads, 1, 1024)},
        {"parsers", 'p', "N", "strands that parse (default 4)", OPTION_NUMBER(p->parsers, 1, WORKERS_MOST)},
        {"groupers", 'g', "N", "strands that add up (default 2)", OPTION_NUMBER(p->groupers, 1, WORKERS_MOST)},
        {"buffer", 'b', "N", "messages that a channel buffers (default 8); 0: sender and receiver meet",
         OPTION_NUMBER(p->buffer, 0, 100000)},
        {"deadline", 'd', "S", "seconds after which to give up (default: never)",
         OPTION_TIME(p->deadline, STRAND_S, 0.001L, 1e6L)},
        {"progress", 'P', "MS", "milliseconds between reports of progress (default 1000); 0: no reports",
         OPTION_TIME(p->progress, STRAND_MS, 0, 1e9L)},
        {"skip-bad", 's', NULL, "count bad records and leave them out", OPTION_FLAG(p->skip_bad)},
        {0},
    };
    const char *file = options_read(&(struct program){"pipeline", about, "FILE", options}, argc, argv);
    if (file && strcmp(file, "-") != 0)
        p->name = file;
}

int main(int argc, char **argv)
{
    static struct pipeline pipeline = {
        .fd = STDIN_FILENO,
        .threads = STRAND_THREADS_ALLOWED,
        .parsers = 4,
        .groupers = 2,
        .buffer = 8,
        .progress = STRAND_S,
    };
    read_options(&pipeline, argc, argv);
    if (pipeline.name)
        pipeline.fd = open(pipeline.name, O_RDONLY | O_CLOEXEC);
    else
        pipeline.name = "standard input";
    if (pipeline.fd < 0) {
        fprintf(stderr, "pipeline: %s: %s\n", pipeline.name, strerror(errno));
        return FAILED;
    }
    return (int)(intptr_t)strand_run(STRAND_OPTIONS(.threads = pipeline.threads), run, &pipeline);
}
