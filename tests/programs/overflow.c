/*
 * A strand overflows its stack. The argument says how.
 */
#include "strand.h"
#include "strand/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))
#define STACK_SIZE ((size_t)128 * 1024)

static volatile int limit = 1000000000;

static NOINLINE int dive_deeper(int depth)
{
    volatile char frame[256];
    frame[0] = (char)depth;
    if (depth < limit)
        frame[0] = (char)dive_deeper(depth + 1);
    return frame[0];
}

static void *dive(void *arg)
{
    return dive_deeper(0) == 1 ? arg : NULL;
}

static NOINLINE int use_a_big_frame(int depth)
{
    volatile char frame[20000];
    frame[depth % 20000] = 1;
    if (depth < limit)
        frame[0] = (char)use_a_big_frame(depth + 1);
    return frame[depth % 20000];
}

static void *dive_with_big_frames(void *arg)
{
    return use_a_big_frame(0) == 2 ? arg : NULL;
}

/* Goes a little beyond the end, writing all the way, comes back and gives way. A sanitizer would see that at once. */
static NOINLINE __attribute__((no_sanitize("address"), no_sanitize("thread"))) int touch_beyond(const char *top)
{
    volatile char frame[64];
    for (size_t i = 0; i < sizeof frame; i++)
        frame[i] = 1;
    if ((size_t)(top - (const char *)__builtin_frame_address(0)) < STACK_SIZE)
        frame[0] = (char)touch_beyond(top);
    return frame[0];
}

static void *dive_and_switch(void *arg)
{
    if (touch_beyond(__builtin_frame_address(0)) == 1)
        strand_yield();
    return arg;
}

/* What a frame larger than a stack does where nothing touches each of its pages: it steps over the guard into the
 * neighbour's stack, and its calls go on there. Reading, it leaves what it finds. */
static void *step_over(void *arg)
{
    __asm__ volatile("sub %0, %%rsp\n"
                     "0: sub $4096, %%rsp\n\t"
                     "testb $0, (%%rsp)\n\t"
                     "jmp 0b\n\t"
                     :
                     : "r"(STACK_SIZE)
                     : "memory", "cc");
    return arg;
}

/* The stack pointer is outside of the strand's stack, as that of a context which the program has made, and a pointer
 * is wrong. */
static void *fault_elsewhere(void *arg)
{
    static char other[65536];
    __asm__ volatile("mov %0, %%rsp\n\t"
                     "testb $0, 0"
                     :
                     : "r"(other + sizeof other)
                     : "memory", "cc");
    return arg;
}

static void *read_address_zero(void *arg)
{
    static int *volatile nowhere;
    return *nowhere == 1 ? arg : NULL;
}

static const char *how = "deep";

static strand_fn *chosen(void)
{
    if (strcmp(how, "big-frame") == 0)
        return dive_with_big_frames;
    if (strcmp(how, "switch") == 0)
        return dive_and_switch;
    if (strcmp(how, "step-over") == 0)
        return step_over;
    if (strcmp(how, "elsewhere") == 0)
        return fault_elsewhere;
    if (strcmp(how, "null") == 0)
        return read_address_zero;
    return dive;
}

static void *yield_a_while(void *arg)
{
    for (int i = 0; i < 1000; i++)
        strand_yield();
    return arg;
}

static void *root(void *arg)
{
    STRAND_SCOPE(scope);
    if (strcmp(how, "root") == 0)
        dive(arg);
    /* Neighbours with stacks of the same size: below the diver's stack there is memory. */
    for (int i = 0; i < 4; i++)
        strand_spawn_with(scope, STRAND_ATTR(.stack_size = STACK_SIZE), yield_a_while, arg, 0);
    strand_yield();
    if (strncmp(how, "fibre", 5) == 0) {
        strand_fibre fibre = strand_fibre_open(scope, STRAND_FIBRE_ATTR(.stack_size = STACK_SIZE));
        for (int i = 0; i < 4; i++)
            strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre), yield_a_while, arg, 0);
        strand_spawn_with(scope, STRAND_ATTR(.name = "deep-diver", .fibre = fibre), how[5] ? dive_and_switch : dive,
                          arg, 0);
        strand_scope_join(scope);
    }
    strand_spawn_with(scope, STRAND_ATTR(.name = "deep-diver", .stack_size = STACK_SIZE), chosen(), arg, 0);
    strand_scope_join(scope);
    return arg;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        how = argv[1];
    bool many = strcmp(how, "threads") == 0;
    strand_run(STRAND_OPTIONS(.threads = many ? 4 : 1, .own_threads = many), root, NULL);
    puts("still alive");
    return 0;
}
