/*
 * Plug-ins that are loaded one after the other at the same address, with the same code but for the size of their
 * frames: a rule of the first must not be used for the second (src/arch/unwind_cached.c). tools/check-link.sh makes the
 * program and, from the same file, two plug-ins: PLUGIN sets the size of a frame.
 *
 *     unwind_plugin PLUG-IN PLUG-IN
 */
#include "strand.h"

typedef void plug_fn(void (*next)(void), int *cleaned);
plug_fn pass, clean;

#if defined(PLUGIN)
/* A rule for the other plug-in's frame would take a word of `places` for the return address. */
void pass(void (*next)(void), int *cleaned)
{
    void *volatile places[PLUGIN];
    for (int i = 0; i < PLUGIN; i++)
        places[i] = __builtin_return_address(0);
    next();
    *cleaned += places[0] != NULL; /* not reached */
}

static void count(int **cleaned)
{
    ++**cleaned;
}

void clean(void (*next)(void), int *cleaned)
{
    int *counted __attribute__((cleanup(count), unused)) = cleaned;
    pass(next, cleaned);
}

#else
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 20 };

static void throw_it(void)
{
    strand_throw(&STRAND_ERROR, "through a plug-in");
}

static void *find(void *library, const char *name)
{
    void *found = library ? dlsym(library, name) : NULL;
    if (!found) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return found;
}

static int call(plug_fn *plugged)
{
    int cleaned = 0;
    bool caught = false;
    STRAND_TRY {
        plugged(throw_it, &cleaned);
    }
    STRAND_CATCH(&STRAND_ERROR, e) {
        (void)e;
        caught = true;
    }
    STRAND_END
    return caught ? cleaned : -1;
}

static void *root(void *plugins)
{
    uintptr_t places[2];
    int cleaned = 0, passed = 0;
    for (int i = 0; i < ROUNDS; i++) {
        void *library = dlopen(((char **)plugins)[i % 2], RTLD_NOW | RTLD_LOCAL);
        plug_fn *plugged;
        *(void **)&plugged = find(library, "clean");
        places[i % 2] = (uintptr_t)plugged;
        cleaned += call(plugged);
        *(void **)&plugged = find(library, "pass");
        passed += call(plugged) == 0;
        dlclose(library);
    }
    printf("%d cleaned, %d passed, %s\n", cleaned, passed, places[0] == places[1] ? "one place" : "two places");
    return plugins;
}

int main(int argc, char **argv)
{
    return argc == 3 && strand_run(NULL, root, argv + 1) ? 0 : 1;
}
#endif
