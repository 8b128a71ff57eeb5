/*
 * crowd: the command line, both ways of running the crowd, and the figures.
 */
#include "crowd.h"

#include "../common/options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OFF = 1, NO_MEMORY = 3 };

/* A figure may be this many standard errors off its mean. With a correct program, one seed in 50 000 has one of its
 * three figures further off. */
#define ERRORS_MOST 4.5

/* The most memory that an agent's own stack takes on average: the pages that repairs have touched, for most agents one,
 * and the system's page tables. */
enum { OWN_BYTES = 8000 };

struct settings {
    long agents;
    int fibres;
    bool own, shared;
    uint64_t seed;
    double time;
    int64_t progress;
};

/* ---- one way --------------------------------------------------------------------------------- */

static void *must_have(void *memory)
{
    if (!memory) {
        fprintf(stderr, "crowd: %s\n", strerror(ENOMEM));
        exit(NO_MEMORY);
    }
    return memory;
}

static long down_on_average(const struct settings *settings)
{
    return lround(forecast(settings->agents, settings->time).down.mean);
}

/* Touches all memory of the crowd itself first, so that the growth during the run is the strands' memory. */
static void run_way(const struct settings *settings, const char *way, int fibres, struct crowd *crowd)
{
    size_t agents = (size_t)settings->agents;
    *crowd = (struct crowd){
        .way = way,
        .agents = settings->agents,
        .fibres = fibres,
        .progress = settings->progress,
        .clock = {.end = settings->time, .awake = settings->agents},
        .free = (long)((double)settings->agents * MECHANICS_PER_AGENT),
        .down = down_on_average(settings),
    };
    crowd->clock.heap = must_have(malloc(agents * sizeof *crowd->clock.heap));
    crowd->crew = must_have(malloc(agents * sizeof *crowd->crew));
    memset(crowd->clock.heap, 0, agents * sizeof *crowd->clock.heap);
    uint64_t chance = settings->seed;
    crowd->queue_end = &crowd->queue;
    for (size_t i = 0; i < agents; i++)
        crowd->crew[i] = (struct agent){.crowd = crowd, .chance = draw(&chance)};
    strand_run(STRAND_OPTIONS(.threads = 1), run_crowd, crowd);
    free(crowd->crew);
    free(crowd->clock.heap);
}

