/*
 * The system says that the frame of a signal needs as many bytes as the argument: the program's own getauxval does.
 * Prints the size of the smallest stack, and that of the usual one. A strand of its own on the smallest stack then uses
 * what such a frame needs, and 4 KiB.
 */
#define _GNU_SOURCE
#include "strand.h"
#include "strand/pool.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

enum { MINIMUM_OF_SIGNAL_STACKS = 51 };

static size_t frame;

__attribute__((visibility("default"))) unsigned long getauxval(unsigned long type)
{
    unsigned long (*system)(unsigned long);
    if (type == MINIMUM_OF_SIGNAL_STACKS)
        return frame;
    *(void **)&system = dlsym(RTLD_NEXT, "getauxval");
    return system(type);
}

static void print_size(strand_scope scope, size_t asked)
{
    strand_fibre_info info = {.size = sizeof info};
    strand_fibre_info_get(strand_fibre_open(scope, STRAND_FIBRE_ATTR(.stack_size = asked)), 0, &info);
    printf("%zu\n", info.stack_size);
}

static void *use_stack(void *arg)
{
    volatile char *bytes = __builtin_alloca(frame + 4096);
    for (size_t at = frame + 4096; at-- > 0;)
        bytes[at] = 1;
    return arg;
}

static void *root(void *arg)
{
    STRAND_SCOPE(scope);
    print_size(scope, 1);
    print_size(scope, 0);
    fflush(stdout);
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.stack_size = 1), use_stack, arg, 0));
    return arg;
}

int main(int argc, char **argv)
{
    frame = argc > 1 ? (size_t)atol(argv[1]) : 0;
    strand_run(NULL, root, NULL);
    puts("fine");
    return 0;
}
