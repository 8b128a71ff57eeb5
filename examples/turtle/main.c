/*
 * The command line, and what the end of the picture means to it.
 */
#include "turtle.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAILED = 1, USAGE = 2, INTERRUPTED = 130 }; /* the last one as shells have it */

/* SDL, and what it calls, are written for the stacks of threads. */
enum { STACK = 1 << 20 };

/* ---- the end --------------------------------------------------------------------------------- */

/* The root, on the main thread. To close the window is a way of ending it like any other; but if the picture was to be
 * saved, and was not drawn, that is told. */
static void *run(void *arg)
{
    struct picture *picture = arg;
    strand_exception *e = strand_try(draw_picture, picture, NULL);
    bool drawn = picture->took != 0, closed = e && strand_exception_is(e, &CLOSED);
    int status = !e || (closed && (drawn || !picture->path)) ? EXIT_SUCCESS
                 : strand_exception_is(e, &STOPPED)          ? INTERRUPTED
                                                             : FAILED;
    if (e && !(closed && drawn))
        fprintf(stderr, "turtle: %s", strand_exception_text(e));
    if (e && !drawn && picture->steps)
        fprintf(stderr, " after %llu of %llu steps", (unsigned long long)picture->steps,
                (unsigned long long)picture->plan->whole.steps);
    if (e && !(closed && drawn))
        fprintf(stderr, "\n");
    strand_exception_release(e);
    return (void *)(intptr_t)status;
}

/* ---- the command line ------------------------------------------------------------------------ */

static void print_usage(void)
{
    printf(
        "usage: turtle [option...]\n"
        "\n"
        "Draws a curve in a window, which stays open until it is closed (or q or Escape is hit); space holds the pen\n"
        "still, and lets it go again. Exit status: 0; 1 a failure; 2 the command line; 130 Ctrl-C.\n"
        "\n"
        "  -c, --curve=NAME    which one (default %s):\n",
        curves[0].name);
    for (const struct curve *curve = curves; curve->name; curve++)
        printf("                      %-10s %s; depth %d unless told otherwise, %d at most\n", curve->name, curve->what,
               curve->depth, curve->most);
    printf("  -d, --depth=N       how deep it is\n"
           "  -s, --size=N        of the window, in pixels, 64 to 4096 (default 640)\n"
           "  -T, --turtles=N     how many walk at a time, each a part of it (default 4)\n"
           "  -t, --threads=N     threads for them (default: one per processor that may be used)\n"
           "  -S, --seconds=S     how long it takes at least (default 5); 0: as fast as it can be drawn\n"
           "  -o, --once          end when it is drawn\n"
           "  -f, --save=FILE     save the picture when it is drawn, as a BMP file\n"
           "  -h, --help          this text\n");
}

__attribute__((noreturn)) static void refuse_option(const char *name, const char *value)
{
    fprintf(stderr, "turtle: %s can't be %s\n", name, value);
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

static const struct curve *find_curve(const char *name)
{
    const struct curve *curve = curves;
    while (curve->name && strcmp(curve->name, name) != 0)
        curve++;
    if (!curve->name)
        refuse_option("--curve", name);
    return curve;
}

static void take_option(struct picture *picture, int option)
{
    switch (option) {
    case 'c':
        picture->curve = find_curve(optarg);
        break;
    case 'd':
        picture->depth = whole("--depth", optarg, 0, DEPTH_MOST);
        break;
    case 's':
        picture->size = whole("--size", optarg, 64, 4096);
        break;
    case 'T':
        picture->turtles = whole("--turtles", optarg, 1, TURTLES_MOST);
        break;
    case 't':
        picture->threads = whole("--threads", optarg, 1, 1024);
        break;
    case 'S':
        picture->seconds = number("--seconds", optarg, 0, 1e6);
        break;
    case 'o':
        picture->once = true;
        break;
    case 'f':
        picture->path = optarg;
        break;
    case 'h':
        print_usage();
        exit(fflush(stdout) != 0);
    default:
        fputs("Try turtle --help.\n", stderr);
        exit(USAGE);
    }
}

static void read_options(struct picture *picture, int argc, char **argv)
{
    static const struct option options[] = {
        {"curve", required_argument, NULL, 'c'},   {"depth", required_argument, NULL, 'd'},
        {"size", required_argument, NULL, 's'},    {"turtles", required_argument, NULL, 'T'},
        {"threads", required_argument, NULL, 't'}, {"seconds", required_argument, NULL, 'S'},
        {"once", no_argument, NULL, 'o'},          {"save", required_argument, NULL, 'f'},
        {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0},
    };
    for (int option; (option = getopt_long(argc, argv, "c:d:s:T:t:S:of:h", options, NULL)) != -1;)
        take_option(picture, option);
    if (optind < argc) {
        fprintf(stderr, "turtle: what is %s? Try turtle --help.\n", argv[optind]);
        exit(USAGE);
    }
    if (picture->depth < 0)
        picture->depth = picture->curve->depth;
    if (picture->depth > picture->curve->most) {
        fprintf(stderr, "turtle: --depth can't be %d: %s goes to %d\n", picture->depth, picture->curve->name,
                picture->curve->most);
        exit(USAGE);
    }
}

int main(int argc, char **argv)
{
    static struct plan plan;
    static struct picture picture = {
        .curve = curves,
        .depth = -1,
        .size = 640,
        .turtles = 4,
        .threads = STRAND_THREADS_ALLOWED,
        .seconds = 5,
        .plan = &plan,
    };
    read_options(&picture, argc, argv);
    return (int)(intptr_t)strand_run(STRAND_OPTIONS(.scheduler = "current", .stack_size = STACK), run, &picture);
}
