/*
 * Runs that are out of work, by name, and misuse of strand_wait_quiet.
 */
#include "strand.h"
#include "strand/chan.h"
#include "strand/io.h"
#include "strand/pool.h"
#include "strand/sync.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void say(void)
{
    printf("at exit\n");
    fflush(stdout);
}

static void *wait_for_ever(void *arg)
{
    static strand_event never;
    strand_event_wait(&never);
    return arg;
}

static void *shielded(void *arg)
{
    STRAND_SHIELD;
    return wait_for_ever(arg);
}

/* The scope waits for a child that nothing can interrupt. */
static void *leaving(void *arg)
{
    STRAND_SCOPE(scope);
    strand_spawn(scope, shielded, arg);
    strand_yield();
    return arg;
}

static void end_badly(int *mark)
{
    (void)mark;
    wait_for_ever(NULL);
}

static void *cleaning_up(void *arg)
{
    static const strand_kind kind = STRAND_KIND("made-up", &STRAND_ERROR);
    int mark __attribute__((cleanup(end_badly)));
    (void)mark, (void)arg;
    strand_throw(&kind, "on purpose");
}

static void unwind(int *mark)
{
    (void)mark;
    printf("unwound\n");
    fflush(stdout);
}

static void *by_itself(void *arg)
{
    int mark __attribute__((cleanup(unwind)));
    (void)mark;
    return wait_for_ever(arg);
}

/* ---- plain threads that might go on with it ---- */

static void *nap(void *arg)
{
    usleep(100000);
    return arg;
}

static void *ends_later(void *arg)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, nap, arg))
        return NULL;
    pthread_detach(thread);
    return wait_for_ever(arg);
}

typedef STRAND_CHAN(int) ints;
static ints chan;

static _Atomic int posting;

static void *post_one(void *arg)
{
    int value = 1;
    posting = 1;
    usleep(*(useconds_t *)arg);
    STRAND_IGNORE(STRAND_POST(chan, &value));
    return NULL;
}

static void *receive_what_is_posted(void *arg)
{
    pthread_t thread;
    int value;
    STRAND_SCOPE(scope);
    chan = STRAND_CHAN_OPEN(ints, scope, 0);
    if (pthread_create(&thread, NULL, post_one, arg))
        return NULL;
    pthread_detach(thread);
    STRAND_IGNORE(STRAND_RECEIVE(chan, &value));
    return NULL;
}

/* At about the time when the run is looked at again. */
static void post_and_end(void)
{
    for (useconds_t us = 0; us < 3000; us += 10)
        strand_run(STRAND_OPTIONS(.threads = 2), receive_what_is_posted, &us);
}

/* The caller has gone, the call goes on. */
static void *left_call(void *arg)
{
    static useconds_t us = 100000;
    int value;
    STRAND_SCOPE(scope);
    chan = STRAND_CHAN_OPEN(ints, scope, 0);
    /* On a busy machine it may not have begun by then, and never does. */
    for (volatile int64_t ns = 20 * STRAND_MS; !posting; ns *= 2) {
        STRAND_TRY {
            STRAND_DEADLINE(strand_in(ns));
            strand_offload_with(NULL, post_one, &us, 0);
        }
        STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        }
        STRAND_END
    }
    STRAND_IGNORE(STRAND_RECEIVE(chan, &value));
    return arg;
}

/* The run was asked to end, and ends as soon as its wait is over. */
static void *stopped(void *arg)
{
    static useconds_t us = 100000;
    pthread_t thread;
    int value;
    STRAND_SCOPE(scope);
    chan = STRAND_CHAN_OPEN(ints, scope, 0);
    if (pthread_create(&thread, NULL, post_one, &us))
        return NULL;
    pthread_detach(thread);
    strand_run_stop(strand_run_self(), 0, NULL);
    STRAND_SHIELD;
    STRAND_IGNORE(STRAND_RECEIVE(chan, &value));
    return arg;
}

static strand_pool window;

static void *drive_it(void *arg)
{
    while (strand_pool_drive(window, strand_in(STRAND_MS), STRAND_DRIVE_WAIT) == 1)
        continue;
    return arg;
}

static void *help_later(void *arg)
{
    pthread_t thread;
    strand_sleep(100 * STRAND_MS);
    pthread_create(&thread, NULL, drive_it, NULL);
    pthread_detach(thread);
    return arg;
}

/* When it is closed nobody is there to drive it, but there will be. */
static void *undriven(void *arg)
{
    STRAND_SCOPE(outer);
    {
        STRAND_SCOPE(scope);
        window = strand_pool_open(scope, STRAND_POOL_ATTR(.scheduler = "current", .name = "window"));
        strand_spawn(outer, help_later, arg);
    }
    strand_scope_join(outer);
    return arg;
}

/* ---- misuse ---- */

static void *flags(void *arg)
{
    strand_wait_quiet((strand_pool){{0}}, 4);
    return arg;
}

static void *run_and_pool(void *arg)
{
    strand_wait_quiet(strand_pool_self(), STRAND_QUIET_RUN);
    return arg;
}

static const struct {
    const char *name;
    strand_fn *fn;
    enum strand_out_of_work what;
} cases[] = {
    {"exit", wait_for_ever, STRAND_OUT_OF_WORK_EXIT},        {"shielded", shielded, STRAND_OUT_OF_WORK_THROW},
    {"leaving", leaving, STRAND_OUT_OF_WORK_THROW},          {"cleaning_up", cleaning_up, STRAND_OUT_OF_WORK_THROW},
    {"end_shielded", shielded, STRAND_OUT_OF_WORK_END},      {"by_itself", by_itself, STRAND_OUT_OF_WORK_AUTO},
    {"ends_later", ends_later, STRAND_OUT_OF_WORK_AUTO},     {"stopped", stopped, STRAND_OUT_OF_WORK_AUTO},
    {"left_call", left_call, STRAND_OUT_OF_WORK_AUTO},       {"flags", flags, STRAND_OUT_OF_WORK_AUTO},
    {"run_and_pool", run_and_pool, STRAND_OUT_OF_WORK_AUTO}, {"undriven", undriven, STRAND_OUT_OF_WORK_AUTO},
};

int main(int argc, char **argv)
{
    atexit(say);
    if (argc == 2 && strcmp(argv[1], "post_and_end") == 0)
        post_and_end();
    for (size_t i = 0; argc == 2 && i < sizeof cases / sizeof *cases; i++)
        if (strcmp(argv[1], cases[i].name) == 0)
            strand_run(STRAND_OPTIONS(.out_of_work = cases[i].what, .threads = 2), cases[i].fn, NULL);
    return 0;
}
