/*
 * The command line, the two ways, and the figures.
 */
#include "crowd.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OFF = 1, USAGE = 2, NO_MEMORY = 3 };

/* A right program is further off than so many standard errors, in one of three figures, with one seed of 50 000. */
#define ERRORS_MOST 4.5

/* What a stack of its own takes of an agent at most: the pages that a repair has touched, of few agents more than one;
 * tables of pages that the system keeps. */
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

/* All of the crowd's own memory is touched before, so what a run takes more is the strands'. */
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

/* A million own stacks take memory that not every machine has. */
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

/* Whether it is as near to its mean as it has to be. */
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

static const char usage[] =
    "usage: crowd [option...]\n"
    "\n"
    "Simulates machines that break down and wait for mechanics, a strand for each, on stacks of their own and on a "
    "few\n"
    "shared ones. Prints what memory and time both take, and the results beside their known means. Exit status: 0; 1 "
    "a\n"
    "result is off its mean, or the two differ; 2 the command line; 3 not enough memory.\n"
    "\n"
    "  -a, --agents=N      machines (default 1000000; 1000 at least)\n"
    "  -f, --fibres=N      shared stacks (default 8)\n"
    "  -k, --stacks=WHICH  own, shared or both (the default)\n"
    "  -s, --seed=N        of all chance (default 1)\n"
    "  -t, --time=T        how long, in mean lives of a machine (default 2)\n"
    "  -P, --progress=MS   how often to tell the progress (default 2000, on a terminal 200); 0: never\n"
    "  -h, --help          this text\n";

__attribute__((noreturn)) static void refuse_option(const char *name, const char *value)
{
    fprintf(stderr, "crowd: %s can't be %s\n", name, value);
    exit(USAGE);
}

static long whole(const char *name, const char *text, long least, long most)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (end == text || *end || errno || value < least || value > most)
        refuse_option(name, text);
    return value;
}

static double number(const char *name, const char *text, double least, double most)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= least && value <= most))
        refuse_option(name, text);
    return value;
}

static void choose_stacks(struct settings *settings, const char *which)
{
    bool both = strcmp(which, "both") == 0;
    settings->own = both || strcmp(which, "own") == 0;
    settings->shared = both || strcmp(which, "shared") == 0;
    if (!settings->own && !settings->shared)
        refuse_option("--stacks", which);
}

static void take_option(struct settings *settings, int option)
{
    switch (option) {
    case 'a':
        settings->agents = whole("--agents", optarg, AGENTS_LEAST, AGENTS_MOST);
        break;
    case 'f':
        settings->fibres = (int)whole("--fibres", optarg, 1, 65536);
        break;
    case 'k':
        choose_stacks(settings, optarg);
        break;
    case 's':
        settings->seed = (uint64_t)whole("--seed", optarg, 0, INT64_MAX);
        break;
    case 't':
        settings->time = number("--time", optarg, 0.1, 1000);
        break;
    case 'P':
        settings->progress = whole("--progress", optarg, 0, 1000000000) * STRAND_MS;
        break;
    case 'h':
        exit(fputs(usage, stdout) < 0 || fflush(stdout) != 0);
    default:
        fputs("Try crowd --help.\n", stderr);
        exit(USAGE);
    }
}

static void read_options(struct settings *settings, int argc, char **argv)
{
    static const struct option options[] = {
        {"agents", required_argument, NULL, 'a'}, {"fibres", required_argument, NULL, 'f'},
        {"stacks", required_argument, NULL, 'k'}, {"seed", required_argument, NULL, 's'},
        {"time", required_argument, NULL, 't'},   {"progress", required_argument, NULL, 'P'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0},
    };
    for (int option; (option = getopt_long(argc, argv, "a:f:k:s:t:P:h", options, NULL)) != -1;)
        take_option(settings, option);
    if (optind < argc) {
        fprintf(stderr, "crowd: what is %s? Try crowd --help.\n", argv[optind]);
        exit(USAGE);
    }
}

int main(int argc, char **argv)
{
    struct settings settings = {
        .agents = 1000000,
        .fibres = 8,
        .own = true,
        .shared = true,
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
