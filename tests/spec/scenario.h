/*
 * Strands that wait, each in a way of its own, and what a report says about them. Include test.h before.
 */
#ifndef SPEC_SCENARIO_H
#define SPEC_SCENARIO_H

#include "printed.h"

#include "strand/chan.h"
#include "strand/io.h"
#include "strand/limit.h"
#include "strand/port.h"
#include "strand/select.h"
#include "strand/sync.h"

#include <signal.h>

/* ---- what strands wait for: as new in each scenario -------------------------------------------------------- */

static struct {
    strand_mutex mutex, other_mutex;
    strand_event event; /* each scenario ends by setting it */
    strand_rwlock rwlock;
    strand_once once;
    strand_chan chan; /* of 3 bytes */
    strand_port port;
    strand_pool pool;    /* of scenarios that have a pool of their own */
    int pipe[2];         /* in scenarios that need it */
    _Atomic int started; /* how many strands have come to the point that a scenario waits for */
    _Atomic int give_up; /* those that try again and again end */
} at;

/* A body is run again and again, under seeds. */
static inline void begin(void)
{
    memset(&at, 0, sizeof at);
}

static NOINLINE __attribute__((unused)) strand spawn_named(strand_scope scope, const char *name, strand_fn *fn,
                                                           void *arg)
{
    strand child = strand_spawn_with(scope, STRAND_ATTR(.name = name), fn, arg, 0);
    __asm__ volatile("");
    return child;
}

static inline void *await_event(void *arg)
{
    strand_event_wait(&at.event);
    return arg;
}

static inline void *await_event_in_a_shield(void *arg)
{
    STRAND_SHIELD;
    at.started++;
    strand_event_wait(&at.event);
    return arg;
}

static inline void *sleep_long(void *arg)
{
    strand_sleep(FOREVER);
    return arg;
}

static inline void *read_a_byte(void *arg)
{
    char byte;
    (void)strand_read(at.pipe[0], &byte, 1);
    return arg;
}

static inline void *receive_a_message(void *arg)
{
    char message[8];
    (void)strand_port_receive(at.port, message, sizeof message);
    return arg;
}

static inline void *await_a_signal(void *arg)
{
    STRAND_SIGNALS(signals, SIGUSR1, SIGUSR2);
    (void)strand_wait_signal(signals);
    return arg;
}

static inline void *call_until_given_up(void *arg)
{
    at.started = 1;
    while (!at.give_up)
        usleep(100);
    return arg;
}

/* A signal finds it here, and not in a function of a sanitizer. */
__attribute__((no_sanitize("thread"), unused)) static NOINLINE void spin_until_given_up(void)
{
    at.started = 1;
    while (!*(volatile int *)&at.give_up)
        continue;
}

static inline void *spinner(void *arg)
{
    spin_until_given_up();
    return arg;
}

static inline void *offload_it(void *arg)
{
    return strand_offload(call_until_given_up, arg);
}

/* ---- scenarios ----------------------------------------------------------------------------------------------- */

enum { AT_LEAST_ONCE = 0, NEVER = -1, PART_BEGINS = -2, PART_ENDS = -3 };

struct scenario {
    const char *name;
    printer *print; /* NULL: the table's */
    bool needs_pipe;
    struct act {
        const char *name;
        strand_fn *fn;
        void *arg;
        int count;         /* strands like this; 0: one */
        const char *after; /* spawned once the report has these words; NULL: at once */
    } acts[6];
    int started;       /* the report is printed when at.started is this, at least */
    const char *until; /* the report is complete with these words; NULL: as it is */
    int blocked;       /* 0, or how often a dump of all strands has these words before the report is printed */
    const char *from;  /* NULL, or where the part of it begins that is looked at */
    struct {
        const char *text; /* %d is the descriptor that is read */
        int times;        /* or AT_LEAST_ONCE, NEVER, PART_BEGINS, PART_ENDS */
    } texts[14];
};

/* Strands of a scenario. The last is spawned once the report has the words. */
#define ONE(name_, fn_)                                                                                                \
    {                                                                                                                  \
        .name = (name_), .fn = (fn_)                                                                                   \
    }
#define GIVEN(arg_, name_, fn_)                                                                                        \
    {                                                                                                                  \
        .name = (name_), .fn = (fn_), .arg = (arg_)                                                                    \
    }
#define SEVERAL(count_, name_, fn_)                                                                                    \
    {                                                                                                                  \
        .name = (name_), .fn = (fn_), .count = (count_)                                                                \
    }
