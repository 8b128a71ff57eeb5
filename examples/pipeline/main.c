/*
 * The command line, and what the end of the pipeline means to it.
 */
#include "pipeline.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FAILED = 1, USAGE = 2, LATE = 124, INTERRUPTED = 130 }; /* the last two as timeout(1) and shells have them */

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

/* Why it ended, and how far it came: to standard error. */
static void tell_end(const struct pipeline *p, const strand_exception *e)
{
    if (status_of(e) == LATE)
        fprintf(stderr, "pipeline: the deadline of %g s has passed", (double)p->deadline / (double)STRAND_S);
    else
        fprintf(stderr, "pipeline: %s", strand_exception_text(e));
    if (status_of(e) != FAILED)
        fprintf(stderr, " after %llu lines (%.1f MB)", (unsigned long long)p->lines, (double)p->bytes_read / 1e6);
    if (p->report_size)
        fprintf(stderr, "; of the report's %zu bytes %zu are written", p->report_size, p->report_written);
    fprintf(stderr, "\n");
}

/* The root. Every end is here: nothing was joined or closed by hand on the way. */
static void *run(void *arg)
{
    struct pipeline *p = arg;
    strand_exception *e = strand_try(report, p, NULL);
    int status = status_of(e);
    if (e)
        tell_end(p, e);
    else if (p->bad)
        fprintf(stderr, "pipeline: %llu bad records of %llu are left out\n", (unsigned long long)p->bad,
                (unsigned long long)p->lines);
    strand_exception_release(e);
    return (void *)(intptr_t)status;
}

/* ---- the command line ------------------------------------------------------------------------ */

static const char usage[] =
    "usage: pipeline [option...] [FILE]\n"
    "\n"
    "Adds up an access log in the combined format, FILE or standard input: for each path (without its query) with "
    "each\n"
    "status, and for each minute, how many requests there were and how many bytes they got. Exit status: 0; 1 a bad\n"
    "record, or another failure; 2 the command line; 124 the deadline; 130 Ctrl-C.\n"
    "\n"
    "  -t, --threads=N     threads (default: one per processor that may be used)\n"
    "  -p, --parsers=N     strands that parse (default 4)\n"
    "  -g, --groupers=N    strands that add up (default 2)\n"
    "  -b, --buffer=N      what a channel has room for (default 8); 0: sender and receiver meet\n"
    "  -d, --deadline=S    give up after so many seconds\n"
    "  -P, --progress=MS   how often to tell the progress (default 1000); 0: never\n"
    "  -s, --skip-bad      count bad records and leave them out\n"
    "  -h, --help          this text\n";

__attribute__((noreturn)) static void refuse_option(const char *name, const char *value)
{
    fprintf(stderr, "pipeline: %s can't be %s\n", name, value);
    exit(USAGE);
}

static double number(const char *name, const char *text, double least, double most)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= least && value <= most))
        refuse_option(name, text);
    return value;
}

static int whole(const char *name, const char *text, int least, int most)
{
    if (!*text || text[strspn(text, "0123456789")])
        refuse_option(name, text);
    return (int)number(name, text, least, most);
}

static void take_option(struct pipeline *p, int option)
{
    switch (option) {
    case 't':
        p->threads = whole("--threads", optarg, 1, 1024);
        break;
    case 'p':
        p->parsers = whole("--parsers", optarg, 1, WORKERS_MOST);
        break;
    case 'g':
        p->groupers = whole("--groupers", optarg, 1, WORKERS_MOST);
        break;
    case 'b':
        p->buffer = whole("--buffer", optarg, 0, 100000);
        break;
    case 'd':
        p->deadline = (int64_t)(number("--deadline", optarg, 0.001, 1e6) * (double)STRAND_S);
        break;
    case 'P':
        p->progress = whole("--progress", optarg, 0, 1000000000) * STRAND_MS;
        break;
    case 's':
        p->skip_bad = true;
        break;
    case 'h':
        exit(fputs(usage, stdout) < 0 || fflush(stdout) != 0);
    default:
        fputs("Try pipeline --help.\n", stderr);
        exit(USAGE);
    }
}

static void read_options(struct pipeline *p, int argc, char **argv)
{
    static const struct option options[] = {
        {"threads", required_argument, NULL, 't'},
        {"parsers", required_argument, NULL, 'p'},
        {"groupers", required_argument, NULL, 'g'},
        {"buffer", required_argument, NULL, 'b'},
        {"deadline", required_argument, NULL, 'd'},
        {"progress", required_argument, NULL, 'P'},
        {"skip-bad", no_argument, NULL, 's'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    for (int option; (option = getopt_long(argc, argv, "t:p:g:b:d:P:sh", options, NULL)) != -1;)
        take_option(p, option);
    if (argc - optind > 1) {
        fprintf(stderr, "pipeline: one file at a time: what is %s? Try pipeline --help.\n", argv[optind + 1]);
        exit(USAGE);
    }
    if (optind < argc && strcmp(argv[optind], "-") != 0)
        p->name = argv[optind];
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
