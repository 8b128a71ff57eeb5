/*
 * What the tests of the watchdog share: reports that are kept as they come, and strands that are late until so many
 * have come. So nothing here depends on how fast the machine is.
 */
#ifndef SPEC_WATCHDOG_H
#define SPEC_WATCHDOG_H

#include "test.h"

#include "strand/debug.h"

#include <sched.h>
#include <unistd.h>

#define LIMIT (20 * STRAND_MS)
/* A thread that could run is not let run for so long on a machine that has much to do. */
#define PATIENT (300 * STRAND_MS)

enum { REPORTS_MOST = 64, FRAMES = 32 };

struct kept {
    strand_watchdog_report late; /* what its pointers point to is gone */
    char name[40], spawned[200], where[200], section[200], text[8000];
};

static struct {
    struct kept kept[REPORTS_MOST];
    const char
        *of; /* keep reports about this strand only; NULL: all. On a busy machine other strands may be late too */
    _Atomic int count, enough; /* number of reports so far; so many release the late strand */
    _Atomic int released;
    atomic_flag keeping;
    int blind;     /* reports of `of` that were not kept: the machine did not let it say in time where it is */
    int signal[2]; /* a pipe that gets a byte then */
} reports;

static inline void reports_open(const char *of, int enough)
{
    reports.of = of;
    CHECK_EQ(pipe(reports.signal), 0);
    reports.count = reports.released = reports.blind = 0;
    reports.enough = enough;
}

static inline void reports_keep_locked(const strand_watchdog_report *late)
{
    int at = reports.count;
    if (reports.of && strcmp(late->name, reports.of) != 0)
        return;
    if (reports.of && !late->over && !late->frame_count) {
        reports.blind++;
        return;
    }
    if (at < REPORTS_MOST) {
        struct kept *kept = &reports.kept[at];
        kept->late = *late;
        snprintf(kept->name, sizeof kept->name, "%s", late->name);
        snprintf(kept->spawned, sizeof kept->spawned, "%s", late->spawned);
        snprintf(kept->where, sizeof kept->where, "%s", late->where);
        snprintf(kept->section, sizeof kept->section, "%s", late->section);
        snprintf(kept->text, sizeof kept->text, "%s", late->text);
    }
    reports.count = at + 1;
    if (at + 1 == reports.enough) {
        reports.released = 1;
        CHECK_EQ(write(reports.signal[1], "r", 1), 1);
    }
}

/* The thread that reports, and a strand that counts from now on. */
static inline void reports_lock(void)
{
    while (atomic_flag_test_and_set(&reports.keeping))
        sched_yield();
}

static inline void reports_keep(const strand_watchdog_report *late, void *arg)
{
    (void)arg;
    reports_lock();
    reports_keep_locked(late);
    atomic_flag_clear(&reports.keeping);
}

static inline strand_options watched(int threads)
{
    strand_options options = test_options();
    test_set_threads(&options, threads);
    options.watchdog_ns = LIMIT;
    options.on_watchdog = reports_keep;
    return options;
}

/* Run it until the first report of that strand is there that knows where it is, at least. Returns that. */
static inline const struct kept *first_report(const char *of, const strand_options *options, strand_fn *root, void *arg)
{
    reports_open(of, 1);
    strand_run(options, root, arg);
    CHECK(reports.count >= 1);
    return &reports.kept[0];
}

/* That it is over, which is the last: how many come before it depends on the machine. */
static inline const struct kept *last_report(void)
{
    CHECK(reports.count >= 2 && reports.count <= REPORTS_MOST);
    for (int i = 0; i < reports.count; i++)
        CHECK_EQ(reports.kept[i].late.over, i == reports.count - 1);
    return &reports.kept[reports.count - 1];
}

/* Comes to no operation of the library. A signal is to find it here, and not in a function of a sanitizer's. */
__attribute__((no_sanitize("thread", "address", "undefined"))) static NOINLINE void compute(void)
{
    while (!*(volatile _Atomic int *)&reports.released)
        continue;
}

static inline void *computes(void *arg)
{
    compute();
    return arg;
}

#endif
