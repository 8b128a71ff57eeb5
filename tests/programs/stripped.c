/*
 * A program that is linked without symbols and ends by an exception: its trace goes to standard error. To standard
 * output goes where the two functions of it lie in the program's file.
 */
#include "strand.h"

#include <stdint.h>
#include <stdio.h>

extern const char file_start[] __asm__("__ehdr_start") __attribute__((visibility("hidden")));

static __attribute__((noinline)) void throws(void)
{
    strand_throw(&STRAND_ERROR, "without names");
}

static __attribute__((noinline)) void *calls_throws(void *arg)
{
    throws();
    __asm__ volatile("");
    return arg;
}

int main(void)
{
    printf("%lx %lx\n", (unsigned long)((uintptr_t)throws - (uintptr_t)file_start),
           (unsigned long)((uintptr_t)calls_throws - (uintptr_t)file_start));
    fflush(stdout);
    strand_run(NULL, calls_throws, NULL);
    return 0;
}
