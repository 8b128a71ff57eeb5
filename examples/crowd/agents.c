/*
 * What a machine goes through, and the shop with its mechanics.
 */
#include "crowd.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

uint64_t draw(uint64_t *chance)
{
    uint64_t z = *chance += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* From 0 to just below 1. */
static double uniform(struct agent *self)
{
    return (double)(draw(&self->chance) >> 11) * 0x1p-53;
}

static double exponential(struct agent *self, double mean)
{
    return -mean * log1p(-uniform(self));
}

/* ---- the mechanics --------------------------------------------------------------------------- */

/* FIFO, by the crowd's own list: the order must be the same in every run, and the order of ready strands is up to the
 * scheduler. An agent that is released counts as awake at once, so the clock is not turned before it runs. */
static void call_mechanic(struct agent *self)
{
    struct crowd *crowd = self->crowd;
    if (crowd->free > 0) {
        crowd->free--;
        return;
    }
    self->next = NULL;
    *crowd->queue_end = self;
    crowd->queue_end = &self->next;
    clock_turn(crowd);
    strand_semaphore_acquire(&self->turn);
}

static void let_mechanic_go(struct crowd *crowd)
{
    struct agent *first = crowd->queue;
    if (!first) {
        crowd->free++;
        return;
    }
    crowd->queue = first->next;
    if (!crowd->queue)
        crowd->queue_end = &crowd->queue;
    crowd->clock.awake++;
    strand_semaphore_release(&first->turn);
}

/* ---- a repair -------------------------------------------------------------------------------- */

static bool look_behind(struct agent *self, int depth);

/* One part, and with it what lies behind. Returns false if the time was over first. */
static bool mend(struct agent *self, int depth)
{
    struct outcome *outcome = &self->crowd->outcome;
    if (!clock_wait(self, exponential(self, PART_MEAN)))
        return false;
    outcome->parts++;
    return uniform(self) >= DEEPER || look_behind(self, depth + 1);
}

/* The notes are in nobody else's way, while the strand waits deep below; they are what it finds when it comes back. */
static __attribute__((noinline)) bool look_behind(struct agent *self, int depth)
{
    uint64_t notes[NOTES / sizeof(uint64_t)], chance = self->chance ^ (uint64_t)depth;
    for (size_t i = 0; i < NOTES / sizeof *notes; i++)
        notes[i] = chance + i;
    __asm__ volatile("" : : "r"(notes) : "memory");
    if (depth > self->crowd->outcome.deepest)
        self->crowd->outcome.deepest = depth;
    bool mended = mend(self, depth);
    for (size_t i = 0; i < NOTES / sizeof *notes; i++)
        if (notes[i] != chance + i)
            strand_throw(&STRAND_ERROR, "the notes on part %d of machine %td have changed", depth,
                         self - self->crowd->crew);
    return mended;
}

/* ---- a machine ------------------------------------------------------------------------------- */

void note_down(struct crowd *crowd)
{
    crowd->outcome.down += (double)crowd->down * (crowd->clock.now - crowd->down_since);
    crowd->down_since = crowd->clock.now;
}

static void now_down(struct crowd *crowd, long more)
{
    if (!crowd->clock.over)
        note_down(crowd);
    crowd->down += more;
}

void *live(void *arg)
{
    struct agent *self = arg;
    struct crowd *crowd = self->crowd;
    bool works = clock_wait(self, 0) && self - crowd->crew >= crowd->down; /* so many are down from the start */
    while (!crowd->clock.over) {
        if (works) {
            if (!clock_wait(self, exponential(self, 1)))
                break;
            now_down(crowd, 1);
        }
        call_mechanic(self);
        works = mend(self, 0);
        let_mechanic_go(crowd);
        if (works) {
            crowd->outcome.repairs++;
            now_down(crowd, -1);
        }
    }
    clock_turn(crowd);
    return NULL;
}

/* ---- the run --------------------------------------------------------------------------------- */

static int64_t resident_bytes(void)
{
    long size, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &size, &resident) != 2)
        resident = 0;
    if (file)
        fclose(file);
    return (int64_t)resident * sysconf(_SC_PAGESIZE);
}

static void *report_progress(void *arg)
{
    const struct crowd *crowd = *(const struct crowd *const *)arg;
    const struct clock *clock = &crowd->clock;
    const char *end = isatty(STDERR_FILENO) ? "\033[K\r" : "\n"; /* a line that the next one takes the place of */
    for (;;) {
        strand_sleep(crowd->progress);
        if (crowd->outcome.events)
            fprintf(stderr, "crowd: %s: %s%.0f %% of the time, %.1f million events%s", crowd->way,
                    clock->over ? "going home after " : "", 100 * clock->now / clock->end,
                    (double)crowd->outcome.events / 1e6, end);
        else
            fprintf(stderr, "crowd: %s: %ld of %ld agents are there%s", crowd->way, clock->waiting, crowd->agents, end);
    }
    return NULL;
}

static void count_images(struct crowd *crowd, strand_fibre fibre)
{
    strand_fibre_info info = {.size = sizeof info};
    for (int i = 0; i < crowd->fibres; i++) {
        strand_fibre_info_get(fibre, i, &info);
        crowd->images += (int64_t)info.saved_bytes;
    }
}

void *run_crowd(void *arg)
{
    struct crowd *crowd = arg;
    strand reporter = {{0}};
    STRAND_SCOPE(scope);
    if (crowd->progress)
        reporter = strand_spawn_with(scope, STRAND_ATTR(.name = "progress"), report_progress, &crowd, sizeof crowd);
    {
        STRAND_SCOPE(machines);
        strand_attr attr = {.size = sizeof attr, .name = "machine"};
        int64_t before = resident_bytes(), start = strand_now().ns;
        if (crowd->fibres) /* all that is different between the two ways */
            attr.fibre = strand_fibre_open(machines, STRAND_FIBRE_ATTR(.count = crowd->fibres, .stack_size = STACK));
        else
            attr.stack_size = STACK;
        for (long i = 0; i < crowd->agents; i++)
            strand_spawn_with(machines, &attr, live, &crowd->crew[i], 0);
        strand_event_wait(&crowd->clock.up);
        crowd->resident = resident_bytes() - before;
        count_images(crowd, attr.fibre);
        clock_turn(crowd);
        strand_scope_join(machines);
        crowd->taken = strand_now().ns - start;
    }
    strand_cancel(reporter, NULL);
    if (crowd->progress && isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
    crowd->outcome.down /= crowd->clock.end;
    return NULL;
}
