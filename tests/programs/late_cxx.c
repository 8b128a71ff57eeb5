/*
 * A C++ runtime that is loaded in the middle of a run, as with a plug-in. The strands stand for handlers of that: each
 * puts a word of its own where the runtime keeps the exceptions that handlers have, lets others run, and finds it there
 * again. The arguments: "fibre" for strands of one shared fibre, which have run before too; how many threads.
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

static void *root(void *in_fibre)
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = {{0}};
    if (in_fibre)
        fibre = strand_fibre_open(scope, NULL);
    for (intptr_t i = 1; i <= HANDLERS; i++)
        strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre), run_handler, (void *)i, 0);
    strand_wait_quiet((strand_pool){{0}}, STRAND_QUIET_STALLED); /* they wait, with nothing of C++ */
    void *runtime = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
    if (!runtime)
        exit(1);
    *(void **)&globals = dlsym(runtime, "__cxa_get_globals");
    strand_barrier_wait(&loaded);
    for (intptr_t i = 1; i <= HANDLERS; i++) /* of those that begin with it */
        strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre), handle_at_once, (void *)(i << 8), 0);
    strand_scope_join(scope);
    return NULL;
}

int main(int argc, char **argv)
{
    bool in_fibre = argc > 1 && strcmp(argv[1], "fibre") == 0;
    int threads = argc > 1 && !in_fibre ? atoi(argv[1]) : 1;
    if (dlsym(RTLD_DEFAULT, "__cxa_get_globals"))
        puts("there is one from the beginning");
    strand_run(STRAND_OPTIONS(.threads = threads), root, in_fibre ? &wrong : NULL);
    printf("%d wrong\n", wrong);
    return wrong != 0;
}
