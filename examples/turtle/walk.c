/*
 * The turtles. Each walks a part of the curve, and sends the lines of its steps to the pen.
 */
#include "turtle.h"

#include <math.h>

struct turtle {
    struct picture *picture;
    uint64_t first, end; /* its steps, of all */
    uint64_t at;         /* the step that it has come to: those before its first one it jumps over */
    strand_time begun;
    int full; /* so many lines make a chunk */
    struct chunk chunk;
};

/* ---- chunks ---------------------------------------------------------------------------------- */

/* A turtle that would be done too soon sleeps. */
static void keep_pace(const struct turtle *turtle)
{
    uint64_t walked = turtle->chunk.first + (uint64_t)turtle->chunk.count - turtle->first;
    double part = (double)walked / (double)(turtle->end - turtle->first);
    if (turtle->picture->seconds > 0)
        strand_sleep_until(
            (strand_time){turtle->begun.ns + (int64_t)(part * turtle->picture->seconds * (double)STRAND_S)});
}

/* Waits while the pen has enough to do. */
static void send_chunk(struct turtle *turtle)
{
    if (turtle->chunk.count == 0)
        return;
    keep_pace(turtle);
    turtle->picture->made++;
    strand_must(STRAND_SEND(turtle->picture->chunks, &turtle->chunk));
    turtle->chunk.count = 0;
}

static int16_t pixel(double value)
{
    return (int16_t)lround(value);
}

static void make_line(struct turtle *turtle, struct place from, struct place to)
{
    const struct plan *plan = turtle->picture->plan;
    struct chunk *chunk = &turtle->chunk;
    if (chunk->count == 0)
        chunk->first = turtle->at;
    chunk->lines[chunk->count++] = (struct line){
        pixel(plan->x + plan->scale * from.x),
        pixel(plan->y - plan->scale * from.y),
        pixel(plan->x + plan->scale * to.x),
        pixel(plan->y - plan->scale * to.y),
    };
    turtle->at++;
    if (chunk->count == turtle->full)
        send_chunk(turtle);
}

/* ---- walking --------------------------------------------------------------------------------- */

/* Along a word whose letters come to what they do at this depth. What lies outside of the turtle's part is one jump,
 * however many steps it is. */
static void walk(struct turtle *turtle, const char *word, int depth, struct place from)
{
    const struct plan *plan = turtle->picture->plan;
    struct reader reader = {.at = word, .here = from};
    for (char letter; (letter = reader_letter(&reader, plan->curve));) {
        const struct motion *motion = plan_motion(plan, letter, depth, reader.here.heading);
        struct place next = place_after(reader.here, motion);
        bool outside = turtle->at + motion->steps <= turtle->first || turtle->at >= turtle->end;
        const char *rule = plan_rule(plan, letter, depth);
        if (outside || motion->steps == 0)
            turtle->at += motion->steps;
        else if (rule)
            walk(turtle, rule, depth - 1, reader.here);
        else
            make_line(turtle, reader.here, next);
        reader.here = next;
    }
}

/* Slow turtles send less at a time, so that it goes smoothly. */
static int size_of_chunk(const struct turtle *turtle)
{
    double most = (double)(turtle->end - turtle->first) / (turtle->picture->seconds * FRAMES_PER_S);
    return !(most < CHUNK_MOST) ? CHUNK_MOST : most > 1 ? (int)most : 1;
}

static void *walk_part(void *arg)
{
    struct turtle *turtle = arg;
    const struct plan *plan = turtle->picture->plan;
    turtle->begun = strand_now();
    turtle->chunk.pool = strand_pool_self();
    turtle->full = size_of_chunk(turtle);
    walk(turtle, plan->curve->start, plan->depth, (struct place){0, 0, plan->curve->heading});
    send_chunk(turtle);
    return NULL;
}

void *walk_curve(void *arg)
{
    struct picture *picture = arg;
    uint64_t count = (uint64_t)picture->turtles;
    plan_make(picture->plan, picture->curve, picture->depth, picture->size);
    STRAND_SCOPE(turtles);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t steps = picture->plan->whole.steps;
        const struct turtle turtle = {.picture = picture, .first = steps * i / count, .end = steps * (i + 1) / count};
        strand_spawn_with(turtles, STRAND_ATTR(.name = "turtle"), walk_part, &turtle, sizeof turtle);
    }
    strand_scope_join(turtles);
    STRAND_CHAN_CLOSE(picture->chunks);
    return NULL;
}