#define LATER(words, name_, fn_)                                                                                       \
    {                                                                                                                  \
        .name = (name_), .fn = (fn_), .after = (words)                                                                 \
    }
/* The part of the report that the next texts are about begins or ends there. */
#define FROM(text_)                                                                                                    \
    {                                                                                                                  \
        .text = (text_), .times = PART_BEGINS                                                                          \
    }
#define TO(text_)                                                                                                      \
    {                                                                                                                  \
        .text = (text_), .times = PART_ENDS                                                                            \
    }
/* What its report has, so many times, or has not. */
#define HAS(text_)                                                                                                     \
    {                                                                                                                  \
        .text = (text_), .times = AT_LEAST_ONCE                                                                        \
    }
#define TIMES(n, text_)                                                                                                \
    {                                                                                                                  \
        .text = (text_), .times = (n)                                                                                  \
    }
#define NO(text_)                                                                                                      \
    {                                                                                                                  \
        .text = (text_), .times = NEVER                                                                                \
    }

static inline const char *place_of(const struct scenario *s, const char *text, const char *report)
{
    const char *place = strstr(report, text);
    if (!place)
        CHECK_FAIL("%s: no '%s' in: %s", s->name, text, report);
    return place;
}

static inline void check_text(const struct scenario *s, const char *text, int times, const char *part)
{
    int found = (int)test_count(part, text);
    if (times == AT_LEAST_ONCE ? !found : found != (times == NEVER ? 0 : times))
        CHECK_FAIL("%s: '%s' %d times in: %s", s->name, text, found, part);
}

static inline void check_scenario(const struct scenario *s, const char *report)
{
    char *part = strdup(s->from ? place_of(s, s->from, report) : report);
    for (size_t i = 0; i < sizeof s->texts / sizeof *s->texts && s->texts[i].text; i++) {
        char text[128];
        snprintf(text, sizeof text, s->texts[i].text, at.pipe[0]);
        if (s->texts[i].times == PART_BEGINS) {
            free(part);
            part = strdup(place_of(s, text, report));
        } else if (s->texts[i].times == PART_ENDS) {
            part[place_of(s, text, part + 1) - part] = 0;
        } else {
            check_text(s, text, s->texts[i].times, part);
        }
    }
    free(part);
}

/* The report, as soon as it is complete. */
static inline const char *report_of(const struct scenario *s, printer *print)
{
    if (s->started)
        test_yield_until(&at.started, s->started);
    if (s->blocked)
        test_await_blocked(s->until, s->blocked);
    return s->until && !s->blocked ? printed_with(print, s->until) : printed(print);
}

static inline void spawn_act(strand_scope scope, const struct act *act, printer *print)
{
    if (act->after)
        printed_with(print, act->after);
    for (int i = 0; i < (act->count ? act->count : 1); i++)
        if (!at.pool.bits[0])
            spawn_named(scope, act->name, act->fn, act->arg);
        else
            strand_spawn_with(scope, STRAND_ATTR(.name = act->name, .pool = at.pool), act->fn, act->arg, 0);
}

/** Plays it, in the pool of the caller or in one of its own, and checks what is printed. Inside. */
static inline void play(const struct scenario *s, bool own_pool, printer *print)
{
    print = s->print ? s->print : print;
    begin();
    if (s->needs_pipe)
        CHECK_EQ(strand_pipe(at.pipe), 0);
    {
        STRAND_SCOPE(scope);
        if (own_pool)
            at.pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 1, .name = "extra"));
        at.chan = strand_chan_open(scope, 1, 3, STRAND_CHAN_ATTR(.name = "bytes"));
        at.port = strand_port_open(scope, 8, 4, NULL);
        for (size_t i = 0; i < sizeof s->acts / sizeof *s->acts && s->acts[i].fn; i++)
            spawn_act(scope, &s->acts[i], print);
        check_scenario(s, report_of(s, print));
        at.give_up = 1;
        strand_event_set(&at.event);
        strand_scope_cancel(scope, NULL);
    }
    if (s->needs_pipe) {
        strand_close(at.pipe[0]);
        strand_close(at.pipe[1]);
    }
}

#define PLAY_ALL(scenarios, own_pool, print)                                                                           \
    for (size_t i = 0; i < sizeof(scenarios) / sizeof *(scenarios); i++)                                               \
    play(&(scenarios)[i], own_pool, print)

#endif
