/*
 * The main thread: one strand that draws what the turtles send, and looks at all else that can happen.
 */
#include "turtle.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <strand/io.h>

const strand_kind STOPPED = STRAND_KIND("stopped", &STRAND_ERROR);

enum { CHUNK, EVENTS, FRAME, SIGNAL, CASES };

struct pen {
    struct picture *picture;
    struct screen *screen;
    strand_ticker frames;
    strand_case cases[CASES];
    struct chunk chunk;
    int64_t begun, looked;
    bool drawn; /* all of it */
};

static void take_chunk(struct pen *pen)
{
    struct picture *picture = pen->picture;
    const struct chunk *chunk = &pen->chunk;
    strand_pool here = strand_pool_self();
    double all = (double)picture->plan->whole.steps;
    if (memcmp(&chunk->pool, &here, sizeof here) == 0)
        strand_throw(&STRAND_ERROR, "what begins at step %llu was computed on the main thread",
                     (unsigned long long)chunk->first);
    screen_draw(pen->screen, chunk->lines, chunk->count, (double)chunk->first / all,
                (double)(chunk->first + (uint64_t)chunk->count) / all);
    uint64_t ahead = picture->made - picture->taken;
    if (ahead > picture->ahead)
        picture->ahead = ahead;
    picture->taken++;
    picture->steps += (uint64_t)chunk->count;
}

static void look(struct pen *pen)
{
    int64_t now = strand_now().ns, apart = now - pen->looked;
    uint64_t events = screen_look(pen->screen);
    pen->looked = now;
    if (pen->drawn)
        return;
    pen->picture->events += events;
    if (apart > pen->picture->longest)
        pen->picture->longest = apart;
}

/* The one wait of the main thread. What has been drawn is shown at most once in a frame. After that it looks for events
 * again: while SDL talks to the X server it may take in some, and the descriptor does not tell of those. */
static void attend(struct pen *pen)
{
    switch (strand_select(pen->cases, CASES, 0)) {
    case CHUNK:
        pen->drawn = pen->cases[CHUNK].result != 0; /* closed: that was all */
        if (!pen->drawn)
            take_chunk(pen);
        break;
    case FRAME:
        if (pen->screen->stale)
            screen_show(pen->screen);
        look(pen);
        break;
    case EVENTS:
        look(pen);
        break;
    case SIGNAL:
        strand_throw(&STOPPED, "interrupted");
    }
}

static void draw(struct pen *pen)
{
    const strand_case lines = STRAND_ON_RECEIVE(pen->picture->chunks, &pen->chunk), never = {0};
    pen->frames = strand_ticker_every(STRAND_S / FRAMES_PER_S);
    pen->cases[FRAME] = strand_on_tick(&pen->frames);
    pen->begun = pen->looked = strand_now().ns;
    while (!pen->drawn) {
        pen->cases[CHUNK] = pen->screen->held ? never : lines;
        attend(pen);
    }
    pen->cases[CHUNK] = never;
    screen_show(pen->screen);
    pen->picture->took = strand_now().ns - pen->begun;
}

/* No frames any more, where the descriptor tells of events: until there are some the program sleeps. */
static void stay(struct pen *pen)
{
    if (pen->screen->descriptor >= 0)
        pen->cases[FRAME] = (strand_case){0};
    for (;;) {
        look(pen);
        if (pen->screen->stale)
            screen_show(pen->screen);
        attend(pen);
    }
}

static void report(const struct picture *picture)
{
    printf("%s of depth %d: %llu steps, in %llu chunks from %d turtles, drawn in %.2f s\n", picture->curve->name,
           picture->depth, (unsigned long long)picture->steps, (unsigned long long)picture->taken, picture->turtles,
           (double)picture->took / (double)STRAND_S);
    printf("never more than %llu chunks ahead of the pen; meanwhile %llu events, looked for every %.0f ms at least\n",
           (unsigned long long)picture->ahead, (unsigned long long)picture->events,
           (double)picture->longest / (double)STRAND_MS);
    fflush(stdout);
}

void *draw_picture(void *arg)
{
    struct picture *picture = arg;
    struct screen screen __attribute__((cleanup(screen_close))) = {.descriptor = -1};
    struct pen pen = {.picture = picture, .screen = &screen};
    screen_open(&screen, picture->curve->name, picture->size);
    STRAND_SIGNALS(signals, SIGINT, SIGTERM);
    STRAND_SCOPE(scope); /* left early, it cancels the turtles and waits for them */
    strand_pool workers = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = picture->threads, .name = "workers"));
    picture->chunks = STRAND_CHAN_OPEN(chunk_chan, scope, ROOM);
    pen.cases[SIGNAL] = strand_on_signal(signals, NULL);
    if (screen.descriptor >= 0)
        pen.cases[EVENTS] = strand_on_ready(screen.descriptor, STRAND_READABLE);
    strand turtles = strand_spawn_with(scope, STRAND_ATTR(.name = "turtles", .pool = workers), walk_curve, picture, 0);
    draw(&pen);
    strand_join(turtles);
    report(picture);
    if (picture->path)
        screen_save(&screen, picture->path);
    if (!picture->once)
        stay(&pen);
    return NULL;
}