/* Not every machine has the memory for a million own stacks. */
static void look_for_memory(const struct settings *settings)
{
    char line[128];
    long long kilobytes = -1, wanted = (long long)settings->agents * OWN_BYTES / 1024;
    FILE *file = fopen("/proc/meminfo", "r");
    while (file && kilobytes < 0 && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %lld", &kilobytes) != 1)
            kilobytes = -1;
    if (file)
        fclose(file);
    if (kilobytes < 0 || kilobytes >= wanted)
        return;
    fprintf(stderr, "crowd: own stacks of %ld agents may take %lld MB, and %lld are free: try fewer --agents\n",
            settings->agents, wanted / 1024, kilobytes / 1024);
    exit(NO_MEMORY);
}

/* ---- the figures ----------------------------------------------------------------------------- */

static void print_way(const struct crowd *crowd)
{
    printf("%-16s %8.0f MB  %6.0f bytes per agent  %7.2f s", crowd->way, (double)crowd->resident / 1e6,
           (double)crowd->resident / (double)crowd->agents, (double)crowd->taken / 1e9);
    if (crowd->fibres)
        printf("  (%d fibres; %.0f MB are saved stacks)", crowd->fibres, (double)crowd->images / 1e6);
    printf("\n");
}

static bool same(const struct outcome *a, const struct outcome *b)
{
    return a->down == b->down && a->repairs == b->repairs && a->parts == b->parts && a->events == b->events &&
           a->trail == b->trail && a->deepest == b->deepest;
}

/* Returns whether the figure is near enough to its mean. */
static bool print_figure(const char *what, double value, struct known known)
{
    double off = fabs(value - known.mean) / known.error;
    printf("%-28s %14.1f  known: %14.1f +- %.1f, %.2f standard errors off%s\n", what, value, known.mean,
           ERRORS_MOST * known.error, off, off <= ERRORS_MOST ? "" : ": WRONG");
    return off <= ERRORS_MOST;
}

static bool print_outcome(const struct settings *settings, const struct outcome *outcome)
{
    struct forecast known = forecast(settings->agents, settings->time);
    bool down = print_figure("machines down on average", outcome->down, known.down);
    bool repairs = print_figure("repairs", (double)outcome->repairs, known.repairs);
    bool parts = print_figure("parts mended", (double)outcome->parts, known.parts);
    printf("%-28s %14d  (%d KiB of stack)\n", "deepest repair", outcome->deepest, outcome->deepest * (NOTES / 1024));
    printf("%-28s %14llu  trail %016llx\n", "events", (unsigned long long)outcome->events,
           (unsigned long long)outcome->trail);
    return down && repairs && parts;
}

/* ---- the command line ------------------------------------------------------------------------ */

static const char about[] =
    "Simulates machines that break down and wait for mechanics, a strand for each, on stacks of their own and on a "
    "few\n"
    "shared ones. Prints the memory and the time that both ways take, and the results beside their known means.\n"
    "Exit status: 0; 1 a result is off its mean, or the two ways differ; 2 the command line; 3 not enough memory.\n";

static void read_options(struct settings *settings, int argc, char **argv)
{
    const char *stacks = "both";
    const struct option_row options[] = {
        {"agents", 'a', "N", "machines (default 1000000; 1000 at least)",
         OPTION_NUMBER(settings->agents, AGENTS_LEAST, AGENTS_MOST)},
        {"fibres", 'f', "N", "shared stacks (default 8)", OPTION_NUMBER(settings->fibres, 1, 65536)},
        {"stacks", 'k', "WHICH", "own, shared or both (the default)", OPTION_CHOICE(stacks, "own shared both")},
        {"seed", 's', "N", "of all random numbers (default 1)", OPTION_NUMBER(settings->seed, 0, INT64_MAX)},
        {"time", 't', "T", "length of the simulation, in mean lives of a machine (default 2)",
         OPTION_NUMBER(settings->time, 0.1L, 1000)},
        {"progress", 'P', "MS",
         "milliseconds between reports of progress (default 2000, on a terminal 200);\n0: no reports",
         OPTION_TIME(settings->progress, STRAND_MS, 0, 1e9L)},
        {0},
    };
    options_read(&(struct program){"crowd", about, NULL, options}, argc, argv);
    settings->own = strcmp(stacks, "shared") != 0;
    settings->shared = strcmp(stacks, "own") != 0;
}

int main(int argc, char **argv)
{
    struct settings settings = {
        .agents = 1000000,
        .fibres = 8,
        .seed = 1,
        .time = 2,
        .progress = (isatty(STDERR_FILENO) ? 200 : 2000) * STRAND_MS,
    };
    static struct crowd own, shared;
    read_options(&settings, argc, argv);
    if (settings.own)
        look_for_memory(&settings);
    if (settings.shared) {
        run_way(&settings, "shared stacks", settings.fibres, &shared);
        print_way(&shared);
    }
    if (settings.own) {
        run_way(&settings, "own stacks", 0, &own);
        print_way(&own);
    }
    bool right = print_outcome(&settings, settings.own ? &own.outcome : &shared.outcome);
    if (settings.own && settings.shared) {
        bool equal = same(&own.outcome, &shared.outcome);
        printf("%s\n", equal ? "both ways come to the same" : "the two ways DIFFER");
        right = right && equal;
    }
    if (fflush(stdout) != 0) {
        fprintf(stderr, "crowd: standard output: %s\n", strerror(errno));
        return OFF;
    }
    return right ? EXIT_SUCCESS : OFF;
}
