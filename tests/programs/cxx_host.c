/*
 * A program in C whose plug-ins are in C++ (tests/programs/cxx_runtime.cc): before its run it loads some, in it the
 * others, and calls the first. tools/check-link.sh makes them.
 *
 *     cxx_host PLUG-INS-BEFORE PLUG-IN...
 */
#include "strand.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static char **plugins;

static strand_fn *load(const char *plugin)
{
    void *library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
    strand_fn *fn = NULL;
    if (library)
        *(void **)&fn = dlsym(library, "use_cxx");
    if (!fn) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return fn;
}

static void *root(void *first)
{
    strand_fn *fn = first ? *(strand_fn **)first : NULL;
    for (; *plugins; plugins++) {
        strand_fn *loaded = load(*plugins);
        fn = fn ? fn : loaded;
    }
    return fn ? fn(NULL) : NULL;
}

int main(int argc, char **argv)
{
    strand_fn *first = NULL;
    plugins = argv + (argc > 1 ? 2 : argc);
    for (int before = argc > 1 ? atoi(argv[1]) : 0; before > 0 && *plugins; before--, plugins++) {
        strand_fn *loaded = load(*plugins);
        first = first ? first : loaded;
    }
    strand_run(NULL, root, first ? &first : NULL);
    return 0;
}
