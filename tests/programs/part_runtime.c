/*
 * A program with a C++ runtime that lacks a function, or has it from somewhere else, as libc++abi 14 does: it counts
 * exceptions of its own, and the library throws none of that sort. Destructors are clean-ups here, since it is C.
 *
 *     part_runtime clean-up     a clean-up of a cancelled strand blocks
 *     part_runtime cancel       a strand that has caught an exception is cancelled
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "strand.h"

struct globals {
    void *caught;
    unsigned uncaught;
};
static _Thread_local struct globals globals;

struct globals *__cxa_get_globals(void);
void *__cxa_allocate_exception(size_t size);
void *__cxa_begin_catch(void *exception);
void __cxa_end_catch(void);

struct globals *__cxa_get_globals(void)
{
    return &globals;
}

void *__cxa_allocate_exception(size_t size)
{
    enum { HEADER = 256 };
    char *memory = calloc(1, HEADER + size);
    return memory ? memory + HEADER : NULL;
}

void *__cxa_begin_catch(void *exception)
{
    return exception; /* and counts nothing */
}

void __cxa_end_catch(void) {}

static void block(int *unused)
{
    (void)unused;
    strand_sleep(STRAND_MS);
    printf("cleaned up; ");
}

static void *block_at_the_end(void *arg)
{
    int unused __attribute__((cleanup(block))) = 0;
    strand_sleep(3600 * STRAND_S);
    return arg;
}

static void *fail(void *arg)
{
    strand_throw(&STRAND_ERROR, "failed");
    return arg;
}

static void *catch_and_sleep(void *arg)
{
    strand_exception_release(strand_try(fail, NULL, NULL));
    strand_sleep(3600 * STRAND_S);
    return arg;
}

static void *cancel_one(void *fn)
{
    STRAND_SCOPE(scope);
    strand child = strand_spawn(scope, *(strand_fn **)fn, NULL);
    strand_yield();
    strand_cancel(child, NULL);
    return NULL;
}

int main(int argc, char **argv)
{
    strand_fn *fn = argc > 1 && !strcmp(argv[1], "clean-up") ? block_at_the_end : catch_and_sleep;
    strand_run(NULL, cancel_one, &fn);
    printf("done\n");
    return 0;
}
