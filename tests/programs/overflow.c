/*
 * A strand overflows its stack. The argument says how.
 */
#include "noinline.h"

#include "strand.h"
#include "strand/io.h"
#include "strand/pool.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Writes a little beyond the end, returns and yields. A sanitizer would report that at once. */
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

/* Writes the lowest bytes of the stack, where a canary lies if there is no guard page: not a byte of its neighbour,
 * which another thread may use. Its highest frames lie in its highest page. */
static NOINLINE __attribute__((no_sanitize("address"), no_sanitize("thread"))) void touch_the_end(void)
{
    enum { PAGE = 4096, SOME = 64 };
    volatile char *end = (char *)(((uintptr_t)__builtin_frame_address(0) | (PAGE - 1)) + 1 - STACK_SIZE);
    for (size_t i = 0; i < SOME; i++)
        end[i] = 1;
}

static _Atomic int spinning, resized, over;

static void *spin_and_dive(void *arg)
{
    spinning++;
    while (!resized)
        continue;
    if (strand_thread_index() == 1) {
        touch_the_end();
        strand_yield();
        over = 1;
    }
    while (!over)
        continue;
    return arg;
}

/* The diver's thread is sent away and called back before it notices. */
static void resize_meanwhile(strand_scope scope)
{
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 2));
    for (int i = 0; i < 2; i++)
        strand_spawn_with(scope, STRAND_ATTR(.name = "deep-diver", .pool = pool, .stack_size = STACK_SIZE),
                          spin_and_dive, NULL, 0);
    while (spinning < 2)
        strand_sleep(100 * STRAND_US);
    strand_must(strand_pool_resize(pool, 1));
    strand_must(strand_pool_resize(pool, 2));
    resized = 1;
    strand_scope_join(scope);
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

static void *read_address_zero(void *arg)
{
    static int *volatile nowhere;
    return *nowhere == 1 ? arg : NULL;
}

static const char *how = "deep";

/* The same, but its calls meet no guard page: the stack pointer is in the middle of the neighbour's stack. */
static NOINLINE void call_on(const char *sp, void (*fn)(void))
{
    char frame[(limit & 63) + 64]; /* of unknown size, so that the frame is found without the stack pointer */
    __asm__ volatile("mov %%rsp, %%r12\n\t"
                     "mov %0, %%rsp\n\t"
                     "call *%1\n\t"
                     "mov %%r12, %%rsp\n\t"
                     :
                     : "r"(sp), "r"(fn), "r"(frame)
                     : "memory", "cc", "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12");
}

static void sleep_there(void)
{
    strand_sleep(STRAND_MS);
}

static void join_there(void)
{
    STRAND_SCOPE(scope);
    strand_scope_join(scope);
}

static void join_one_there(void)
{
    STRAND_SCOPE(scope);
    strand_join(strand_spawn(scope, read_address_zero, NULL));
}

static void read_there(void)
{
    char byte;
    STRAND_IGNORE(strand_read(0, &byte, 1));
}

static void offload_there(void)
{
    strand_offload(read_address_zero, NULL);
}

static void forget_there(void)
{
    strand_forget(0);
}

static void close_a_pool_there(void)
{
    STRAND_SCOPE(scope);
    strand_pool_close(strand_pool_open(scope, NULL), NULL);
}

/* As a C++ function does for its static object while another strand constructs it. */
static void await_a_static_object_there(void)
{
    static uint64_t guard;
    if (strand_static_enter_(&guard))
        (void)strand_static_enter_(&guard);
}

static void *block_beyond(void *arg)
{
    static const struct {
        const char *how;
        void (*fn)(void);
    } all[] = {{"beyond-sleep", sleep_there},
               {"beyond-join", join_there},
               {"beyond-join-one", join_one_there},
               {"beyond-read", read_there},
               {"beyond-offload", offload_there},
               {"beyond-forget", forget_there},
               {"beyond-pool-close", close_a_pool_there},
               {"beyond-static", await_a_static_object_there}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strcmp(how, all[i].how) == 0)
            call_on((char *)((uintptr_t)__builtin_frame_address(0) & ~(uintptr_t)15) - STACK_SIZE - 4096, all[i].fn);
    return arg;
}

/* A stack of the program's own may lie below that of the strand. */
static void *block_on_a_stack_of_its_own(void *arg)
{
    static _Alignas(16) char other[65536];
    call_on(other + sizeof other, sleep_there);
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

static strand_fn *chosen(void)
{
    if (strcmp(how, "big-frame") == 0)
        return dive_with_big_frames;
    if (strcmp(how, "switch") == 0)
        return dive_and_switch;
    if (strcmp(how, "step-over") == 0)
        return step_over;
    if (strncmp(how, "beyond", 6) == 0)
        return block_beyond;
    if (strcmp(how, "own-stack") == 0)
        return block_on_a_stack_of_its_own;
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
    if (strcmp(how, "called-back") == 0)
        resize_meanwhile(scope);
    else
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
