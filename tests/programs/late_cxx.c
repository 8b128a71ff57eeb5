/*
 * A C++ runtime that is loaded in the middle of a run, as with a plug-in. The strands stand for handlers of that: each
 * puts a word of its own where the runtime keeps the exceptions that handlers have, lets others run, and finds it there
 * again. The arguments: "fibre" for strands of one shared fibre, which have run before too; how many threads;
 * "deadline" and "cancelled" for a strand whose first use of the runtime is a destructor that an exception runs.
 */
#include "strand.h"
#include "strand/pool.h"
#include "strand/sync.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HANDLERS = 8, TURNS = 20 };

struct globals {
    void *caught;
    unsigned uncaught;
};

static struct globals *(*globals)(void);
static _Atomic int wrong;
static strand_barrier loaded = STRAND_BARRIER_INIT(HANDLERS + 1);

/* TSan takes the state of a thread for one that its strands race for. */
__attribute__((no_sanitize("thread"))) static void handle(void *own)
{
    for (int i = 0; i < TURNS; i++) {
        globals()->caught = own;
        strand_yield();
        wrong += globals()->caught != own;
        globals()->caught = NULL;
        strand_yield();
        wrong += globals()->caught != NULL;
    }
}

static void *run_handler(void *own)
{
    strand_barrier_wait(&loaded);
    handle(own);
    return own;
}

static void *handle_at_once(void *own)
{
    handle(own);
    return own;
}

static void load(void)
{
    void *runtime = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
    if (!runtime)
        exit(1);
    *(void **)&globals = dlsym(runtime, "__cxa_get_globals");
}

static void *root(void *in_fibre)
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = {{0}};
    if (in_fibre)
        fibre = strand_fibre_open(scope, NULL);
    for (intptr_t i = 1; i <= HANDLERS; i++)
        strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre), run_handler, (void *)i, 0);
    strand_wait_quiet((strand_pool){{0}}, STRAND_QUIET_STALLED); /* they wait, with nothing of C++ */
    load();
    strand_barrier_wait(&loaded);
    for (intptr_t i = 1; i <= HANDLERS; i++) /* of those that begin with it */
        strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre), handle_at_once, (void *)(i << 8), 0);
    strand_scope_join(scope);
    return NULL;
}

static void *let_a_deadline_pass(void *arg)
{
    STRAND_DEADLINE(strand_in(20 * STRAND_MS));
    strand_yield(); /* the thread notices the runtime */
    for (int i = 0; i < 100; i++)
        strand_sleep(10 * STRAND_MS);
    return arg;
}

/* A deadline that the destructor opens counts. */
static void *open_a_deadline(void *arg)
{
    load();
    globals()->uncaught = 1;
    strand_exception *e = strand_try(let_a_deadline_pass, NULL, NULL);
    globals()->uncaught = 0;
    wrong += !e || !strand_exception_is(e, &STRAND_TIMED_OUT);
    strand_exception_release(e);
    return arg;
}

/* The cancellation that came before waits until the destructor has returned. */
static void *sleep_though_cancelled(void *slept)
{
    strand_cancel(strand_self(), NULL);
    globals()->uncaught = 1;
    strand_sleep(1);
    globals()->uncaught = 0;
    *(bool *)slept = true;
    return NULL;
}

static void *cancel_it(void *arg)
{
    bool slept = false;
    STRAND_SCOPE(scope);
    load();
    strand child = strand_spawn(scope, sleep_though_cancelled, &slept);
    strand_wait(child);
    wrong += !slept;
    strand_scope_cancel(scope, NULL);
    return arg;
}

int main(int argc, char **argv)
{
    bool in_fibre = argc > 1 && strcmp(argv[1], "fibre") == 0;
    int threads = argc > 1 && !in_fibre ? atoi(argv[1]) : 1;
    if (dlsym(RTLD_DEFAULT, "__cxa_get_globals"))
        puts("there is one from the beginning");
    strand_fn *fn = argc > 1 && strcmp(argv[1], "deadline") == 0    ? open_a_deadline
                    : argc > 1 && strcmp(argv[1], "cancelled") == 0 ? cancel_it
                                                                    : root;
    strand_run(STRAND_OPTIONS(.threads = threads ? threads : 1), fn, in_fibre ? &wrong : NULL);
    printf("%d wrong\n", wrong);
    return wrong != 0;
}
