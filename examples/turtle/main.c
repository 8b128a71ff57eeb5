/*
 * turtle: the command line, and the exit status for each end of the picture.
 */
#include "turtle.h"

#include "../common/options.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAILED = 1, INTERRUPTED = 130 }; /* shells report a program that SIGINT has ended as 130 */

/* SDL and the libraries below it expect the large stack of a thread. */
enum { STACK = 1 << 20 };

/* ---- the end --------------------------------------------------------------------------------- */

/* The root strand, on the main thread. A user who closes the window ends the program with success, unless the program
 * had to save a picture and has not drawn it. */
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

static const char about[] =
    "Draws a curve in a window, which stays open until its user closes it (or hits q or Escape). Space stops the pen,\n"
    "and space starts it again. Exit status: 0; 1 a failure; 2 the command line; 130 Ctrl-C.\n";

/* The texts about --curve, of at most `size` bytes each: the names alone, and a line for each curve. */
static void describe_curves(char *names, char *help, size_t size)
{
    int used = 0, said = snprintf(help, size, "the curve (default %s):", curves[0].name);
    for (const struct curve *curve = curves; curve->name; curve++) {
        used += snprintf(names + used, size - (size_t)used, "%s ", curve->name);
        said += snprintf(help + said, size - (size_t)said, "\n%-10s %s; depth %d by default, %d at most", curve->name,
                         curve->what, curve->depth, curve->most);
        assert((size_t)used < size && (size_t)said < size);
    }
}

static const struct curve *find_curve(const char *name)
{
    const struct curve *curve = curves;
    while (strcmp(curve->name, name) != 0)
        curve++;
    return curve;
}

static void read_options(struct picture *picture, int argc, char **argv)
{
    char names[1024], help[1024];
    const char *curve = curves[0].name;
    const struct option_row options[] = {
        {"curve", 'c', "NAME", help, OPTION_CHOICE(curve, names)},
        {"depth", 'd', "N", "the depth of the curve", OPTION_NUMBER(picture->depth, 0, DEPTH_MOST)},
        {"size", 's', "N", "size of the window in pixels, 64 to 4096 (default 640)",
         OPTION_NUMBER(picture->size, 64, 4096)},
        {"turtles", 'T', "N", "turtles that walk at a time, each a part of the curve (default 4)",
         OPTION_NUMBER(picture->turtles, 1, TURTLES_MOST)},
        {"threads", 't', "N", "threads for the turtles (default: one per allowed CPU)",
         OPTION_NUMBER(picture->threads, 1, 1024)},
        {"seconds", 'S', "S", "the least time to draw the curve in (default 5); 0: as fast as possible",
         OPTION_NUMBER(picture->seconds, 0, 1e6L)},
        {"once", 'o', NULL, "end when the picture is drawn", OPTION_FLAG(picture->once)},
        {"save", 'f', "FILE", "save the picture when it is drawn, as a BMP file", OPTION_TEXT(picture->path)},
        {0},
    };
    const struct program turtle = {"turtle", about, NULL, options};
    describe_curves(names, help, sizeof help);
    options_read(&turtle, argc, argv);
    picture->curve = find_curve(curve);
    if (picture->depth < 0)
        picture->depth = picture->curve->depth;
    if (picture->depth > picture->curve->most)
        options_refuse(&turtle, "--depth can't be '%d'; %s takes a depth from 0 to %d", picture->depth, curve,
                       picture->curve->most);
}

int main(int argc, char **argv)
{
    static struct plan plan;
    static struct picture picture = {
        .depth = -1, /* the curve's own */
        .size = 640,
        .turtles = 4,
        .threads = STRAND_THREADS_ALLOWED,
        .seconds = 5,
        .plan = &plan,
    };
    read_options(&picture, argc, argv);
    return (int)(intptr_t)strand_run(STRAND_OPTIONS(.scheduler = "current", .stack_size = STACK), run, &picture);
}
