/*
 * turtle: curves that turtles draw, in a window, while they walk.
 *
 *     turtles, on a pool of workers --lines, a channel with little room--> the pen, on the main thread --> the window
 *
 * What it shows: a library that insists on the main thread. The run's first pool has the scheduler "current", which is
 * the thread that called strand_run, the program's main one; the strand there is the only one that calls SDL, and while
 * it waits, the thread sleeps. Strands on a pool of workers do all that takes time, and hand it over in chunks, so the
 * window always responds. They can't get far ahead, because the channel has little room: holding the pen still (space)
 * holds the turtles up as well.
 *
 * Closing the window, Ctrl-C and the end of the time are each an exception of the one strand that checks for them, and
 * leaving the scope by it cancels the turtles wherever they are.
 *
 * A curve is a word of letters, and rules that replace each letter by a word, again and again (an L-system): that is
 * how it grows deeper. The final effect of a letter, its steps and where it leads, is computed before (curve.c);
 * so a turtle can begin anywhere in the curve at once, and several walk parts of one curve at a time.
 *
 * Where to begin: pen.c, the main thread; then walk.c, the turtles; screen.c has the calls of SDL, curve.c the curves,
 * main.c the command line.
 */
#ifndef TURTLE_H
#define TURTLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <strand.h>
#include <strand/chan.h>
#include <strand/pool.h>

enum { HEADINGS_MOST = 16, LETTERS = 26, DEPTH_MOST = 24, BRACKETS_MOST = 4, TURTLES_MOST = 64 };
enum { CHUNK_MOST = 256, ROOM = 4, FRAMES_PER_S = 60 };

/* ---- curves ---------------------------------------------------------------------------------- */

/* F and G are a step forward, + and - a turn to the left and to the right, [ and ] go off and come back; all other
 * letters are there for the rules only. */
struct curve {
    const char *name, *what;
    const char *start; /* the word of depth 0 */
    struct rule {
        char letter;
        const char *word;
    } rules[3];
    int headings; /* a turn is one of so many of a full circle */
    int heading;  /* at the start; 0 is to the right */
    int depth, most;
};

/* The curves that there are; the last one has no name. */
extern const struct curve curves[];

struct place {
    double x, y; /* in steps; y goes up */
    int heading;
};

/* What a letter comes to at some depth, for a turtle that begins at (0, 0). */
struct motion {
    uint64_t steps;
    struct place end;
    double left, right, low, high; /* of all places on the way */
};

/* A curve of some depth: what all its letters come to, and where it lies in the window. */
struct plan {
    const struct curve *curve;
    int depth;
    struct motion whole;
    double scale, x, y; /* pixels per step; where (0, 0) is */
    struct motion motions[DEPTH_MOST + 1][LETTERS][HEADINGS_MOST];
};

/* Plan a curve, as large as it fits into a window of size x size. */
void plan_make(struct plan *plan, const struct curve *curve, int depth, int size);
/* Returns the word that replaces a letter at this depth, or NULL. */
const char *plan_rule(const struct plan *plan, char letter, int depth);
const struct motion *plan_motion(const struct plan *plan, char letter, int depth, int heading);

/* A turtle on its way along a word. */
struct reader {
    const char *at;
    struct place here, kept[BRACKETS_MOST];
    int brackets;
};

/* The next letter of the word, or 0 at its end. Turns and brackets are done by the way. */
char reader_letter(struct reader *reader, const struct curve *curve);
/* Where a motion leads from here. */
struct place place_after(struct place here, const struct motion *motion);

/* ---- the picture ----------------------------------------------------------------------------- */

/* A line in the window, in pixels. */
struct line {
    int16_t from_x, from_y, to_x, to_y;
};

struct chunk {
    strand_pool pool; /* where it was computed */
    uint64_t first;   /* number of its first step */
    int count;
    struct line lines[CHUNK_MOST];
};

typedef STRAND_CHAN(struct chunk) chunk_chan;

struct picture {
    const struct curve *curve;
    int depth, size, turtles, threads;
    double seconds;   /* that it takes at least */
    bool once;        /* the window does not stay open */
    const char *path; /* where to save the picture; NULL: nowhere */

    struct plan *plan;
    chunk_chan chunks;
    atomic_uint_fast64_t made; /* chunks, by the turtles */

    /* The rest is the pen's. */
    uint64_t steps, taken, ahead; /* drawn; chunks drawn; how many at most were made and not drawn as yet */
    uint64_t events;              /* of the window, that came before the last step */
    int64_t took, longest;        /* ns up to the last step; between two looks at the events, at most */
};

extern const strand_kind STOPPED; /* by Ctrl-C */
extern const strand_kind CLOSED;  /* the window, by its user */
extern const strand_kind SCREEN;  /* SDL has failed: says in what, and why */

/* The root: opens the window, draws what the turtles make, and ends them. */
strand_fn draw_picture;
/* All turtles, on the workers' pool. They plan the curve, walk it, and close the channel. */
strand_fn walk_curve;

/* ---- the window ------------------------------------------------------------------------------ */

/* All these are for one strand on the main thread. */
struct screen {
    struct SDL_Window *window;
    struct SDL_Surface *canvas; /* what has been drawn, line by line */
    struct SDL_Renderer *renderer;
    int descriptor; /* readable when there are events; -1: there is none of that kind */
    bool stale;     /* the window does not show all of the canvas */
    bool held;      /* by the user: do not draw now */
};

/* Open one that has no descriptor as yet, and nothing else. Throws SCREEN. */
void screen_open(struct screen *screen, const char *title, int size);
/* For its clean-up, however far it has come. */
void screen_close(struct screen *screen);
/* Draw lines; the first one is so far (0 to 1) into the curve, and the last one so far: that gives their colours. */
void screen_draw(struct screen *screen, const struct line *lines, int count, double from, double to);
/* Show what has been drawn. */
void screen_show(struct screen *screen);
/* Handle all events that have come: how many. Throws CLOSED. */
uint64_t screen_look(struct screen *screen);
/* Save the picture as a BMP file. Throws SCREEN. */
void screen_save(const struct screen *screen, const char *path);

#endif
